/* What the component does, apart from its interface, so that tests reach it. */

#ifndef GREETING_H
#define GREETING_H

#include <stdbool.h>
#include <stddef.h>

/* Writes a greeting for a name, which does not end with 0, to new memory. False if there is no name. */
bool greeting(const char *name, size_t length, char **text, size_t *text_length);

#endif
