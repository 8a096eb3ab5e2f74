/* Growing arrays: a pointer to entries and their number, no other state. */
#ifndef K25_BASE_LIST_H
#define K25_BASE_LIST_H

#include <stddef.h>

/* Appends an entry: `list` is a pointer to entries (NULL for the empty list), `count` an integer, both plain lvalues,
 * which the macro evaluates more than once. Returns a pointer to the new entry, all zero, with the type of `list`; the
 * list may have moved. Returns NULL when out of memory; list and count are then unchanged. The caller owns the list and
 * frees it with free(). Use it only on lists that it created itself: the capacity is derived from the count. Entries
 * may be removed from the end by lowering the count.
 *
 *     struct row *row = K25_LIST_ADD(table->row, table->rows);
 *     if (row == NULL)
 *         return k25_fail(error, K25_RESOURCE, "out of memory");
 */
#define K25_LIST_ADD(list, count)                                                                                      \
    __extension__({                                                                                                    \
        __typeof__(list) grown_ = k25_list_grow((list), (size_t)(count), sizeof *(list));                              \
        if (grown_ != NULL) {                                                                                          \
            (list) = grown_;                                                                                           \
            grown_ += (count)++;                                                                                       \
        }                                                                                                              \
        grown_;                                                                                                        \
    })

/* For K25_LIST_ADD only: returns `list`, reallocated when needed, with entry number `count` of `size` bytes zeroed;
 * NULL when out of memory. */
void *k25_list_grow(void *list, size_t count, size_t size);

#endif
