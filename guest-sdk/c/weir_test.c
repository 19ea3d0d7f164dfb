// See weir_test.h.
//
// The extension has a thread of its own, for its stack. Only the side whose turn it is runs.
#define _GNU_SOURCE
#include "weir_memory.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TEST_SECONDS 60

typedef struct block {
  struct block *next;
  max_align_t memory[];
} block;

wt_state wt_memory = {.own_name = "extension", .message_size = SIZE_MAX, .wakes_ms = UINT64_MAX};

static block *held;
static int (*extension_main)(void);
static pthread_t thread;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_started, extension_runs;
static int exit_code;

void *wt_hold(size_t size) {
  block *new = calloc(1, sizeof *new + size);
  if (new == NULL) abort();
  new->next = held;
  held = new;
  return new->memory;
}

char *wt_hold_bytes(const void *bytes, size_t length) {
  char *copy = wt_hold(length + 1);
  if (length > 0) memcpy(copy, bytes, length);
  return copy;
}

char *wt_hold_text(const char *text) { return wt_hold_bytes(text, strlen(text)); }

uint32_t wt_number_in(wt_named **list, const char *name) {
  uint32_t number = 0;
  for (wt_named *known = *list; known != NULL; known = known->next, number++) {
    if (strcmp(known->name, name) == 0) return number;
  }
  wt_named *new = wt_hold(sizeof *new);
  new->name = wt_hold_text(name);
  WT_APPEND(*list, new);
  return number;
}

wt_named *wt_named_by(wt_named *list, uint32_t number) {
  while (list != NULL && number-- > 0) list = list->next;
  return list;
}

void wt_fail_test(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  _exit(1);
}

void wt_unexpected(const char *file, int line, const char *condition) {
  wt_fail_test("%s:%d: not so: %s", file, line, condition);
}

void wt_expect_same(const char *file, int line, const char *what, const char *actual, const char *expected) {
  if (actual == expected || (actual != NULL && expected != NULL && strcmp(actual, expected) == 0)) return;
  wt_fail_test("%s:%d: %s is \"%s\", not \"%s\"", file, line, what, actual == NULL ? "(NULL)" : actual,
               expected == NULL ? "(NULL)" : expected);
}

// Turns.

static void hand_over(bool to_extension) {
  pthread_mutex_lock(&mutex);
  extension_runs = to_extension;
  pthread_cond_broadcast(&changed);
  while (extension_runs == to_extension) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

void wt_park(uint64_t until_ms) {
  wt_memory.wakes_ms = until_ms;
  hand_over(false);
}

static void *run_extension(void *unused) {
  exit_code = extension_main();
  wt_memory.is_over = true;
  wt_memory.wakes_ms = UINT64_MAX;
  pthread_mutex_lock(&mutex);
  extension_runs = false;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
  return unused;
}

static void run_until_idle(void) {
  if (!wt_memory.is_over) hand_over(true);
}

static void move_to(uint64_t ms) {
  if (ms > wt_memory.now_ms) wt_memory.now_ms = ms;
  run_until_idle();
}

void wt_start(void) {
  if (!is_started) {
    is_started = true;
    // Until this waits, the extension cannot give the turn back.
    pthread_mutex_lock(&mutex);
    extension_runs = true;
    if (pthread_create(&thread, NULL, run_extension, NULL) != 0) abort();
    while (extension_runs) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
  }
  while (!wt_memory.is_over && !wt_memory.is_declared) {
    if (wt_memory.wakes_ms == UINT64_MAX) wt_fail_test("the extension waits for what never comes");
    move_to(wt_memory.wakes_ms);
  }
}

int wt_stop(void) {
  wt_start();
  if (wt_memory.is_stopping) return exit_code;
  wt_memory.is_stopping = true;
  run_until_idle();
  while (!wt_memory.is_over) {
    if (wt_memory.wakes_ms == UINT64_MAX) wt_fail_test("the extension does not stop");
    move_to(wt_memory.wakes_ms);
  }
  pthread_join(thread, NULL);
  return exit_code;
}

void wt_advance(uint64_t ms) {
  wt_start();
  uint64_t end = wt_memory.now_ms + ms;
  while (wt_memory.wakes_ms <= end) move_to(wt_memory.wakes_ms);
  move_to(end);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  (void)clock;
  uint64_t ms = wt_memory.now_ms;
  *time = (struct timespec){(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
  return 0;
}

int nanosleep(const struct timespec *time, struct timespec *rest) {
  (void)rest;
  uint64_t ms = (uint64_t)time->tv_sec * 1000 + ((uint64_t)time->tv_nsec + 999999) / 1000000;
  uint64_t end = wt_memory.now_ms + ms;
  if (!extension_runs) wt_advance(ms);
  while (wt_memory.now_ms < end) wt_park(end);
  return 0;
}

// Before the start.

void wt_config(const char *key, const char *value) {
  wt_pair *new = wt_hold(sizeof *new);
  *new = (wt_pair){wt_hold_text(key), wt_hold_text(value), wt_memory.config};
  wt_memory.config = new;
}

void wt_fake(const char *operation, wt_fake_handler answer, void *data) {
  wt_faked *new = wt_hold(sizeof *new);
  *new = (wt_faked){wt_hold_text(operation), answer, data, wt_memory.fakes};
  wt_memory.fakes = new;
}

void wt_deny(const char *name) { wt_number_in(&wt_memory.denied, name); }
void wt_own_name(const char *name) { wt_memory.own_name = wt_hold_text(name); }
void wt_message_size(size_t bytes) { wt_memory.message_size = bytes; }

wt_topic *wt_topic_of(const char *name) {
  for (wt_topic *known = wt_memory.topics; known != NULL; known = known->next) {
    if (strcmp(known->name, name) == 0) return known;
  }
  wt_topic *new = wt_hold(sizeof *new);
  new->name = wt_hold_text(name);
  WT_APPEND(wt_memory.topics, new);
  return new;
}

void wt_retain(const char *topic, const void *bytes, size_t length) {
  wt_topic *kept = wt_topic_of(topic);
  kept->retained = wt_hold_bytes(bytes, length);
  kept->length = length;
  kept->sequence++;
}

wt_result wt_answer(const char *text) { return (wt_result){.payload = text, .length = strlen(text)}; }

wt_result wt_error(const char *error, const char *code, const char *message) {
  return (wt_result){.error = error, .code = code, .payload = message, .length = strlen(message)};
}

// Calls.

void wt_sender(const char *name) { wt_memory.sender = wt_number_in(&wt_memory.senders, name) + 1; }

// Main is 0.
static uint32_t test_sender(void) {
  if (wt_memory.sender == 0) wt_sender("test");
  return wt_memory.sender;
}

// The number of an operation that the extension serves, or `UINT32_MAX`.
static uint32_t operation_number(const char *operation) {
  uint32_t number = 0;
  for (wt_named *known = wt_memory.operations; known != NULL; known = known->next, number++) {
    if (strcmp(known->name, operation) == 0) return number;
  }
  return UINT32_MAX;
}

uint64_t wt_send(const char *operation, const void *bytes, size_t length, uint32_t timeout_ms) {
  wt_start();
  uint32_t timeout = timeout_ms > 0 ? timeout_ms : WT_TIMEOUT_MS;
  wt_asked *new = wt_hold(sizeof *new);
  new->id = ++wt_memory.last_id;
  new->deadline_ms = wt_memory.now_ms + timeout;
  WT_APPEND(wt_memory.requests, new);
  uint32_t number = operation_number(operation);
  if (wt_memory.is_over) {
    new->result = wt_error("no-provider", NULL, wt_memory.own_name);
  } else if (number == UINT32_MAX) {
    new->result = wt_error("invalid", NULL, wt_hold_text(operation));
  } else if (wt_memory.interruption != NULL) {
    new->result = wt_error("not-ready", NULL, wt_memory.interruption);
  } else if (length > wt_memory.message_size) {
    new->result = wt_error("too-large", NULL, "");
  } else {
    weir_iec_channel_message_t message = {.tag = WEIR_IEC_CHANNEL_MESSAGE_REQUEST};
    message.val.request =
        (weir_iec_channel_request_t){new->id, test_sender(), number, timeout, 0, wt_give(bytes, length)};
    wt_send_in(wt_memory.now_ms, message);
    run_until_idle();
    return new->id;
  }
  new->is_answered = true;
  return new->id;
}

static wt_asked *asked(uint64_t id) {
  wt_asked *known = wt_memory.requests;
  while (known != NULL && known->id != id) known = known->next;
  if (known == NULL) wt_fail_test("no call has the id %llu", (unsigned long long)id);
  return known;
}

bool wt_is_answered(uint64_t id) { return asked(id)->is_answered; }

wt_result wt_wait(uint64_t id) {
  wt_asked *call = asked(id);
  while (!call->is_answered) {
    if (wt_memory.is_over) return wt_error("peer-gone", NULL, "");
    if (call->deadline_ms <= wt_memory.now_ms) return wt_error("timeout", NULL, "");
    move_to(wt_memory.wakes_ms < call->deadline_ms ? wt_memory.wakes_ms : call->deadline_ms);
  }
  return call->result;
}

wt_result wt_call(const char *operation, const char *arguments) {
  return wt_wait(wt_send(operation, arguments, strlen(arguments), 0));
}

size_t wt_responses(uint64_t *due_ms) {
  size_t count = 0;
  *due_ms = UINT64_MAX;
  for (wt_item *known = wt_memory.inbox; known != NULL; known = known->next) {
    if (known->message.tag != WEIR_IEC_CHANNEL_MESSAGE_RESPONSE) continue;
    if (known->due_ms < *due_ms) *due_ms = known->due_ms;
    count++;
  }
  return count;
}

size_t wt_calls_under_way(void) {
  uint64_t due;
  return wt_responses(&due) + wt_memory.blocking_calls;
}

// Events and jobs.

size_t wt_publish(const char *topic, const void *bytes, size_t length) {
  wt_start();
  size_t reached = wt_deliver(test_sender(), topic, bytes, length);
  wt_memory.lost = 0;
  run_until_idle();
  return reached;
}

void wt_lose(uint64_t events) { wt_memory.lost = events; }

const wt_message *wt_published(void) {
  wt_start();
  wt_message *first = wt_memory.published;
  if (first != NULL) wt_memory.published = first->next;
  return first;
}

uint64_t wt_put_as(uint32_t sender, uint32_t queue, const void *bytes, size_t length) {
  wt_queued *new = wt_hold(sizeof *new);
  *new = (wt_queued){.id = ++wt_memory.last_id, .queue = queue, .sender = sender};
  new->message.name = wt_named_by(wt_memory.queues, queue)->name;
  new->message.payload = wt_hold_bytes(bytes, length);
  new->message.length = length;
  WT_APPEND(wt_memory.jobs, new);
  return new->id;
}

uint64_t wt_put(const char *queue, const void *bytes, size_t length) {
  wt_start();
  uint64_t id = wt_put_as(test_sender(), wt_number_in(&wt_memory.queues, queue), bytes, length);
  run_until_idle();
  return id;
}

wt_job_state wt_job(uint64_t id) {
  wt_queued *known = wt_memory.jobs;
  while (known != NULL && known->id != id) known = known->next;
  if (known == NULL) wt_fail_test("no job has the id %llu", (unsigned long long)id);
  return known->state;
}

const wt_message *wt_taken(const char *queue) {
  wt_start();
  for (wt_queued *known = wt_memory.jobs; known != NULL; known = known->next) {
    if (known->state != WT_WAITING || strcmp(known->message.name, queue) != 0) continue;
    known->state = WT_DONE;
    return &known->message;
  }
  return NULL;
}

// What the extension says.

const wt_line *wt_logged(void) {
  wt_start();
  wt_line *first = wt_memory.lines;
  if (first != NULL) wt_memory.lines = first->next;
  return first;
}

const char *wt_interrupted(void) {
  wt_start();
  return wt_memory.interruption;
}

const char *wt_failure(void) {
  wt_start();
  return wt_memory.failure;
}

// The process of a test.

static __attribute__((noreturn)) void run_here(void (*body)(void)) {
  alarm(TEST_SECONDS);
  body();
  bool has_stopped = wt_memory.is_stopping;
  if (is_started && wt_stop() != 0) {
    if (!has_stopped) {
      wt_fail_test("the extension failed: %s", wt_memory.failure == NULL ? "no reason" : wt_memory.failure);
    }
    // A program that fails may leave memory behind. Sanitizers do not look for it then.
    fflush(NULL);
    _exit(0);
  }
  wt_free_inbox();
  while (held != NULL) {
    block *next = held->next;
    free(held);
    held = next;
  }
  exit(0);
}

int wt_run(int (*extension)(void), const wt_test *tests, size_t count) {
  extension_main = extension;
  int code = 0;
  for (size_t i = 0; i < count; i++) {
    fflush(NULL);
    pid_t process = fork();
    if (process == 0) run_here(tests[i].body);
    int status = 1;
    if (process < 0 || waitpid(process, &status, 0) < 0 || status != 0) code = 1;
    if (process >= 0 && WIFSIGNALED(status)) fprintf(stderr, "ended by signal %d\n", WTERMSIG(status));
    fprintf(status == 0 ? stdout : stderr, "%s %s\n", status == 0 ? "ok" : "FAILED", tests[i].name);
  }
  return code;
}
