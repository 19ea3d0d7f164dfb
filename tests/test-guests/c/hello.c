// An extension in C. It serves the contract `hello.c@1` with two operations:
//   greet  answers "hello, " and the payload of the request
//   fail   answers the handler error `asked`
#include <stdlib.h>
#include <string.h>

#include "weir.h" // wit-bindgen makes it from wit/iec.wit

static const char GREETING[] = "hello, ";

// The operations, in the order in which `serve` is given their names.
enum { GREET, FAIL, OPERATIONS };

static weir_string_t text(const char *chars) {
    return (weir_string_t){(uint8_t *)chars, strlen(chars)};
}

static void respond_error(weir_iec_channel_message_id_t request, const char *code, const char *message) {
    weir_iec_channel_result_list_u8_handler_error_t answer = {
        .is_err = true,
        .val.err = {text(code), text(message)},
    };
    weir_iec_types_error_t error;
    if (!weir_iec_channel_respond(request, &answer, &error)) {
        weir_iec_types_error_free(&error);
    }
}

// What goes into an import stays ours to free; what comes out of one becomes ours.
static void greet(const weir_iec_channel_request_t *request) {
    size_t prefix = strlen(GREETING), length = prefix + request->payload.len;
    uint8_t *greeting = malloc(length);
    if (greeting == NULL) {
        respond_error(request->id, "no-memory", "the greeting does not fit into memory");
        return;
    }
    memcpy(greeting, GREETING, prefix);
    memcpy(greeting + prefix, request->payload.ptr, request->payload.len);

    weir_iec_channel_result_list_u8_handler_error_t answer = {.val.ok = {greeting, length}};
    weir_iec_types_error_t error;
    if (!weir_iec_channel_respond(request->id, &answer, &error)) {
        weir_iec_types_error_free(&error);
        respond_error(request->id, "too-long", "the greeting is larger than a message may be");
    }
    free(greeting);
}

int main(void) {
    weir_string_t contract = text("hello.c@1");
    weir_string_t names[OPERATIONS] = {[GREET] = text("greet"), [FAIL] = text("fail")};
    weir_list_string_t operations = {names, OPERATIONS};
    uint32_t first; // requests carry this number for GREET, the next one for FAIL
    weir_iec_types_error_t error;
    if (!weir_iec_channel_serve(&contract, &operations, &first, &error)) {
        weir_string_t reason = text("`hello.c@1` cannot be served: does `fulfills` list it?");
        weir_iec_lifecycle_error(&reason);
        return EXIT_FAILURE;
    }
    weir_string_t line = text("serving `hello.c@1`");
    weir_iec_log_write(WEIR_IEC_LOG_LEVEL_INFO, &line, &(weir_iec_log_list_field_t){NULL, 0});

    weir_iec_channel_message_t message;
    while (weir_iec_channel_receive(&message)) { // false means: stop
        if (message.tag == WEIR_IEC_CHANNEL_MESSAGE_REQUEST) {
            switch (message.val.request.operation - first) {
            case GREET: greet(&message.val.request); break;
            case FAIL: respond_error(message.val.request.id, "asked", "failed, as asked"); break;
            }
        }
        weir_iec_channel_message_free(&message);
    }
    return EXIT_SUCCESS;
}
