// What an extension in C needs beside the bindings of `weir:iec` (`weir.h`): a loop, handlers, and short calls.
//
// All runs on one thread. A handler that has to wait names a function to go on with, and returns: meanwhile the
// extension serves others. Functions that can fail return false and fill in `error`, which `wr_error_free` frees.
// README.md beside this file has an example.

#ifndef WEIR_SDK_H
#define WEIR_SDK_H

#include <stdarg.h>

#include "weir.h"

#ifdef __cplusplus
extern "C" {
#endif

// Bytes with a length. No NUL ends them.
typedef weir_list_u8_t wr_bytes;

// Why an operation failed: `tag` is one of `WEIR_IEC_TYPES_ERROR_…`.
typedef weir_iec_types_error_t wr_error;

// The counts of a published event.
typedef weir_iec_events_receipt_t wr_receipt;

// The answer to a request that was sent, or why there is none.
typedef weir_iec_channel_result_list_u8_error_t wr_outcome;

// A request in hand. It ends with `wr_answer`, `wr_fail` or `wr_fail_with`, now or later, and is freed then.
typedef struct wr_request {
  // The id. `wr_options` takes it.
  uint64_t id;
  // The sender: `wr_name_of` gives its name.
  uint32_t sender;
  // The arguments. A NUL stands behind them, for those that are text.
  char *payload;
  // Their bytes, without that NUL.
  size_t length;
  // The end of its time, by `wr_now_ms`.
  uint64_t deadline_ms;
} wr_request;

// An event, valid until its handler returns.
typedef struct wr_event {
  // The topic, also if the pattern names one topic.
  const char *topic;
  uint32_t sender;
  // Rises with each event of the topic. 0 if it was published to this extension alone.
  uint64_t sequence;
  // Events of the subscription that were lost just before.
  uint64_t lost;
  // Whether it is the last value of a retained topic.
  bool retained;
  // As in `wr_request`.
  const char *payload;
  size_t length;
} wr_event;

// A job, valid until its handler returns.
typedef struct wr_job {
  uint64_t id;
  uint32_t sender;
  // Deliveries so far, this one included.
  uint32_t deliveries;
  // As in `wr_request`.
  const char *payload;
  size_t length;
} wr_job;

// Answers a request, or keeps it and answers it later.
typedef void (*wr_request_handler)(wr_request *request);
typedef void (*wr_event_handler)(const wr_event *event);
// Returns whether the job is done. Else it is given back.
typedef bool (*wr_job_handler)(const wr_job *job);

// Goes on with a response.
typedef void (*wr_reply)(void *data, const wr_outcome *outcome);
// Goes on after a time. `in_time` is false if the deadline of the request passed first.
typedef void (*wr_wake)(void *data, bool in_time);
// Goes on with a job, and returns whether it is done. NULL: none came in time.
typedef bool (*wr_taken)(void *data, const wr_job *job);

// An operation and its handler.
typedef struct wr_operation {
  const char *name;
  wr_request_handler handler;
} wr_operation;

// Before `wr_run`.

// Serves a contract with these operations.
bool wr_serve(const char *contract, const wr_operation *operations, size_t count, wr_error *error);
// Hands the jobs of a queue to a handler, one after the other.
bool wr_work(const char *queue, wr_job_handler handler, wr_error *error);

// Hands the events of a pattern to a handler. Works in handlers, too.
bool wr_subscribe(const char *pattern, wr_event_handler handler, wr_error *error);
// Ends the subscription to exactly this pattern.
bool wr_unsubscribe(const char *pattern, wr_error *error);

// Serves until Main says stop and all requests in hand are answered. Declares the extension ready.
void wr_run(void);
// Tells Main why `main` is about to return an error. Returns 1, for `return wr_failed(…)`.
int wr_failed(const char *reason);

// Requests in hand.

void wr_answer(wr_request *request, const void *bytes, size_t length);
// Answers a text, as `printf` makes it.
void wr_answer_text(wr_request *request, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Answers an error of the contract. The code for wrong arguments is `invalid-argument`.
void wr_fail(wr_request *request, const char *code, const char *message);
// Passes on an error, and frees it.
void wr_fail_with(wr_request *request, wr_error *error);
// Milliseconds left for the answer.
uint32_t wr_remaining_ms(const wr_request *request);

// Messages to others. `request` is the request that they are sent for, or NULL. It caps the time. `timeout_ms` 0: the
// operator's default.

weir_iec_types_options_t wr_options(const wr_request *request, uint32_t timeout_ms);
// Looks up an operation. `provider` NULL: the owner of the contract.
bool wr_open(const char *contract, const char *operation, const char *provider, uint32_t *target, wr_error *error);
// Sends a request, and goes on with `reply` when the response comes. `id` may be NULL.
bool wr_send(const wr_request *request, uint32_t target, const void *bytes, size_t length, uint32_t timeout_ms,
             wr_reply reply, void *data, uint64_t *id, wr_error *error);
// Gives up a request that was sent: `reply` is not called. Returns its data, or NULL if it is over.
void *wr_cancel(uint64_t id);
// Publishes to all subscribers, or to one extension if `to` is not NULL.
bool wr_publish(const wr_request *request, const char *to, const char *topic, const void *bytes, size_t length,
                wr_receipt *receipt, wr_error *error);
// Puts a job.
bool wr_put(const wr_request *request, const char *queue, const void *bytes, size_t length, uint32_t timeout_ms,
            wr_error *error);
// Takes one job, within this time from 1 ms, and goes on with `taken`. Fails for a queue of `wr_work`, and while the
// extension stops.
bool wr_take(const wr_request *request, const char *queue, uint32_t timeout_ms, wr_taken taken, void *data,
             wr_error *error);
// Goes on after a time, or at the deadline of the request if that comes first.
void wr_after(const wr_request *request, uint32_t ms, wr_wake wake, void *data);

// The rest.

// A line of Main's log. `fields` has `count` pairs of a name and a value.
void wr_log(weir_iec_log_level_t level, const char *message, const char *const (*fields)[2], size_t count);
// A value of the extension's configuration, or NULL. Free it.
char *wr_config(const char *key);
// The extension's id. Free it.
char *wr_own_name(void);
// The name of a sender, or an empty text. Free it.
char *wr_name_of(uint32_t peer);
void wr_ready(void);
void wr_interrupted(const char *reason);
// Milliseconds since some moment.
uint64_t wr_now_ms(void);

// The name of an error's case, as in `iec.wit`.
const char *wr_error_case(const wr_error *error);
void wr_error_free(wr_error *error);

// A text for the bindings. It is not copied: the bindings only read what they are given. Every text that is given to an
// import ends at its first byte that is no UTF-8.
weir_string_t wr_string(const char *text);

#ifdef __cplusplus
}
#endif
#endif
