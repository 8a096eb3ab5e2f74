#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 14, ALIGN = _Alignof(max_align_t) };

struct k25_arena_block {
    struct k25_arena_block *before;
    size_t used, room;
    max_align_t bytes[];
};

void *k25_arena_take(struct k25_arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2) {
        return NULL;
    }
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    struct k25_arena_block *block = arena->last;
    if (block == NULL || block->room - block->used < size) {
        size_t room = size > BLOCK ? size : BLOCK;
        block = calloc(1, sizeof *block + room);
        if (block == NULL) {
            return NULL;
        }
        block->room = room;
        block->before = arena->last;
        arena->last = block;
    }
    char *taken = (char *)block->bytes + block->used;
    block->used += size;
    return taken;
}

char *k25_arena_copy(struct k25_arena *arena, const char *bytes, size_t size)
{
    char *copy = k25_arena_take(arena, size + 1);
    if (copy != NULL && size > 0) {
        memcpy(copy, bytes, size);
    }
    return copy;
}

void k25_arena_free(struct k25_arena *arena)
{
    while (arena->last != NULL) {
        struct k25_arena_block *block = arena->last;
        arena->last = block->before;
        free(block);
    }
}
