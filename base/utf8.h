/* UTF-8 characters, and the line and column of a byte in a text, for messages. */
#ifndef K25_BASE_UTF8_H
#define K25_BASE_UTF8_H

#include <stddef.h>

/* Returns the length in bytes, 1 to 4, of the UTF-8 character at the start of `text` (`size` > 0 bytes); 0 when it is
 * not valid (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF). */
size_t k25_utf8_length(const unsigned char *text, size_t size);

/* Sets line and column, from 1, of the byte at `offset` in `text`. Columns count characters. A line ends at \n, \r\n
 * or \r. */
void k25_locate(const char *text, size_t offset, int *line, int *column);

#endif
