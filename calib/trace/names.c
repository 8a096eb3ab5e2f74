#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "calib/trace/internal.h"

/* Real captures have some thousand names; more than this means a counter inside names. */
enum { MOST_NAMES = 1 << 17, MOST_BYTES = 24 << 20 };

bool k25_trace_names_start(struct k25_trace_names *names, struct k25_arena *arena)
{
    *names = (struct k25_trace_names){.arena = arena, .room = 256, .mask = 1023, .last = -1};
    names->texts = malloc(sizeof *names->texts * (size_t)names->room);
    names->sizes = malloc(sizeof *names->sizes * (size_t)names->room);
    names->follower = malloc(sizeof *names->follower * (size_t)names->room);
    names->plain = malloc(sizeof *names->plain * (size_t)names->room);
    names->slots = malloc(sizeof *names->slots * (names->mask + 1));
    if (names->texts == NULL || names->sizes == NULL || names->plain == NULL || names->follower == NULL ||
        names->slots == NULL) {
        k25_trace_names_free(names);
        return false;
    }
    memset(names->slots, 0xff, sizeof *names->slots * (names->mask + 1)); /* id -1 */
    return true;
}

void k25_trace_names_free(struct k25_trace_names *names)
{
    free(names->texts);
    free(names->sizes);
    free(names->plain);
    free(names->follower);
    free(names->slots);
    *names = (struct k25_trace_names){0};
}

/* Multiply and fold, eight bytes at a time. */
static uint64_t hash_of(const char *text, size_t size)
{
    uint64_t hash = 0x9e3779b97f4a7c15u ^ size, word = 0;
    for (; size >= 8; size -= 8, text += 8) {
        memcpy(&word, text, 8);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, text, size);
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    return hash ^ hash >> 32;
}

static bool more_room(struct k25_trace_names *names)
{
    size_t room = (size_t)names->room * 2, slots = room * 4;
    void *texts = realloc(names->texts, sizeof *names->texts * room);
    names->texts = texts == NULL ? names->texts : texts;
    void *sizes = realloc(names->sizes, sizeof *names->sizes * room);
    names->sizes = sizes == NULL ? names->sizes : sizes;
    void *plain = realloc(names->plain, sizeof *names->plain * room);
    names->plain = plain == NULL ? names->plain : plain;
    void *follower = realloc(names->follower, sizeof *names->follower * room);
    names->follower = follower == NULL ? names->follower : follower;
    struct k25_trace_slot *table = malloc(sizeof *table * slots);
    if (texts == NULL || sizes == NULL || plain == NULL || follower == NULL || table == NULL) {
        free(table);
        return false;
    }
    memset(table, 0xff, sizeof *table * slots);
    for (uint32_t i = 0; i <= names->mask; i++) {
        if (names->slots[i].id >= 0) {
            size_t at = names->slots[i].hash & (slots - 1);
            for (; table[at].id >= 0; at = (at + 1) & (slots - 1)) {
            }
            table[at] = names->slots[i];
        }
    }
    free(names->slots);
    names->slots = table;
    names->mask = (uint32_t)slots - 1;
    names->room = (int)room;
    return true;
}

static bool is_plain(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"' || text[i] == '\\' || (text[i] & 0x80) != 0) {
            return false;
        }
    }
    return true;
}

static int add(struct k25_trace_names *names, const char *text, size_t size, uint64_t hash)
{
    if (names->count == MOST_NAMES || names->bytes + size > MOST_BYTES) {
        return -1;
    }
    if (names->count == names->room && !more_room(names)) {
        return -2;
    }
    char *copy = k25_arena_copy(names->arena, text, size);
    if (copy == NULL) {
        return -2;
    }
    int id = names->count++;
    names->texts[id] = copy;
    names->sizes[id] = (uint32_t)size;
    names->plain[id] = is_plain(text, size);
    names->follower[id] = -1;
    names->bytes += size;
    uint32_t at = (uint32_t)hash & names->mask;
    for (; names->slots[at].id >= 0; at = (at + 1) & names->mask) {
    }
    names->slots[at] = (struct k25_trace_slot){hash, id};
    return id;
}

static int find(struct k25_trace_names *names, const char *text, size_t size)
{
    uint64_t hash = hash_of(text, size);
    uint32_t at = (uint32_t)hash & names->mask;
    for (; names->slots[at].id >= 0; at = (at + 1) & names->mask) {
        int id = names->slots[at].id;
        if (names->slots[at].hash == hash && names->sizes[id] == size && memcmp(names->texts[id], text, size) == 0) {
            return id;
        }
    }
    return add(names, text, size, hash);
}

/* Decode steps repeat: the name that followed the last one before is tried first. */
int k25_trace_names_id(struct k25_trace_names *names, const char *text, size_t size)
{
    int guess = names->last < 0 ? -1 : names->follower[names->last];
    if (guess < 0 || names->sizes[guess] != size || memcmp(names->texts[guess], text, size) != 0) {
        guess = find(names, text, size);
        if (guess >= 0 && names->last >= 0) {
            names->follower[names->last] = guess;
        }
    }
    names->last = guess >= 0 ? guess : names->last;
    return guess;
}

struct k25_trace_span k25_trace_names_guess(const struct k25_trace_names *names, int *id)
{
    *id = names->last < 0 ? -1 : names->follower[names->last];
    return *id < 0 || !names->plain[*id] ? (struct k25_trace_span){0}
                                         : (struct k25_trace_span){names->texts[*id], names->sizes[*id]};
}

static bool hex4(const char *text, size_t size, uint32_t *value)
{
    *value = 0;
    for (size_t i = 0; i < 4; i++) {
        char c = i < size ? text[i] : '\0';
        int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (digit < 0) {
            return false;
        }
        *value = *value << 4 | (uint32_t)digit;
    }
    return true;
}

static size_t encode(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length - 1; i > 0; i--, c >>= 6) {
        out[i] = (char)(0x80 | (c & 0x3f));
    }
    out[0] = (char)(lead[length] | c);
    return length;
}

/* The escape at `text` (a backslash): bytes read in `*taken`, written as the result. An escape that JSON does not
 * know is kept as written, with the backslash; half a surrogate pair and U+0000 become U+FFFD. */
static size_t unescape_one(const char *text, size_t size, char *out, size_t *taken)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *known = size > 1 && text[1] != '\0' ? strchr(from, text[1]) : NULL;
    uint32_t c, low;
    *taken = 2;
    if (known != NULL) {
        out[0] = to[known - from];
        return 1;
    }
    if (size < 2 || text[1] != 'u' || !hex4(text + 2, size - 2, &c)) {
        *taken = 1;
        out[0] = '\\';
        return 1;
    }
    *taken = 6;
    if (c >= 0xd800 && c < 0xdc00 && size >= 12 && text[6] == '\\' && text[7] == 'u' &&
        hex4(text + 8, size - 8, &low) && low >= 0xdc00 && low < 0xe000) {
        *taken = 12;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    return encode((c >= 0xd800 && c < 0xe000) || c == 0 ? 0xfffd : c, out);
}

size_t k25_trace_unescape(const char *text, size_t size, char *out)
{
    size_t length = 0;
    for (size_t i = 0; i < size;) {
        size_t taken = 1;
        if (text[i] == '\\') {
            length += unescape_one(text + i, size - i, out + length, &taken);
        } else {
            size_t whole = text[i] == '\0' ? 0 : k25_utf8_length((const unsigned char *)text + i, size - i);
            taken = whole > 0 ? whole : 1;
            if (whole > 0) {
                memcpy(out + length, text + i, whole);
                length += whole;
            } else {
                length += encode(0xfffd, out + length);
            }
        }
        i += taken;
    }
    out[length] = '\0';
    return length;
}
