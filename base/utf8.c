#include "base/utf8.h"

#include <stdbool.h>

size_t k25_utf8_length(const unsigned char *text, size_t size)
{
    unsigned char c = text[0];
    size_t length = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    if (length > size) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool bad = (c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] >= 0xa0) || (c == 0xf0 && text[1] < 0x90) ||
               (c == 0xf4 && text[1] >= 0x90);
    return bad ? 0 : length;
}

void k25_locate(const char *text, size_t offset, int *line, int *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < offset; i++) {
        unsigned char c = (unsigned char)text[i];
        /* Of \r\n only the \n counts. */
        if (c == '\n' || (c == '\r' && i + 1 < offset && text[i + 1] != '\n')) {
            ++*line;
            *column = 1;
        } else if ((c & 0xc0) != 0x80 && c != '\r') {
            ++*column;
        }
    }
}
