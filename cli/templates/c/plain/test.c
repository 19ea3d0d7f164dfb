/* The functions alone, without Main. Prints TAP. */

#include "greeting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed = 0;

static void check(int number, bool is_right, const char *what) {
    printf("%s %d - %s\n", is_right ? "ok" : "not ok", number, what);
    failed |= !is_right;
}

int main(void) {
    char *text = NULL;
    size_t length = 0;
    const bool is_greeted = greeting("Ada", 3, &text, &length);
    check(1, is_greeted && length == 10 && memcmp(text, "hello, Ada", length) == 0, "greets by name");
    free(text);
    check(2, !greeting("", 0, &text, &length), "nobody is not greeted");
    return failed;
}
