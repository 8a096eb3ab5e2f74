#include "base/list.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 16 }; /* entries; a power of two */

/* The capacity for `count` entries is the next power of two, at least FIRST_ROOM: the list is full when `count` is a
 * power of two. */
void *k25_list_grow(void *list, size_t count, size_t size)
{
    if (count == 0 || (count >= FIRST_ROOM && (count & (count - 1)) == 0)) {
        size_t room = count == 0 ? FIRST_ROOM : 2 * count;
        list = room <= SIZE_MAX / 2 / size ? realloc(list, room * size) : NULL;
    }
    if (list != NULL)
        memset((char *)list + count * size, 0, size);
    return list;
}
