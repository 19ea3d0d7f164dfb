// A hook in C. It says hello to `$NODE` and exits with a code: `10-c.wasm` with `$CODE_10`, or else with 0.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exit.h" // wit-bindgen makes it from exit.wit

static void leave(int code) {
    fflush(stdout); // nothing of libc runs after the next line
    wasi_cli_exit_exit_with_code((uint8_t)code);
}

int main(int argc, char **argv) {
    const char *node = getenv("NODE");
    printf("hello %s, from C\n", node != NULL ? node : "nobody");

    char variable[32];
    int length = argc > 0 ? (int)strcspn(argv[0], "-") : 0;
    snprintf(variable, sizeof variable, "CODE_%.*s", length, argv[0]);
    const char *code = getenv(variable);
    if (code != NULL) {
        leave(atoi(code));
    }
    return EXIT_SUCCESS;
}
