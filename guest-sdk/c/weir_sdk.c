// See weir_sdk.h.
#define _GNU_SOURCE
#include "weir_sdk.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// What the loop knows by number. They are few, and each search goes through all.
typedef struct served {
  uint32_t first;
  size_t count;
  const wr_operation *operations;
  struct served *next;
} served;

typedef struct subscription {
  uint32_t number;
  char *pattern;
  wr_event_handler handler;
  struct subscription *next;
} subscription;

typedef struct worker {
  uint32_t queue;
  wr_job_handler handler;
  struct worker *next;
} worker;

// Something that a handler goes on with.
typedef struct waiting {
  enum { CALL, TIMER, TAKE } kind;
  // Of a call its id, of a take its queue.
  uint64_t number;
  // Calls end by their response.
  uint64_t due_ms;
  bool in_time;
  union {
    wr_reply reply;
    wr_wake wake;
    wr_taken taken;
  } go_on;
  void *data;
  struct waiting *next;
} waiting;

static served *contracts;
static subscription *subscriptions;
static worker *workers;
// In the order in which they began to wait.
static waiting *waits;
static size_t in_hand;
static bool stopping;

static void *allocate(size_t size) {
  void *memory = calloc(1, size);
  if (memory == NULL) abort();
  return memory;
}

static wr_bytes bytes_of(const void *bytes, size_t length) { return (wr_bytes){(uint8_t *)bytes, length}; }

// A copy that ends with a NUL.
static char *text_of(const uint8_t *bytes, size_t length) {
  char *text = allocate(length + 1);
  if (length > 0) memcpy(text, bytes, length);
  return text;
}

// The same of a text from Main, which is freed.
static char *kept(weir_string_t text) {
  char *copy = text_of(text.ptr, text.len);
  weir_string_free(&text);
  return copy;
}

uint64_t wr_now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

// Before the loop.

bool wr_serve(const char *contract, const wr_operation *operations, size_t count, wr_error *error) {
  weir_string_t *names = allocate(count * sizeof *names);
  for (size_t i = 0; i < count; i++) names[i] = wr_string(operations[i].name);
  weir_string_t name = wr_string(contract);
  weir_list_string_t list = {names, count};
  uint32_t first;
  bool is_served = weir_iec_channel_serve(&name, &list, &first, error);
  free(names);
  if (!is_served) return false;
  served *new = allocate(sizeof *new);
  *new = (served){first, count, operations, contracts};
  contracts = new;
  return true;
}

static bool queue_number(const char *queue, uint32_t *number, wr_error *error) {
  weir_string_t name = wr_string(queue);
  return weir_iec_queues_open(&name, number, error);
}

bool wr_work(const char *queue, wr_job_handler handler, wr_error *error) {
  uint32_t number;
  weir_iec_queues_taking_t how = {.tag = WEIR_IEC_QUEUES_TAKING_ONE_BY_ONE};
  if (!queue_number(queue, &number, error) || !weir_iec_queues_take(number, &how, error)) return false;
  worker *new = allocate(sizeof *new);
  *new = (worker){number, handler, workers};
  workers = new;
  return true;
}

bool wr_subscribe(const char *pattern, wr_event_handler handler, wr_error *error) {
  weir_string_t text = wr_string(pattern);
  uint32_t number;
  if (!weir_iec_events_subscribe(&text, &number, error)) return false;
  for (subscription *known = subscriptions; known != NULL; known = known->next) {
    if (known->number == number) {
      known->handler = handler;
      return true;
    }
  }
  subscription *new = allocate(sizeof *new);
  *new = (subscription){number, strdup(pattern), handler, subscriptions};
  subscriptions = new;
  return true;
}

bool wr_unsubscribe(const char *pattern, wr_error *error) {
  for (subscription **place = &subscriptions; *place != NULL; place = &(*place)->next) {
    subscription *found = *place;
    if (strcmp(found->pattern, pattern) != 0) continue;
    *place = found->next;
    bool is_ended = weir_iec_events_unsubscribe(found->number, error);
    free(found->pattern);
    free(found);
    return is_ended;
  }
  // No subscription has this number, and Main says so.
  return weir_iec_events_unsubscribe(UINT32_MAX, error);
}

// Answers.

static void finish(wr_request *request) {
  in_hand--;
  free(request->payload);
  free(request);
}

static void refuse(const wr_request *request, weir_string_t code, weir_string_t message) {
  weir_iec_channel_result_list_u8_handler_error_t answer = {.is_err = true, .val.err = {code, message}};
  wr_error error;
  // It fails if the request is forgotten: nobody waits then.
  if (!weir_iec_channel_respond(request->id, &answer, &error)) wr_error_free(&error);
}

void wr_answer(wr_request *request, const void *bytes, size_t length) {
  weir_iec_channel_result_list_u8_handler_error_t answer = {.val.ok = bytes_of(bytes, length)};
  wr_error error;
  if (!weir_iec_channel_respond(request->id, &answer, &error)) {
    if (error.tag == WEIR_IEC_TYPES_ERROR_TOO_LARGE) {
      wr_log(WEIR_IEC_LOG_LEVEL_WARN, "an answer is too large", NULL, 0);
      refuse(request, wr_string("too-large"), wr_string("the answer is larger than `message-size`"));
    }
    wr_error_free(&error);
  }
  finish(request);
}

void wr_answer_text(wr_request *request, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *text = NULL;
  int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (length < 0) abort();
  wr_answer(request, text, (size_t)length);
  free(text);
}

void wr_fail(wr_request *request, const char *code, const char *message) {
  refuse(request, wr_string(code), wr_string(message));
  finish(request);
}

void wr_fail_with(wr_request *request, wr_error *error) {
  bool is_own = error->tag == WEIR_IEC_TYPES_ERROR_HANDLER;
  weir_string_t code = is_own ? error->val.handler.code : wr_string(wr_error_case(error));
  refuse(request, code, is_own ? error->val.handler.message : wr_string("a call or another import failed"));
  wr_error_free(error);
  finish(request);
}

uint32_t wr_remaining_ms(const wr_request *request) {
  uint64_t now = wr_now_ms();
  return request->deadline_ms > now ? (uint32_t)(request->deadline_ms - now) : 0;
}

// Messages to others.

weir_iec_types_options_t wr_options(const wr_request *request, uint32_t timeout_ms) {
  weir_iec_types_options_t options = {0};
  if (timeout_ms > 0) options.timeout_ms = (weir_option_u32_t){true, timeout_ms};
  if (request != NULL) options.parent = (weir_iec_types_option_message_id_t){true, request->id};
  return options;
}

bool wr_open(const char *contract, const char *operation, const char *provider, uint32_t *target, wr_error *error) {
  weir_string_t names[] = {wr_string(contract), wr_string(operation), wr_string(provider == NULL ? "" : provider)};
  return weir_iec_requests_open(&names[0], &names[1], provider == NULL ? NULL : &names[2], target, error);
}

static waiting *wait_for(waiting wanted) {
  waiting **end = &waits;
  while (*end != NULL) end = &(*end)->next;
  *end = allocate(sizeof **end);
  **end = wanted;
  return *end;
}

static void forget(waiting *unwanted) {
  waiting **place = &waits;
  while (*place != unwanted) place = &(*place)->next;
  *place = unwanted->next;
  free(unwanted);
}

// Takes the first that waits for this out of the list.
static waiting *found(int kind, uint64_t number) {
  for (waiting **place = &waits; *place != NULL; place = &(*place)->next) {
    waiting *candidate = *place;
    if ((int)candidate->kind == kind && candidate->number == number) {
      *place = candidate->next;
      return candidate;
    }
  }
  return NULL;
}

bool wr_send(const wr_request *request, uint32_t target, const void *bytes, size_t length, uint32_t timeout_ms,
             wr_reply reply, void *data, uint64_t *id, wr_error *error) {
  wr_bytes payload = bytes_of(bytes, length);
  weir_iec_types_options_t options = wr_options(request, timeout_ms);
  uint64_t number;
  if (!weir_iec_requests_send(target, &payload, &options, &number, error)) return false;
  wait_for((waiting){.kind = CALL, .number = number, .due_ms = UINT64_MAX, .go_on.reply = reply, .data = data});
  if (id != NULL) *id = number;
  return true;
}

void *wr_cancel(uint64_t id) {
  weir_iec_requests_cancel(id);
  waiting *call = found(CALL, id);
  if (call == NULL) return NULL;
  void *data = call->data;
  free(call);
  return data;
}

bool wr_publish(const wr_request *request, const char *to, const char *topic, const void *bytes, size_t length,
                wr_receipt *receipt, wr_error *error) {
  weir_string_t name = wr_string(topic);
  wr_bytes payload = bytes_of(bytes, length);
  weir_iec_types_options_t options = wr_options(request, 0);
  if (to == NULL) return weir_iec_events_publish(&name, &payload, &options, receipt, error);
  weir_string_t extension = wr_string(to);
  return weir_iec_events_publish_to(&extension, &name, &payload, &options, receipt, error);
}

bool wr_put(const wr_request *request, const char *queue, const void *bytes, size_t length, uint32_t timeout_ms,
            wr_error *error) {
  uint32_t number;
  if (!queue_number(queue, &number, error)) return false;
  wr_bytes payload = bytes_of(bytes, length);
  weir_iec_types_options_t options = wr_options(request, timeout_ms);
  uint64_t job;
  return weir_iec_queues_put(number, &payload, &options, &job, error);
}

// Asks for as many jobs of a queue as are waited for.
static bool ask_for_jobs(uint32_t queue, wr_error *error) {
  weir_iec_queues_taking_t how = {.tag = WEIR_IEC_QUEUES_TAKING_NEXT, .val.next = 0};
  for (waiting *wait = waits; wait != NULL; wait = wait->next) {
    if (wait->kind == TAKE && wait->number == queue) how.val.next++;
  }
  return weir_iec_queues_take(queue, &how, error);
}

// The nearer of a time from now and the deadline of the request.
static uint64_t due(const wr_request *request, uint32_t ms, bool *in_time) {
  uint64_t end = wr_now_ms() + ms;
  *in_time = request == NULL || end <= request->deadline_ms;
  // When Main has told the sender, too.
  return *in_time ? end : request->deadline_ms + 1;
}

static bool refused(wr_error *error, uint8_t tag, const char *why) {
  error->tag = tag;
  weir_string_dup(&error->val.invalid, why);
  return false;
}

bool wr_take(const wr_request *request, const char *queue, uint32_t timeout_ms, wr_taken taken, void *data,
             wr_error *error) {
  uint32_t number;
  if (!queue_number(queue, &number, error)) return false;
  for (worker *own = workers; own != NULL; own = own->next) {
    if (own->queue != number) continue;
    return refused(error, WEIR_IEC_TYPES_ERROR_INVALID, "`wr_work` takes the jobs of this queue");
  }
  if (stopping) return refused(error, WEIR_IEC_TYPES_ERROR_NOT_READY, "no jobs come while the extension stops");
  bool in_time;
  uint64_t end = due(request, timeout_ms, &in_time);
  waiting take = {.kind = TAKE, .number = number, .due_ms = end, .go_on.taken = taken, .data = data};
  waiting *wait = wait_for(take);
  if (ask_for_jobs(number, error)) return true;
  forget(wait);
  return false;
}

void wr_after(const wr_request *request, uint32_t ms, wr_wake wake, void *data) {
  waiting timer = {.kind = TIMER, .go_on.wake = wake, .data = data};
  timer.due_ms = due(request, ms, &timer.in_time);
  wait_for(timer);
}

// The loop.

static void start_request(weir_iec_channel_request_t *message) {
  wr_request *request = allocate(sizeof *request);
  char *payload = text_of(message->payload.ptr, message->payload.len);
  uint64_t deadline_ms = wr_now_ms() + message->remaining_ms;
  *request = (wr_request){message->id, message->sender, payload, message->payload.len, deadline_ms};
  in_hand++;
  for (served *contract = contracts; contract != NULL; contract = contract->next) {
    uint32_t place = message->operation - contract->first;
    if (message->operation >= contract->first && place < contract->count) {
      contract->operations[place].handler(request);
      return;
    }
  }
  wr_fail(request, "invalid", "an operation with this number was never given out");
}

static void go_on_with_response(const weir_iec_channel_response_t *message) {
  // None: it was given up while the response was in the inbox.
  waiting *call = found(CALL, message->id);
  if (call == NULL) return;
  call->go_on.reply(call->data, &message->outcome);
  free(call);
}

static void hand_on_event(const weir_iec_channel_event_t *message) {
  subscription *own = subscriptions;
  while (own != NULL && own->number != message->subscription) own = own->next;
  if (own == NULL) return;
  // The handler may end the subscription.
  char *topic = message->topic.is_some ? text_of(message->topic.val.ptr, message->topic.val.len) : strdup(own->pattern);
  wr_bytes bytes = message->payload;
  char *payload = text_of(bytes.ptr, bytes.len);
  wr_event event = {topic, message->sender, message->sequence, message->lost, message->retained, payload, bytes.len};
  own->handler(&event);
  free(topic);
  free(payload);
}

static void hand_on_job(const weir_iec_channel_job_t *message) {
  char *payload = text_of(message->payload.ptr, message->payload.len);
  wr_job job = {message->id, message->sender, message->deliveries, payload, message->payload.len};
  bool is_done = false;
  waiting *take = found(TAKE, message->queue);
  worker *own = workers;
  while (own != NULL && own->queue != message->queue) own = own->next;
  if (take != NULL) {
    is_done = take->go_on.taken(take->data, &job);
    free(take);
  } else if (own != NULL) {
    is_done = own->handler(&job);
  }
  wr_error error;
  if (!(is_done ? weir_iec_queues_done : weir_iec_queues_give_back)(job.id, &error)) wr_error_free(&error);
  free(payload);
}

static void handle(weir_iec_channel_message_t *message) {
  switch (message->tag) {
    case WEIR_IEC_CHANNEL_MESSAGE_REQUEST: start_request(&message->val.request); break;
    case WEIR_IEC_CHANNEL_MESSAGE_RESPONSE: go_on_with_response(&message->val.response); break;
    case WEIR_IEC_CHANNEL_MESSAGE_EVENT:
      hand_on_event(&message->val.event);
      // The bindings of wit-bindgen 0.61 forget it.
      weir_option_string_free(&message->val.event.topic);
      message->val.event.topic.is_some = false;
      break;
    case WEIR_IEC_CHANNEL_MESSAGE_JOB: hand_on_job(&message->val.job); break;
  }
  weir_iec_channel_message_free(message);
}

// Goes on with what is due. Returns when the next is: `UINT64_MAX` for never. When stopping, nobody gets a job.
static uint64_t wake_all(void) {
  for (;;) {
    uint64_t now = wr_now_ms(), next = UINT64_MAX;
    waiting **place = &waits;
    while (*place != NULL && (*place)->due_ms > now && !(stopping && (*place)->kind == TAKE)) {
      if ((*place)->due_ms < next) next = (*place)->due_ms;
      place = &(*place)->next;
    }
    waiting *ended = *place;
    if (ended == NULL) return next;
    *place = ended->next;
    if (ended->kind == TAKE) {
      wr_error error;
      if (!ask_for_jobs((uint32_t)ended->number, &error)) wr_error_free(&error);
      ended->go_on.taken(ended->data, NULL);
    } else {
      ended->go_on.wake(ended->data, ended->in_time);
    }
    // It may have changed the list: begin again.
    free(ended);
  }
}

// Sleeps while only timers can go on.
static void sleep_until(uint64_t end) {
  uint64_t now = wr_now_ms(), ms = end > now ? end - now : 0;
  struct timespec time = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
  nanosleep(&time, NULL);
}

void wr_run(void) {
  for (;;) {
    uint64_t next = wake_all();
    if (stopping && in_hand == 0) return;
    weir_iec_channel_option_message_t received = {0};
    if (next == UINT64_MAX) {
      received.is_some = weir_iec_channel_receive(&received.val);
    } else {
      uint64_t now = wr_now_ms(), ms = next > now ? next - now : 0;
      wr_error error;
      if (!weir_iec_channel_receive_within(ms > UINT32_MAX ? UINT32_MAX : (uint32_t)ms, &received, &error)) {
        wr_error_free(&error);
        continue;
      }
    }
    if (received.is_some) {
      handle(&received.val);
    } else if (!stopping) {
      stopping = true;
    } else if (next != UINT64_MAX) {
      // No more messages will come.
      sleep_until(next);
    } else {
      return;
    }
  }
}

// The rest.

char *wr_config(const char *key) {
  weir_string_t name = wr_string(key);
  weir_option_string_t value;
  wasi_config_store_error_t error;
  if (!wasi_config_store_get(&name, &value, &error)) {
    wasi_config_store_error_free(&error);
    return NULL;
  }
  return value.is_some ? kept(value.val) : NULL;
}

char *wr_own_name(void) {
  weir_string_t name;
  weir_iec_peers_own_name(&name);
  return kept(name);
}

char *wr_name_of(uint32_t peer) {
  weir_string_t name;
  return weir_iec_peers_name_of(peer, &name) ? kept(name) : strdup("");
}
