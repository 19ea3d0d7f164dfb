// Tests of the harness, weir_test.h, with the extension probe.c.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir_test.h"

int extension_main(void);

static wt_result now(void *data, const char *payload, size_t length) {
  ++*(int *)data;
  wt_expect(length == 0 || strcmp(payload, "when") == 0);
  return wt_answer("noon");
}

static wt_result slowly(void *data, const char *payload, size_t length) {
  (void)payload, (void)length;
  wt_result answer = wt_answer("at last");
  answer.delay_ms = *(uint32_t *)data;
  return answer;
}

static wt_result wrongly(void *data, const char *payload, size_t length) {
  (void)payload, (void)length;
  return wt_error(data, "broken", "the clock stands still");
}

static const char *answer(const char *operation, const char *arguments) {
  wt_result result = wt_call(operation, arguments);
  wt_expect_text(result.error, NULL);
  return result.payload;
}

static const char *error(const char *operation, const char *arguments) { return wt_call(operation, arguments).error; }

static void answers_and_errors(void) {
  wt_message_size(8);
  wt_expect_text(answer("probe@1/echo", ""), "");
  wt_result bytes = wt_wait(wt_send("probe@1/echo", "a\0b", 3, 0));
  wt_expect(bytes.length == 3 && memcmp(bytes.payload, "a\0b", 3) == 0);
  wt_expect_text(error("probe@1/echo", "123456789"), "too-large");
  wt_expect_text(error("probe@1/none", ""), "invalid");
  wt_result large = wt_call("probe@1/names", "");
  wt_expect_text(large.error, "handler");
  wt_expect_text(large.code, "too-large");
  wt_expect_text(wt_logged()->message, "an answer is too large");
  wt_expect(wt_logged() == NULL);
}

static void config_and_names(void) {
  wt_config("colour", "red");
  wt_config("colour", "blue");
  wt_own_name("me");
  wt_expect_text(answer("probe@1/config", "colour"), "blue");
  wt_expect_text(answer("probe@1/config", "size"), "none");
  wt_expect_text(answer("probe@1/names", ""), "me test ");
  wt_sender("ada");
  wt_expect_text(answer("probe@1/names", ""), "me ada ");
}

static void time_passes_only_for_the_test(void) {
  uint64_t start = wr_now_ms();
  wt_expect_text(answer("probe@1/sleep", "3000"), "slept");
  wt_expect(wr_now_ms() == start + 3000);
  uint64_t first = wt_send("probe@1/sleep", "200", 3, 0), second = wt_send("probe@1/sleep", "100", 3, 0);
  wt_advance(99);
  wt_expect(!wt_is_answered(first) && !wt_is_answered(second));
  wt_advance(1);
  wt_expect(!wt_is_answered(first) && wt_is_answered(second));
  wt_advance(1000);
  wt_expect(wt_is_answered(first));
  wt_expect_text(error("probe@1/sleep", "6000"), "timeout");
  wt_expect(wr_now_ms() == start + 3000 + 1100 + 5000);
}

static void fakes_answer(void) {
  int calls = 0;
  uint32_t delay_ms = 400;
  wt_fake("clock@1/now", now, &calls);
  wt_fake("clock@1/slow", slowly, &delay_ms);
  wt_fake("clock@1/fails", wrongly, "handler");
  wt_fake("clock@1/is-full", wrongly, "overloaded");
  wt_fake("clock@1/has-a-limit", wrongly, "limit-exceeded");
  wt_fake("clock@1/is-gone", wrongly, "peer-gone");
  wt_expect_text(answer("probe@1/ask", "now"), "noon");
  wt_expect_text(answer("probe@1/ask-and-block", ""), "noon");
  wt_expect(calls == 2);
  wt_expect_text(answer("probe@1/ask", "fails"), "handler broken");
  wt_expect_text(answer("probe@1/ask", "is-full"), "overloaded");
  wt_expect_text(answer("probe@1/ask", "has-a-limit"), "limit-exceeded");
  wt_expect_text(answer("probe@1/ask", "is-gone"), "peer-gone");
  wt_expect_text(answer("probe@1/ask", "unknown"), "invalid");
  uint64_t before = wr_now_ms();
  wt_expect_text(answer("probe@1/ask", "slow"), "at last");
  wt_expect(wr_now_ms() == before + 400);
  delay_ms = 1001;
  wt_expect_text(answer("probe@1/ask", "slow"), "timeout");
}

static void a_call_has_the_time_of_its_request(void) {
  uint32_t delay_ms = 400;
  wt_fake("clock@1/now", slowly, &delay_ms);
  uint64_t id = wt_send("probe@1/ask", "now", 3, 300);
  wt_expect(wt_calls_under_way() == 1);
  wt_advance(299);
  wt_expect(!wt_is_answered(id));
  wt_advance(1);
  wt_expect(wt_calls_under_way() == 0);
  wt_expect_text(answer("probe@1/ask-and-block", ""), "at last");
}

static void a_call_is_given_up(void) {
  uint32_t delay_ms = 400;
  wt_fake("clock@1/now", slowly, &delay_ms);
  uint64_t id = wt_send("probe@1/ask", "now", 3, 0);
  wt_expect_text(answer("probe@1/give-up", ""), "one");
  wt_expect_text(wt_wait(id).payload, "given up");
  wt_expect(wt_calls_under_way() == 0);
  wt_expect_text(answer("probe@1/give-up", ""), "nothing");
}

static void no_provider_and_no_grant(void) {
  wt_expect_text(answer("probe@1/ask", "now"), "unknown-contract");
  wt_deny("clock@1");
  wt_expect_text(answer("probe@1/ask", "now"), "permission-denied");
  wt_deny("out.one");
  wt_expect_text(answer("probe@1/publish", ""), "permission-denied");
  wt_deny("out");
  wt_expect_text(answer("probe@1/put", ""), "permission-denied");
}

static void events(void) {
  wt_retain("in.old.one", "kept", 4);
  wt_expect_text(answer("probe@1/last-event", ""), "in.old.one 1 lost 0 retained");
  wt_expect(wt_publish("in.a", "1", 1) == 1);
  wt_expect(wt_publish("in", "1", 1) == 0);
  wt_expect(wt_publish("outside.a", "1", 1) == 0);
  wt_lose(3);
  wt_expect(wt_publish("in.a", "2", 1) == 1);
  wt_expect_text(answer("probe@1/last-event", ""), "in.a 2 lost 3");
  wt_expect(wt_publish("alone", "3", 1) == 1);
  wt_expect_text(answer("probe@1/last-event", ""), "alone 1 lost 0");
  wt_expect_text(wt_logged()->fields[0], "sender=main");
  const wt_line *line = wt_logged();
  wt_expect(line->level == WEIR_IEC_LOG_LEVEL_INFO && line->count == 2);
  wt_expect_text(line->message, "in.a");
  wt_expect_text(line->fields[0], "sender=test");
  wt_expect_text(line->fields[1], "payload=1");
  wt_expect_text(answer("probe@1/unsubscribe", ""), "unsubscribed");
  wt_expect_text(answer("probe@1/unsubscribe", ""), "invalid");
  wt_expect(wt_publish("in.a", "4", 1) == 0);
}

static void published_events(void) {
  wt_expect(wt_published() == NULL);
  wt_expect_text(answer("probe@1/publish", "all"), "published");
  const wt_message *event = wt_published();
  wt_expect_text(event->name, "out.all");
  wt_expect_text(event->to, NULL);
  wt_expect_text(event->payload, "all");
  event = wt_published();
  wt_expect_text(event->name, "out.one");
  wt_expect_text(event->to, "other");
  wt_expect(wt_published() == NULL);
}

static void jobs(void) {
  uint64_t good = wt_put("jobs", "good", 4), bad = wt_put("jobs", "bad", 3), once = wt_put("once", "work", 4);
  wt_expect(wt_job(good) == WT_DONE);
  wt_expect(wt_job(bad) == WT_DEAD);
  wt_expect(wt_job(once) == WT_WAITING);
  wt_expect_text(answer("probe@1/take", "once"), "work");
  wt_expect(wt_job(once) == WT_DONE);
  uint64_t before = wr_now_ms();
  wt_expect_text(answer("probe@1/take", "once"), "no job");
  wt_expect(wr_now_ms() == before + 200);
  wt_expect_text(answer("probe@1/take", "jobs"), "invalid");
  wt_expect(wt_job(wt_put("once", "more", 4)) == WT_WAITING);
  wt_expect_text(answer("probe@1/put", "mine"), "put");
  wt_expect_text(wt_taken("out")->payload, "mine");
  wt_expect(wt_taken("out") == NULL);
}

static void interruption(void) {
  wt_expect_text(wt_interrupted(), NULL);
  wt_expect_text(answer("probe@1/interrupt", ""), "interrupted");
  wt_expect_text(wt_interrupted(), "the disk is full");
  wt_expect_text(error("probe@1/echo", ""), "not-ready");
}

static void a_stop_waits_for_requests_in_hand(void) {
  uint64_t slept = wt_send("probe@1/sleep", "700", 3, 0);
  wt_expect(wt_stop() == 0);
  wt_expect_text(wt_wait(slept).payload, "slept");
  wt_expect_text(error("probe@1/echo", ""), "no-provider");
}

static void a_stop_ends_a_request_that_nobody_answers(void) {
  uint64_t kept = wt_send("probe@1/keep", "", 0, 0);
  wt_expect(wt_stop() == 0);
  wt_expect_text(wt_wait(kept).code, "stopped");
}

static void a_start_that_fails(void) {
  wt_deny("jobs");
  wt_expect_text(error("probe@1/echo", ""), "no-provider");
  wt_expect(wt_stop() == 1);
  wt_expect_text(wt_failure(), "permission-denied");
}

// These have to fail.

static void crashes(void) { wt_call("probe@1/crash", ""); }
static void is_wrong(void) { wt_expect(1 == 2); }
static void differs(void) { wt_expect_text(answer("probe@1/echo", "a"), "b"); }
static void does_not_start(void) {
  wt_deny("jobs");
  wt_start();
}

int main(void) {
  static const wt_test failing[] = {
      {"crashes", crashes}, {"is wrong", is_wrong}, {"differs", differs}, {"does not start", does_not_start}};
  for (size_t i = 0; i < 4; i++) {
    if (wt_run(extension_main, &failing[i], 1) != 1) return 1;
  }
  puts("the failures up to here are wanted");
  static const wt_test tests[] = {
      {"answers and errors", answers_and_errors},
      {"config and names", config_and_names},
      {"time passes only for the test", time_passes_only_for_the_test},
      {"fakes answer", fakes_answer},
      {"a call has the time of its request", a_call_has_the_time_of_its_request},
      {"a call is given up", a_call_is_given_up},
      {"no provider and no grant", no_provider_and_no_grant},
      {"events", events},
      {"published events", published_events},
      {"jobs", jobs},
      {"interruption", interruption},
      {"a stop waits for requests in hand", a_stop_waits_for_requests_in_hand},
      {"a stop ends a request that nobody answers", a_stop_ends_a_request_that_nobody_answers},
      {"a start that fails", a_start_that_fails},
  };
  return wt_run(extension_main, tests, sizeof tests / sizeof *tests);
}
