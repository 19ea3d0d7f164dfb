// The extension of README.md.
#include "weir_sdk.h"

static void greet(wr_request *request) {
  if (request->length == 0) {
    wr_fail(request, "no-name", "there is nobody to greet");
  } else {
    wr_answer_text(request, "hello %s", request->payload);
  }
}

int main(void) {
  static const wr_operation operations[] = {{"greet", greet}};
  wr_error error;
  if (!wr_serve("greeter@1", operations, 1, &error)) return wr_failed(wr_error_case(&error));
  wr_run();
  return 0;
}
