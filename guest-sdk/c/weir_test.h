// Tests an extension without Weir, in a native program: this plays Main in memory.
//
// Compile the test with the extension, weir_sdk.c, weir_text.c, weir_test.c and weir_memory.c. The last has the imports
// of the bindings' weir.c. Rename the `main` of the extension: `-Dmain=extension_main`. README.md beside this file shows
// it.
//
// Each test has a process of its own, so all statics begin anew, and a crash fails one test. In it, the extension runs
// only while the test is in a function of this file. It runs until it waits. What these functions return is freed at
// the end of the test.
//
// Time stands still, until the test moves it with `wt_advance`, or waits for an answer. `clock_gettime` and `nanosleep`
// of the whole program go by this clock. All is granted, but for what the test denies.

#ifndef WEIR_TEST_H
#define WEIR_TEST_H

#include "weir_sdk.h"

#ifdef __cplusplus
extern "C" {
#endif

// How a call ended.
typedef struct wt_result {
  // NULL: with an answer. Else the case, as `wr_error_case` gives it, such as `handler` or `timeout`.
  const char *error;
  // The code of the error `handler`.
  const char *code;
  // The answer, with a NUL behind it, or the text of the error.
  const char *payload;
  size_t length;
  // Of a fake: it answers after this time.
  uint32_t delay_ms;
} wt_result;

// Answers a call of the extension, in place of the provider. It sends and waits for nothing itself.
typedef wt_result (*wt_fake_handler)(void *data, const char *payload, size_t length);

// An event that the extension published, or a job that it put.
typedef struct wt_message {
  // The topic or the queue.
  const char *name;
  // Of an event for one extension its id, else NULL.
  const char *to;
  // A NUL stands behind it.
  const char *payload;
  size_t length;
  struct wt_message *next;
} wt_message;

// A line of the log.
typedef struct wt_line {
  weir_iec_log_level_t level;
  const char *message;
  // The fields, each as `name=value`.
  const char **fields;
  size_t count;
  struct wt_line *next;
} wt_line;

// A job is dead when it was given back from its third delivery.
typedef enum wt_job_state { WT_WAITING, WT_IN_HAND, WT_DONE, WT_DEAD } wt_job_state;

typedef struct wt_test {
  const char *name;
  void (*body)(void);
} wt_test;

// Runs tests of an extension with this `main`, and prints the results. Returns 1 if a test failed, else 0.
//
// After its body, the extension is stopped. A test fails if `main` then fails, unless the test called `wt_stop`. It
// fails after a minute, too.
int wt_run(int (*extension)(void), const wt_test *tests, size_t count);

// Ends the test as failed if the condition is false, or the texts differ.
#define wt_expect(condition) ((condition) ? (void)0 : wt_unexpected(__FILE__, __LINE__, #condition))
#define wt_expect_text(actual, expected) wt_expect_same(__FILE__, __LINE__, #actual, actual, expected)
void wt_unexpected(const char *file, int line, const char *condition) __attribute__((noreturn));
void wt_expect_same(const char *file, int line, const char *what, const char *actual, const char *expected);

// Before the start. All names and values are copied.

// Sets a value of the extension's configuration.
void wt_config(const char *key, const char *value);
// Answers an operation, such as `clock@1/now`. Without it, the contract is unknown.
void wt_fake(const char *operation, wt_fake_handler answer, void *data);
// Denies a contract, topic, pattern or queue: what the extension does with exactly this name fails.
void wt_deny(const char *name);
// Sets the extension's id. It is `extension` at first.
void wt_own_name(const char *name);
// Sets the extension's `message-size`: larger payloads are refused.
void wt_message_size(size_t bytes);
// Has Main retain a topic with this value. A new subscription gets it first.
void wt_retain(const char *topic, const void *bytes, size_t length);

// For fakes: an answer, and an error. The code is for the error `handler`, else NULL.
wt_result wt_answer(const char *text);
wt_result wt_error(const char *error, const char *code, const char *message);

// Runs the extension until it has declared itself ready or interrupted. The functions below do so first, too.
void wt_start(void);

// Calls an operation, such as `greeter@1/greet`, with a timeout of 5 s. Time passes until the answer is there.
wt_result wt_call(const char *operation, const char *arguments);
// Calls without waiting. `timeout_ms` 0: 5 s.
uint64_t wt_send(const char *operation, const void *bytes, size_t length, uint32_t timeout_ms);
bool wt_is_answered(uint64_t id);
// Time passes until this call has ended.
wt_result wt_wait(uint64_t id);
// The name under which the test calls, publishes and puts from now on. It is `test` at first.
void wt_sender(const char *name);

// Publishes an event. Returns the number of subscriptions that it reached.
size_t wt_publish(const char *topic, const void *bytes, size_t length);
// Makes the next event arrive as if this many before it had been lost.
void wt_lose(uint64_t events);
// Takes the oldest event that the extension published. NULL: none.
const wt_message *wt_published(void);

// Puts a job into a queue. Returns its id.
uint64_t wt_put(const char *queue, const void *bytes, size_t length);
wt_job_state wt_job(uint64_t id);
// Takes the oldest waiting job of a queue, as another reader would. NULL: none.
const wt_message *wt_taken(const char *queue);

// Takes the oldest line of the log. NULL: none.
const wt_line *wt_logged(void);
// Why the extension is interrupted. NULL: it is not.
const char *wt_interrupted(void);
// What the extension gave to `wr_failed`. NULL: nothing.
const char *wt_failure(void);
// Calls of the extension without an answer.
size_t wt_calls_under_way(void);
// Lets time pass.
void wt_advance(uint64_t ms);
// Tells the extension to stop, and waits until it has. Returns what its `main` returned.
int wt_stop(void);

#ifdef __cplusplus
}
#endif
#endif
