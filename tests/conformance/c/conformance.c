// The conformance guest in C: ../README.md specifies it.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir_sdk.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

// Splits off so many words; the last is the rest of the line. Missing ones are empty.
static void split(char *line, char **words, size_t count) {
  for (size_t i = 0; i + 1 < count; i++) {
    words[i] = line;
    char *space = strchr(line, ' ');
    line = space == NULL ? line + strlen(line) : space + 1;
    if (space != NULL) *space = '\0';
  }
  words[count - 1] = line;
}

static char *copy(weir_string_t text) {
  return strndup((const char *)text.ptr, text.len);
}

// `error CASE` and its fields.
static char *told(const wr_error *error) {
  char *text = NULL, *first = NULL, *second = NULL;
  const char *name = wr_error_case(error);
  switch (error->tag) {
    case WEIR_IEC_TYPES_ERROR_TIMEOUT:
    case WEIR_IEC_TYPES_ERROR_PEER_GONE:
    case WEIR_IEC_TYPES_ERROR_TRAPPED: asprintf(&text, "error %s", name); break;
    case WEIR_IEC_TYPES_ERROR_LIMIT_EXCEEDED: {
      const weir_iec_types_limit_t *limit = &error->val.limit_exceeded;
      first = copy(limit->name);
      asprintf(&text, "error %s %s %llu %llu", name, first, limit->used, limit->allowed);
      break;
    }
    case WEIR_IEC_TYPES_ERROR_WOULD_DEADLOCK: {
      asprintf(&text, "error %s", name);
      for (size_t i = 0; i < error->val.would_deadlock.len; i++) {
        char *before = text, *peer = copy(error->val.would_deadlock.ptr[i]);
        asprintf(&text, "%s %s", before, peer);
        free(before);
        free(peer);
      }
      break;
    }
    case WEIR_IEC_TYPES_ERROR_TOO_LARGE: {
      const weir_iec_types_size_t *size = &error->val.too_large;
      asprintf(&text, "error %s %llu %llu", name, size->bytes, size->allowed);
      break;
    }
    case WEIR_IEC_TYPES_ERROR_HANDLER:
      first = copy(error->val.handler.code);
      second = copy(error->val.handler.message);
      asprintf(&text, "error %s %s %s", name, first, second);
      break;
    default:
      // The other cases have one text.
      first = copy(error->val.invalid);
      asprintf(&text, "error %s %s", name, first);
  }
  free(first);
  free(second);
  return text;
}

// Answers `ok`, or the error.
static void answer_outcome(wr_request *request, bool is_ok, wr_error *error) {
  char *text = is_ok ? strdup("ok") : told(error);
  wr_answer_text(request, "%s", text);
  free(text);
  if (!is_ok) wr_error_free(error);
}

static char *outcome_text(const wr_outcome *outcome) {
  if (outcome->is_err) return told(&outcome->val.err);
  char *text;
  int length = (int)outcome->val.ok.len;
  asprintf(&text, length > 0 ? "ok %.*s" : "ok", length, (const char *)outcome->val.ok.ptr);
  return text;
}

static void publish_text(const char *topic, const char *text) {
  wr_receipt receipt;
  wr_error error;
  if (!wr_publish(NULL, NULL, topic, text, strlen(text), &receipt, &error)) {
    char *why = told(&error);
    wr_log(WEIR_IEC_LOG_LEVEL_ERROR, why, NULL, 0);
    free(why);
    wr_error_free(&error);
  }
}

// Numbers, as JSON. A program with more of it takes a library.

static bool read_numbers(const char *json, long long *left, long long *right) {
  int end = 0;
  return sscanf(json, " { \"left\" : %lld , \"right\" : %lld } %n", left, right, &end) == 2 && end > 0 && json[end] == '\0';
}

static void add(wr_request *request) {
  long long left, right;
  if (!read_numbers(request->payload, &left, &right)) {
    wr_fail(request, "invalid-argument", "expected `left` and `right`");
  } else if (left > 1000000) {
    wr_fail(request, "overflow", "`left` is over 1,000,000");
  } else {
    char sum[40];
    snprintf(sum, sizeof sum, "{\"sum\":%lld}", left + right);
    publish_text("conformance.out.sum", sum);
    wr_answer_text(request, "%s", sum);
  }
}

static void add_event(const wr_event *event) {
  long long left, right;
  if (!read_numbers(event->payload, &left, &right)) {
    wr_log(WEIR_IEC_LOG_LEVEL_WARN, "an event is no numbers", NULL, 0);
    return;
  }
  char sum[40];
  snprintf(sum, sizeof sum, "{\"sum\":%lld}", left + right);
  publish_text("conformance.out.sum", sum);
}

static void relayed(void *data, const wr_outcome *outcome) {
  char *text = outcome_text(outcome);
  long long sum;
  if (outcome->is_err) {
    wr_answer_text(data, "%s", text);
  } else if (sscanf(text, "ok { \"sum\" : %lld }", &sum) == 1) {
    wr_answer_text(data, "ok %lld", sum);
  } else {
    wr_answer_text(data, "error handler invalid-answer expected `sum`");
  }
  free(text);
}

static void relay(wr_request *request) {
  char *words[2], numbers[80];
  split(request->payload, words, 2);
  snprintf(numbers, sizeof numbers, "{\"left\":%s,\"right\":%s}", words[0], words[1]);
  uint32_t target;
  wr_error error;
  if (!wr_open("tester@1", "add", NULL, &target, &error) ||
      !wr_send(request, target, numbers, strlen(numbers), 0, relayed, request, NULL, &error)) {
    answer_outcome(request, false, &error);
  }
}

static void echo(wr_request *request) {
  wr_answer(request, request->payload, request->length);
}

static void large(wr_request *request) {
  size_t length = strtoul(request->payload, NULL, 10);
  char *bytes = malloc(length + 1);
  memset(bytes, 'x', length);
  wr_answer(request, bytes, length);
  free(bytes);
}

static void fail(wr_request *request) {
  char *words[2];
  split(request->payload, words, 2);
  wr_fail(request, words[0], words[1]);
}

__attribute__((noinline)) static void fail_unexpectedly(void) {
  fputs("out of cheese\n", stderr);
  abort();
}

static void break_(wr_request *request) {
  fail_unexpectedly();
  wr_answer(request, NULL, 0);
}

static void spin(wr_request *request) {
  for (volatile unsigned turns = 0;; turns++) {
  }
  wr_answer(request, NULL, 0);
}

// Sends `CONTRACT OPERATION PROVIDER MS PAYLOAD`.
static bool send_line(wr_request *request, wr_reply reply, void *data, uint64_t *id, wr_error *error) {
  char *words[5];
  split(request->payload, words, 5);
  uint32_t target;
  const char *provider = strcmp(words[2], "-") == 0 ? NULL : words[2];
  return wr_open(words[0], words[1], provider, &target, error) &&
         wr_send(request, target, words[4], strlen(words[4]), strtoul(words[3], NULL, 10), reply, data, id, error);
}

static void called(void *data, const wr_outcome *outcome) {
  char *text = outcome_text(outcome);
  wr_answer_text(data, "%s", text);
  free(text);
}

static void call(wr_request *request) {
  wr_error error;
  if (!send_line(request, called, request, NULL, &error)) answer_outcome(request, false, &error);
}

static void responded(void *data, const wr_outcome *outcome) {
  (void)data;
  char *text = outcome_text(outcome);
  publish_text("conformance.out.response", text);
  free(text);
}

static void send_(wr_request *request) {
  wr_error error;
  if (!send_line(request, responded, NULL, NULL, &error)) {
    char *text = told(&error);
    publish_text("conformance.out.response", text);
    free(text);
    wr_error_free(&error);
  }
  wr_answer_text(request, "ok");
}

typedef struct sent {
  wr_request *request;
  uint64_t id;
} sent;

static void come_too_early(void *data, const wr_outcome *outcome) {
  (void)data;
  (void)outcome;
}

static void give_up(void *data, bool in_time) {
  (void)in_time;
  sent *sent = data;
  wr_cancel(sent->id);
  wr_answer_text(sent->request, "ok");
  free(sent);
}

static void cancel(wr_request *request) {
  sent *sent = malloc(sizeof *sent);
  sent->request = request;
  wr_error error;
  if (send_line(request, come_too_early, sent, &sent->id, &error)) {
    wr_after(request, 50, give_up, sent);
  } else {
    free(sent);
    answer_outcome(request, false, &error);
  }
}

static void publish_from(wr_request *request, const char *to, const char *topic, const char *payload) {
  wr_receipt receipt;
  wr_error error;
  if (wr_publish(request, to, topic, payload, strlen(payload), &receipt, &error)) {
    wr_answer_text(request, "ok %u %u %u", receipt.delivered, receipt.shed, receipt.refused);
  } else {
    answer_outcome(request, false, &error);
  }
}

static void publish(wr_request *request) {
  char *words[2];
  split(request->payload, words, 2);
  publish_from(request, NULL, words[0], words[1]);
}

static void publish_to(wr_request *request) {
  char *words[3];
  split(request->payload, words, 3);
  publish_from(request, words[0], words[1], words[2]);
}

static void hear(const wr_event *event) {
  char *sender = wr_name_of(event->sender), *line;
  asprintf(&line, "%s %llu %llu %s %s %s", event->topic, event->sequence, event->lost,
           event->retained ? "retained" : "new", sender, event->payload);
  publish_text("conformance.out.heard", line);
  free(sender);
  free(line);
}

static void subscribe(wr_request *request) {
  wr_error error;
  answer_outcome(request, wr_subscribe(request->payload, hear, &error), &error);
}

static void unsubscribe(wr_request *request) {
  wr_error error;
  answer_outcome(request, wr_unsubscribe(request->payload, &error), &error);
}

static void put(wr_request *request) {
  char *words[3];
  split(request->payload, words, 3);
  wr_error error;
  bool is_put = wr_put(request, words[0], words[2], strlen(words[2]), strtoul(words[1], NULL, 10), &error);
  answer_outcome(request, is_put, &error);
}

static bool taken(void *data, const wr_job *job) {
  if (job == NULL) {
    wr_answer_text(data, "error timeout");
  } else {
    wr_answer_text(data, "ok %s", job->payload);
  }
  return true;
}

static void take(wr_request *request) {
  char *words[2];
  split(request->payload, words, 2);
  wr_error error;
  if (!wr_take(request, words[0], strtoul(words[1], NULL, 10), taken, request, &error)) {
    answer_outcome(request, false, &error);
  }
}

static bool work(const wr_job *job) {
  if (strcmp(job->payload, "fail") == 0) return false;
  if (strcmp(job->payload, "die") == 0) exit(1);
  if (strcmp(job->payload, "ready") == 0) {
    wr_ready();
  } else {
    publish_text("conformance.out.worked", job->payload);
  }
  return true;
}

static void slept(void *data, bool in_time) {
  wr_request *request = data;
  if (in_time) publish_text("conformance.out.slept", request->payload);
  // Main discards the answer if it is late.
  wr_answer(request, NULL, 0);
}

static void sleep_(wr_request *request) {
  wr_after(request, strtoul(request->payload, NULL, 10), slept, request);
}

static void context(wr_request *request) {
  char *own = wr_own_name(), *sender = wr_name_of(request->sender);
  wr_answer_text(request, "%s %s %u", own, sender, wr_remaining_ms(request));
  free(own);
  free(sender);
}

static void interrupt(wr_request *request) {
  wr_interrupted(request->payload);
  wr_answer_text(request, "ok");
}

static void write_log(wr_request *request) {
  static const char *const levels[] = {"trace", "debug", "info", "warn", "error"};
  static const char *const fields[][2] = {{"from", "conformance"}};
  char *words[2];
  split(request->payload, words, 2);
  for (weir_iec_log_level_t level = 0; level < LENGTH(levels); level++) {
    if (strcmp(words[0], levels[level]) == 0) wr_log(level, words[1], fields, 1);
  }
  wr_answer_text(request, "ok");
}

static void answer_value(wr_request *request, const char *value) {
  if (value == NULL) {
    wr_answer_text(request, "none");
  } else {
    wr_answer_text(request, "ok %s", value);
  }
}

static void config(wr_request *request) {
  char *value = wr_config(request->payload);
  answer_value(request, value);
  free(value);
}

static void env(wr_request *request) {
  answer_value(request, getenv(request->payload));
}

static void read_(wr_request *request) {
  FILE *file = fopen(request->payload, "r");
  char content[4096];
  if (file == NULL) {
    wr_answer_text(request, "error %s", strerror(errno));
    return;
  }
  size_t length = fread(content, 1, sizeof content, file);
  wr_answer_text(request, "ok %.*s", (int)length, content);
  fclose(file);
}

static void write_(wr_request *request) {
  char *words[2];
  split(request->payload, words, 2);
  FILE *file = fopen(words[0], "w");
  bool is_open = file != NULL, is_written = is_open && fputs(words[1], file) >= 0;
  if (is_open && fclose(file) == 0 && is_written) {
    wr_answer_text(request, "ok");
  } else {
    wr_answer_text(request, "error %s", strerror(errno));
  }
}

static unsigned char table[4096];

// The pattern of the table at this place.
static unsigned char at_place(size_t place) {
  return (unsigned char)(place * 7 + 1);
}

__attribute__((noinline)) static int down(int levels) {
  volatile char frame[256];
  frame[0] = (char)levels;
  return levels > 0 ? down(levels - 1) + frame[0] : 0;
}

static void recurse(wr_request *request) {
  down(atoi(request->payload));
  for (size_t i = 0; i < sizeof table; i++) {
    if (table[i] != at_place(i)) {
      wr_answer_text(request, "overwritten");
      return;
    }
  }
  wr_answer_text(request, "ok");
}

int main(void) {
  for (size_t i = 0; i < sizeof table; i++) table[i] = at_place(i);
  static const wr_operation operations[] = {
      {"echo", echo},       {"large", large},           {"add", add},         {"relay", relay},
      {"fail", fail},       {"break", break_},          {"spin", spin},       {"call", call},
      {"send", send_},      {"cancel", cancel},         {"publish", publish}, {"publish-to", publish_to},
      {"subscribe", subscribe}, {"unsubscribe", unsubscribe}, {"put", put},   {"take", take},
      {"sleep", sleep_},    {"context", context},       {"interrupt", interrupt}, {"log", write_log},
      {"config", config},   {"env", env},               {"read", read_},      {"write", write_},
      {"recurse", recurse},
  };
  static const char *const fields[][2] = {{"language", "C"}};
  char *start = wr_config("start");
  if (start != NULL && strcmp(start, "fail") == 0) return wr_failed("asked to fail");
  free(start);
  wr_error error;
  if (!wr_serve("conformance@1", operations, LENGTH(operations), &error) ||
      !wr_subscribe("conformance.in.>", hear, &error) || !wr_subscribe("conformance.numbers", add_event, &error) ||
      !wr_work("conformance-jobs", work, &error)) {
    return wr_failed(told(&error));
  }
  wr_log(WEIR_IEC_LOG_LEVEL_INFO, "conformance is ready", fields, 1);
  wr_run();
  publish_text("conformance.out.stopped", "bye");
  return 0;
}
