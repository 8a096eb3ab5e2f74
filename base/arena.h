/* Memory that is taken piece by piece and given back all at once. Start from an arena that is all zero. */
#ifndef K25_BASE_ARENA_H
#define K25_BASE_ARENA_H

#include <stddef.h>

struct k25_arena {
    struct k25_arena_block *last;
};

/* `size` bytes, zeroed and aligned for any type; NULL only when memory is out. */
void *k25_arena_take(struct k25_arena *arena, size_t size);

/* A copy of `size` bytes with a zero byte behind them. */
char *k25_arena_copy(struct k25_arena *arena, const char *bytes, size_t size);

void k25_arena_free(struct k25_arena *arena);

#endif
