/* The functions of the interface in `wit/plugin.wit`, as `wit-bindgen` names them. */

#include "greeting.h"
#include "plugin.h"

/* True: the result is there. False: the error is. The function frees its arguments, and the bindings free the result. */
bool exports_local_plugin_greeter_greet(plugin_string_t *name, plugin_string_t *result,
                                        exports_local_plugin_greeter_problem_t *error) {
    char *text;
    const bool is_greeted = greeting((const char *)name->ptr, name->len, &text, &result->len);
    if (is_greeted) {
        result->ptr = (uint8_t *)text;
    } else {
        *error = EXPORTS_LOCAL_PLUGIN_GREETER_PROBLEM_NOBODY;
    }
    plugin_string_free(name);
    return is_greeted;
}
