/* Lists that grow one entry at a time: a pointer to entries and their number, nothing else. */
#ifndef K25_BASE_LIST_H
#define K25_BASE_LIST_H

#include <stddef.h>

/* Adds an entry to a list: `list` is a pointer to entries (NULL for the empty list), `count` an integer, both plain
 * lvalues, which the macro evaluates more than once. Returns the new entry, all zero, in the type of `list`; the list
 * may have moved. NULL when memory is out: list and count are as they were. The caller owns the list and frees it
 * with free(). A list that was not begun by the macro must not be given to it, for its room follows from its count;
 * entries may be taken off the end by lowering the count.
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

/* For K25_LIST_ADD: `list` with room for entry number `count`, which is zeroed; NULL when memory is out. */
void *k25_list_grow(void *list, size_t count, size_t size);

#endif
