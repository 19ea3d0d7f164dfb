// Main in memory, shared by weir_test.c, the side of the test, and weir_memory.c, the side of the extension.
//
// What it holds is freed at the end of the test, by `wt_hold`. What the extension is given, the extension frees.

#ifndef WEIR_MEMORY_H
#define WEIR_MEMORY_H

#include "weir_test.h"

#define WT_TIMEOUT_MS 5000
#define WT_DELIVERIES 3

typedef struct wt_pair {
  const char *name, *value;
  struct wt_pair *next;
} wt_pair;

typedef struct wt_faked {
  const char *operation;
  wt_fake_handler answer;
  void *data;
  struct wt_faked *next;
} wt_faked;

// Its place in its list is its number.
typedef struct wt_named {
  const char *name;
  // Of a pattern: whether the extension subscribes to it now.
  bool is_subscribed;
  // Of a queue: how the extension takes its jobs.
  bool one_by_one;
  uint32_t next_jobs;
  struct wt_named *next;
} wt_named;

typedef struct wt_topic {
  const char *name;
  // NULL: nothing.
  const char *retained;
  size_t length;
  uint64_t sequence;
  struct wt_topic *next;
} wt_topic;

// A request of the test.
typedef struct wt_asked {
  uint64_t id, deadline_ms;
  bool is_answered;
  wt_result result;
  struct wt_asked *next;
} wt_asked;

// A message in the inbox, from some time on.
typedef struct wt_item {
  uint64_t due_ms;
  weir_iec_channel_message_t message;
  struct wt_item *next;
} wt_item;

typedef struct wt_queued {
  uint64_t id;
  uint32_t queue, sender, deliveries;
  bool one_by_one;
  wt_job_state state;
  wt_message message;
  struct wt_queued *next;
} wt_queued;

typedef struct wt_state {
  wt_pair *config;
  wt_faked *fakes;
  wt_named *denied, *senders, *operations, *targets, *patterns, *queues;
  wt_topic *topics;
  wt_asked *requests;
  wt_item *inbox;
  wt_queued *jobs;
  wt_message *published;
  wt_line *lines;
  const char *own_name, *interruption, *failure;
  size_t message_size, blocking_calls;
  uint64_t last_id, lost, now_ms;
  // When the waiting extension goes on by itself.
  uint64_t wakes_ms;
  uint32_t sender;
  bool is_declared, is_stopping, is_told, is_over;
} wt_state;

extern wt_state wt_memory;

#define WT_APPEND(list, added) \
  do { \
    __typeof__(&(list)) end = &(list); \
    while (*end != NULL) end = &(*end)->next; \
    *end = (added); \
  } while (0)

// Of the test's side.
void *wt_hold(size_t size);
char *wt_hold_bytes(const void *bytes, size_t length);
char *wt_hold_text(const char *text);
// The number of a name, which the list has from now on.
uint32_t wt_number_in(wt_named **list, const char *name);
// NULL: no name has this number.
wt_named *wt_named_by(wt_named *list, uint32_t number);
void wt_fail_test(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
// The extension waits until the test moves on, or the time has come.
void wt_park(uint64_t until_ms);

// The number of responses under way, and when the first is due.
size_t wt_responses(uint64_t *due_ms);
wt_topic *wt_topic_of(const char *name);
uint64_t wt_put_as(uint32_t sender, uint32_t queue, const void *bytes, size_t length);

// Of the extension's side.
void wt_send_in(uint64_t due_ms, weir_iec_channel_message_t message);
// Puts an event into the inbox, for each subscription that matches.
uint32_t wt_deliver(uint32_t sender, const char *topic, const void *bytes, size_t length);
// Bytes for the extension.
wr_bytes wt_give(const void *bytes, size_t length);
// Frees what still waits for the extension.
void wt_free_inbox(void);

#endif
