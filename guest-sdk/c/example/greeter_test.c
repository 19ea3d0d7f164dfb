// The native test of README.md.
#include "weir_test.h"

int extension_main(void);

static void greets(void) { wt_expect_text(wt_call("greeter@1/greet", "Ada").payload, "hello Ada"); }

static void refuses_nobody(void) {
  wt_result result = wt_call("greeter@1/greet", "");
  wt_expect_text(result.error, "handler");
  wt_expect_text(result.code, "no-name");
}

static void needs_its_contract(void) {
  wt_deny("greeter@1");
  wt_expect(wt_stop() == 1);
  wt_expect_text(wt_failure(), "permission-denied");
}

int main(void) {
  static const wt_test tests[] = {
      {"greets", greets},
      {"refuses nobody", refuses_nobody},
      {"needs its contract", needs_its_contract},
  };
  return wt_run(extension_main, tests, 3);
}
