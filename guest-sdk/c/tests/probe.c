// An extension that does what the tests of the harness ask for.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir_sdk.h"

// Answers with the error's case, so that a test sees it. True if there was one.
static bool told(wr_request *request, bool is_done, wr_error *error) {
  if (!is_done) wr_answer_text(request, "%s", wr_error_case(error));
  if (!is_done) wr_error_free(error);
  return !is_done;
}

static void echo(wr_request *request) { wr_answer(request, request->payload, request->length); }

static void own_config(wr_request *request) {
  char *value = wr_config(request->payload);
  wr_answer_text(request, "%s", value == NULL ? "none" : value);
  free(value);
}

static void names(wr_request *request) {
  char *own = wr_own_name(), *sender = wr_name_of(request->sender), *stranger = wr_name_of(99);
  wr_answer_text(request, "%s %s %s", own, sender, stranger);
  free(own);
  free(sender);
  free(stranger);
}

static void woken(void *data, bool in_time) { wr_answer_text(data, "%s", in_time ? "slept" : "too late"); }

static void sleep_for(wr_request *request) { wr_after(request, (uint32_t)atoi(request->payload), woken, request); }

static void replied(void *data, const wr_outcome *outcome) {
  wr_request *request = data;
  if (!outcome->is_err) {
    wr_answer(request, outcome->val.ok.ptr, outcome->val.ok.len);
  } else if (outcome->val.err.tag == WEIR_IEC_TYPES_ERROR_HANDLER) {
    const weir_string_t *code = &outcome->val.err.val.handler.code;
    wr_answer_text(request, "handler %.*s", (int)code->len, (const char *)code->ptr);
  } else {
    wr_answer_text(request, "%s", wr_error_case(&outcome->val.err));
  }
}

static uint64_t last_sent;

static void ask(wr_request *request) {
  uint32_t target;
  wr_error error;
  if (told(request, wr_open("clock@1", request->payload, NULL, &target, &error), &error)) return;
  told(request, wr_send(request, target, "when", 4, 1000, replied, request, &last_sent, &error), &error);
}

static void give_up(wr_request *request) {
  wr_request *other = wr_cancel(last_sent);
  if (other != NULL) wr_answer_text(other, "given up");
  wr_answer_text(request, "%s", other == NULL ? "nothing" : "one");
}

static void ask_and_block(wr_request *request) {
  uint32_t target;
  wr_error error;
  if (told(request, wr_open("clock@1", "now", NULL, &target, &error), &error)) return;
  weir_iec_types_options_t options = wr_options(request, 0);
  wr_bytes question = {NULL, 0}, answer;
  if (told(request, weir_iec_requests_call(target, &question, &options, &answer, &error), &error)) return;
  wr_answer(request, answer.ptr, answer.len);
  weir_list_u8_free(&answer);
}

static void publish(wr_request *request) {
  wr_receipt receipt;
  wr_error error;
  const char *payload = request->payload;
  if (told(request, wr_publish(request, NULL, "out.all", payload, request->length, &receipt, &error), &error)) return;
  if (told(request, wr_publish(NULL, "other", "out.one", "1", 1, &receipt, &error), &error)) return;
  wr_answer_text(request, "published");
}

static void put(wr_request *request) {
  wr_error error;
  if (told(request, wr_put(request, "out", request->payload, request->length, 0, &error), &error)) return;
  wr_answer_text(request, "put");
}

static bool taken(void *data, const wr_job *job) {
  wr_answer_text(data, "%s", job == NULL ? "no job" : job->payload);
  return true;
}

static void take(wr_request *request) {
  wr_error error;
  told(request, wr_take(request, request->payload, 200, taken, request, &error), &error);
}

static char seen[200];

static void on_event(const wr_event *event) {
  char *sender = wr_name_of(event->sender);
  const char *const fields[][2] = {{"sender", sender}, {"payload", event->payload}};
  wr_log(WEIR_IEC_LOG_LEVEL_INFO, event->topic, fields, 2);
  free(sender);
  snprintf(seen, sizeof seen, "%s %llu lost %llu%s", event->topic, (unsigned long long)event->sequence,
           (unsigned long long)event->lost, event->retained ? " retained" : "");
}

static void last_event(wr_request *request) { wr_answer_text(request, "%s", seen); }

static void unsubscribe(wr_request *request) {
  wr_error error;
  if (!told(request, wr_unsubscribe("in.>", &error), &error)) wr_answer_text(request, "unsubscribed");
}

static bool on_job(const wr_job *job) { return strcmp(job->payload, "bad") != 0; }

static void interrupt(wr_request *request) {
  wr_interrupted("the disk is full");
  wr_answer_text(request, "interrupted");
}

static void crash(wr_request *request) {
  (void)request;
  abort();
}

static wr_request *kept;

static void keep(wr_request *request) { kept = request; }

int main(void) {
  static const wr_operation operations[] = {
      {"echo", echo}, {"config", own_config}, {"names", names}, {"sleep", sleep_for}, {"ask", ask},
      {"give-up", give_up}, {"ask-and-block", ask_and_block}, {"publish", publish}, {"put", put}, {"take", take},
      {"last-event", last_event}, {"unsubscribe", unsubscribe}, {"interrupt", interrupt}, {"crash", crash},
      {"keep", keep},
  };
  wr_error error;
  if (!wr_serve("probe@1", operations, sizeof operations / sizeof *operations, &error) ||
      !wr_subscribe("in.>", on_event, &error) || !wr_subscribe("alone", on_event, &error) ||
      !wr_work("jobs", on_job, &error)) {
    wr_failed(wr_error_case(&error));
    wr_error_free(&error);
    return 1;
  }
  wr_run();
  if (kept != NULL) wr_fail(kept, "stopped", "the extension stops");
  return 0;
}
