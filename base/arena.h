/* An arena: memory allocated in pieces and freed all at once. Initialise it to all zero. Not thread-safe. */
#ifndef K25_BASE_ARENA_H
#define K25_BASE_ARENA_H

#include <stddef.h>

struct k25_arena {
    struct k25_arena_block *last; /* the newest block, NULL when empty; each points to the one before it */
};

/* Returns `size` bytes, zeroed and aligned for any type, valid until k25_arena_free; NULL when out of memory. */
void *k25_arena_take(struct k25_arena *arena, size_t size);

/* Returns a copy of `size` bytes followed by a zero byte, valid until k25_arena_free; NULL when out of memory. */
char *k25_arena_copy(struct k25_arena *arena, const char *bytes, size_t size);

/* Frees everything taken from the arena and leaves it empty, ready for use. */
void k25_arena_free(struct k25_arena *arena);

#endif
