/* The shortest program: one extension in memory, one call.
 *
 *     first echo.wasm
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir.h>

static const char CONFIG[] =
    "[[extension]]\n"
    "id = \"echo\"\n"
    "path = \"echo.wasm\"\n" /* Not opened: the component comes from memory. */
    "fulfills = [\"echo@1\"]\n";

static void fail(weir_error *error)
{
    fprintf(stderr, "%s\n", weir_error_message(error));
    exit(EXIT_FAILURE);
}

static char *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    long size = ftell(file);
    rewind(file);
    char *bytes = malloc(size > 0 ? (size_t)size : 1);
    *length = bytes ? fread(bytes, 1, (size_t)size, file) : 0;
    fclose(file);
    return bytes;
}

int main(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "usage: first echo.wasm\n");
        return EXIT_FAILURE;
    }
    weir_error *error = NULL;
    size_t length;
    char *component = read_file(arguments[1], &length);

    weir_config *config = weir_config_parse(CONFIG, NULL, NULL, &error);
    if (!config || !weir_config_set_component(config, "echo", component, length, &error))
        fail(error);
    free(component);

    weir_builder *builder = weir_builder_new(config, &error);
    weir_main *weir = builder ? weir_builder_start(builder, &error) : NULL;
    if (!weir)
        fail(error);

    weir_buffer *answer = weir_call(weir, "echo@1", "echo", "hello", strlen("hello"), WEIR_NO_TIMEOUT, &error);
    if (!answer)
        fail(error);
    printf("%s\n", weir_buffer_data(answer, NULL));
    weir_buffer_free(answer);

    if (!weir_main_shutdown(weir, &error))
        fail(error);
    weir_main_free(weir);
    return EXIT_SUCCESS;
}
