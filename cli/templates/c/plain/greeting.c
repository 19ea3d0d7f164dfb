#include "greeting.h"

#include <stdlib.h>
#include <string.h>

static const char HELLO[] = "hello, ";

bool greeting(const char *name, size_t length, char **text, size_t *text_length) {
    const size_t hello = sizeof HELLO - 1;
    if (length == 0) return false;
    char *written = malloc(hello + length);
    if (written == NULL) abort();
    memcpy(written, HELLO, hello);
    memcpy(written + hello, name, length);
    *text = written;
    *text_length = hello + length;
    return true;
}
