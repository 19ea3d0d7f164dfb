// See weir_memory.h. These are the imports of the bindings, `weir.h`, as Main has them.
#include "weir_memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *hold_string(const weir_string_t *text) { return wt_hold_bytes(text->ptr, text->len); }

wr_bytes wt_give(const void *bytes, size_t length) {
  wr_bytes copy = {length > 0 ? malloc(length) : NULL, length};
  if (length > 0) memcpy(copy.ptr, bytes, length);
  return copy;
}

static weir_string_t give_text(const char *text) {
  wr_bytes copy = wt_give(text, strlen(text));
  return (weir_string_t){copy.ptr, copy.len};
}

// Errors.

static bool has_text(uint8_t tag) {
  return tag <= WEIR_IEC_TYPES_ERROR_NOT_READY || tag == WEIR_IEC_TYPES_ERROR_OVERLOADED ||
         tag == WEIR_IEC_TYPES_ERROR_INVALID;
}

static bool fail(wr_error *error, uint8_t tag, const char *text) {
  *error = (wr_error){.tag = tag};
  // All texts of cases lie in the same place.
  if (has_text(tag)) error->val.invalid = give_text(text);
  return false;
}

static bool is_denied(const char *name, wr_error *error) {
  for (wt_named *known = wt_memory.denied; known != NULL; known = known->next) {
    if (strcmp(known->name, name) == 0) return !fail(error, WEIR_IEC_TYPES_ERROR_PERMISSION_DENIED, name);
  }
  return false;
}

static bool is_too_large(size_t length, wr_error *error) {
  if (length <= wt_memory.message_size) return false;
  *error = (wr_error){.tag = WEIR_IEC_TYPES_ERROR_TOO_LARGE, .val.too_large = {length, wt_memory.message_size}};
  return true;
}

// The error that a fake answers with.
static wr_error error_of(const wt_result *result) {
  wr_error error = {0};
  while (strcmp(wr_error_case(&error), result->error) != 0) {
    if (error.tag++ == WEIR_IEC_TYPES_ERROR_HANDLER) wt_fail_test("no error has the case `%s`", result->error);
  }
  if (error.tag == WEIR_IEC_TYPES_ERROR_HANDLER) {
    error.val.handler = (weir_iec_types_handler_error_t){give_text(result->code), give_text(result->payload)};
  } else if (error.tag == WEIR_IEC_TYPES_ERROR_LIMIT_EXCEEDED) {
    error.val.limit_exceeded.name = give_text(result->payload);
  } else {
    fail(&error, error.tag, result->payload);
  }
  return error;
}

// The inbox.

void wt_send_in(uint64_t due_ms, weir_iec_channel_message_t message) {
  wt_item *new = wt_hold(sizeof *new);
  *new = (wt_item){due_ms, message, NULL};
  WT_APPEND(wt_memory.inbox, new);
}

static void free_message(weir_iec_channel_message_t *message) {
  if (message->tag == WEIR_IEC_CHANNEL_MESSAGE_EVENT) weir_option_string_free(&message->val.event.topic);
  weir_iec_channel_message_free(message);
}

void wt_free_inbox(void) {
  for (wt_item *known = wt_memory.inbox; known != NULL; known = known->next) free_message(&known->message);
}

// Drops the response to a call, or the events of a subscription.
static void drop(uint8_t tag, uint64_t number) {
  for (wt_item **place = &wt_memory.inbox; *place != NULL;) {
    weir_iec_channel_message_t *message = &(*place)->message;
    bool is_event = tag == WEIR_IEC_CHANNEL_MESSAGE_EVENT;
    if (message->tag == tag && number == (is_event ? message->val.event.subscription : message->val.response.id)) {
      *place = (*place)->next;
      free_message(message);
    } else {
      place = &(*place)->next;
    }
  }
}

static bool take_job(weir_iec_channel_message_t *message) {
  for (wt_queued *job = wt_memory.jobs; job != NULL; job = job->next) {
    wt_named *queue = wt_named_by(wt_memory.queues, job->queue);
    if (job->state != WT_WAITING || !(queue->one_by_one || queue->next_jobs > 0)) continue;
    if (!queue->one_by_one) queue->next_jobs--;
    job->state = WT_IN_HAND;
    job->one_by_one = queue->one_by_one;
    job->deliveries++;
    message->tag = WEIR_IEC_CHANNEL_MESSAGE_JOB;
    wr_bytes payload = wt_give(job->message.payload, job->message.length);
    message->val.job = (weir_iec_channel_job_t){job->id, job->queue, job->sender, job->deliveries, 0, payload};
    return true;
  }
  return false;
}

// Responses come first. After the request to stop, nothing else does.
static bool take_message(weir_iec_channel_message_t *message) {
  static const uint8_t order[] = {WEIR_IEC_CHANNEL_MESSAGE_RESPONSE, WEIR_IEC_CHANNEL_MESSAGE_REQUEST,
                                  WEIR_IEC_CHANNEL_MESSAGE_EVENT};
  for (size_t i = 0; i < (wt_memory.is_told ? 1 : 3); i++) {
    for (wt_item **place = &wt_memory.inbox; *place != NULL; place = &(*place)->next) {
      wt_item *item = *place;
      if (item->message.tag != order[i] || item->due_ms > wt_memory.now_ms) continue;
      *place = item->next;
      *message = item->message;
      return true;
    }
  }
  return !wt_memory.is_told && take_job(message);
}

typedef enum received { STOP, MESSAGE, TIMED_OUT } received;

static received receive(uint64_t until_ms, weir_iec_channel_message_t *message) {
  wt_memory.is_declared = true;
  for (wt_queued *job = wt_memory.jobs; job != NULL; job = job->next) {
    if (job->state == WT_IN_HAND && job->one_by_one) job->state = WT_DONE;
  }
  for (;;) {
    if (wt_memory.is_stopping && !wt_memory.is_told) {
      wt_memory.is_told = true;
      return STOP;
    }
    if (take_message(message)) return MESSAGE;
    uint64_t due_ms;
    if (wt_responses(&due_ms) == 0 && wt_memory.is_told) return STOP;
    if (wt_memory.now_ms >= until_ms) return TIMED_OUT;
    wt_park(due_ms < until_ms ? due_ms : until_ms);
  }
}

bool weir_iec_channel_receive(weir_iec_channel_message_t *ret) { return receive(UINT64_MAX, ret) == MESSAGE; }

bool weir_iec_channel_receive_within(uint32_t timeout_ms, weir_iec_channel_option_message_t *ret, wr_error *err) {
  received what = receive(wt_memory.now_ms + timeout_ms, &ret->val);
  ret->is_some = what == MESSAGE;
  return what != TIMED_OUT || fail(err, WEIR_IEC_TYPES_ERROR_TIMEOUT, "");
}

// Requests.

static char *operation_of(const char *contract, const weir_string_t *name) {
  char *text = wt_hold(strlen(contract) + name->len + 2);
  sprintf(text, "%s/%.*s", contract, (int)name->len, (const char *)name->ptr);
  return text;
}

bool weir_iec_channel_serve(weir_string_t *contract, weir_list_string_t *names, uint32_t *ret, wr_error *err) {
  char *served = hold_string(contract);
  if (is_denied(served, err)) return false;
  *ret = 0;
  for (wt_named *known = wt_memory.operations; known != NULL; known = known->next) {
    size_t length = strlen(served);
    if (strncmp(known->name, served, length) == 0 && known->name[length] == '/') {
      return fail(err, WEIR_IEC_TYPES_ERROR_INVALID, served);
    }
    ++*ret;
  }
  for (size_t i = 0; i < names->len; i++) {
    if (wt_number_in(&wt_memory.operations, operation_of(served, &names->ptr[i])) != *ret + i) {
      return fail(err, WEIR_IEC_TYPES_ERROR_INVALID, served);
    }
  }
  return names->len > 0 || fail(err, WEIR_IEC_TYPES_ERROR_INVALID, served);
}

static wt_asked *request_in_hand(uint64_t id) {
  wt_asked *known = wt_memory.requests;
  while (known != NULL && (known->id != id || known->is_answered)) known = known->next;
  return known;
}

bool weir_iec_channel_respond(uint64_t id, weir_iec_channel_result_list_u8_handler_error_t *answer, wr_error *err) {
  wt_asked *request = request_in_hand(id);
  if (request == NULL) return fail(err, WEIR_IEC_TYPES_ERROR_INVALID, "no such request in hand");
  if (!answer->is_err && is_too_large(answer->val.ok.len, err)) return false;
  // A late answer is discarded.
  if (wt_memory.now_ms > request->deadline_ms) return true;
  request->is_answered = true;
  if (answer->is_err) {
    weir_iec_types_handler_error_t *error = &answer->val.err;
    request->result = wt_error("handler", hold_string(&error->code), hold_string(&error->message));
  } else {
    wr_bytes *bytes = &answer->val.ok;
    request->result = (wt_result){.payload = wt_hold_bytes(bytes->ptr, bytes->len), .length = bytes->len};
  }
  return true;
}

bool weir_iec_requests_open(weir_string_t *contract, weir_string_t *name, weir_string_t *provider, uint32_t *ret,
                            wr_error *err) {
  (void)provider;
  char *owned = hold_string(contract), *operation = operation_of(owned, name);
  if (is_denied(owned, err)) return false;
  uint8_t tag = WEIR_IEC_TYPES_ERROR_UNKNOWN_CONTRACT;
  for (wt_faked *fake = wt_memory.fakes; fake != NULL; fake = fake->next) {
    if (strcmp(fake->operation, operation) == 0) {
      *ret = wt_number_in(&wt_memory.targets, operation);
      return true;
    }
    if (strncmp(fake->operation, operation, strlen(owned) + 1) == 0) tag = WEIR_IEC_TYPES_ERROR_INVALID;
  }
  return fail(err, tag, operation);
}

// Has a fake answer, and says when the answer arrives.
static bool ask(uint32_t target, wr_bytes *payload, weir_iec_types_options_t *options, wt_result *answer,
                uint64_t *due_ms, wr_error *err) {
  wt_named *operation = wt_named_by(wt_memory.targets, target);
  wt_asked *parent = options->parent.is_some ? request_in_hand(options->parent.val) : NULL;
  if (operation == NULL || options->parent.is_some != (parent != NULL)) {
    return fail(err, WEIR_IEC_TYPES_ERROR_INVALID, "an unknown number");
  }
  if (is_too_large(payload->len, err)) return false;
  uint64_t deadline_ms = wt_memory.now_ms + (options->timeout_ms.is_some ? options->timeout_ms.val : WT_TIMEOUT_MS);
  if (parent != NULL && parent->deadline_ms < deadline_ms) deadline_ms = parent->deadline_ms;
  wt_faked *fake = wt_memory.fakes;
  while (strcmp(fake->operation, operation->name) != 0) fake = fake->next;
  *answer = fake->answer(fake->data, wt_hold_bytes(payload->ptr, payload->len), payload->len);
  *due_ms = wt_memory.now_ms + answer->delay_ms;
  if (*due_ms > deadline_ms) {
    *answer = wt_error("timeout", NULL, "");
    *due_ms = deadline_ms;
  }
  return true;
}

bool weir_iec_requests_send(uint32_t target, wr_bytes *payload, weir_iec_types_options_t *options, uint64_t *ret,
                            wr_error *err) {
  wt_result answer;
  uint64_t due_ms;
  if (!ask(target, payload, options, &answer, &due_ms, err)) return false;
  weir_iec_channel_message_t message = {.tag = WEIR_IEC_CHANNEL_MESSAGE_RESPONSE};
  message.val.response.id = *ret = ++wt_memory.last_id;
  wr_outcome *outcome = &message.val.response.outcome;
  outcome->is_err = answer.error != NULL;
  if (outcome->is_err) outcome->val.err = error_of(&answer);
  else outcome->val.ok = wt_give(answer.payload, answer.length);
  wt_send_in(due_ms, message);
  return true;
}

bool weir_iec_requests_call(uint32_t target, wr_bytes *payload, weir_iec_types_options_t *options, wr_bytes *ret,
                            wr_error *err) {
  wt_result answer;
  uint64_t due_ms;
  if (!ask(target, payload, options, &answer, &due_ms, err)) return false;
  wt_memory.blocking_calls++;
  while (wt_memory.now_ms < due_ms) wt_park(due_ms);
  wt_memory.blocking_calls--;
  if (answer.error == NULL) *ret = wt_give(answer.payload, answer.length);
  else *err = error_of(&answer);
  return answer.error == NULL;
}

void weir_iec_requests_cancel(uint64_t id) { drop(WEIR_IEC_CHANNEL_MESSAGE_RESPONSE, id); }

// Events.

static bool matches(const char *pattern, const char *topic) {
  while (strcmp(pattern, ">") != 0) {
    size_t length = strcspn(pattern, "."), there = strcspn(topic, ".");
    bool is_any = length == 1 && *pattern == '*';
    if (!is_any && (length != there || memcmp(pattern, topic, length) != 0)) return false;
    pattern += length;
    topic += there;
    if (*pattern == '\0' || *topic == '\0') return *pattern == *topic;
    pattern++;
    topic++;
  }
  return true;
}

static void deliver_to(uint32_t number, const char *pattern, const wt_topic *topic, uint32_t sender, bool is_retained,
                       const void *bytes, size_t length) {
  weir_iec_channel_message_t message = {.tag = WEIR_IEC_CHANNEL_MESSAGE_EVENT};
  weir_iec_channel_event_t *event = &message.val.event;
  *event = (weir_iec_channel_event_t){.sender = sender, .subscription = number, .sequence = topic->sequence};
  event->lost = is_retained ? 0 : wt_memory.lost;
  event->retained = is_retained;
  event->topic.is_some = strcmp(pattern, topic->name) != 0;
  if (event->topic.is_some) event->topic.val = give_text(topic->name);
  event->payload = wt_give(bytes, length);
  wt_send_in(wt_memory.now_ms, message);
}

uint32_t wt_deliver(uint32_t sender, const char *name, const void *bytes, size_t length) {
  wt_topic *topic = wt_topic_of(name);
  if (topic->retained != NULL) wt_retain(name, bytes, length);
  else topic->sequence++;
  uint32_t number = 0, reached = 0;
  for (wt_named *pattern = wt_memory.patterns; pattern != NULL; pattern = pattern->next, number++) {
    if (!pattern->is_subscribed || !matches(pattern->name, name)) continue;
    deliver_to(number, pattern->name, topic, sender, false, bytes, length);
    reached++;
  }
  return reached;
}

bool weir_iec_events_subscribe(weir_string_t *pattern, uint32_t *ret, wr_error *err) {
  char *text = hold_string(pattern);
  if (is_denied(text, err)) return false;
  *ret = wt_number_in(&wt_memory.patterns, text);
  wt_named *subscription = wt_named_by(wt_memory.patterns, *ret);
  if (subscription->is_subscribed) return true;
  subscription->is_subscribed = true;
  for (wt_topic *topic = wt_memory.topics; topic != NULL; topic = topic->next) {
    if (topic->retained == NULL || !matches(text, topic->name)) continue;
    deliver_to(*ret, text, topic, 0, true, topic->retained, topic->length);
  }
  return true;
}

bool weir_iec_events_unsubscribe(uint32_t number, wr_error *err) {
  wt_named *subscription = wt_named_by(wt_memory.patterns, number);
  if (subscription == NULL || !subscription->is_subscribed) {
    return fail(err, WEIR_IEC_TYPES_ERROR_INVALID, "no such subscription");
  }
  subscription->is_subscribed = false;
  drop(WEIR_IEC_CHANNEL_MESSAGE_EVENT, number);
  return true;
}

static bool publish(const char *to, weir_string_t *name, wr_bytes *payload, wr_error *err) {
  char *topic = hold_string(name);
  if (is_denied(topic, err) || is_too_large(payload->len, err)) return false;
  wt_message *new = wt_hold(sizeof *new);
  *new = (wt_message){topic, to, wt_hold_bytes(payload->ptr, payload->len), payload->len, NULL};
  WT_APPEND(wt_memory.published, new);
  return true;
}

bool weir_iec_events_publish(weir_string_t *topic, wr_bytes *payload, weir_iec_types_options_t *options,
                             wr_receipt *ret, wr_error *err) {
  (void)options;
  if (!publish(NULL, topic, payload, err)) return false;
  // The peers are numbered from 1.
  uint32_t own = wt_number_in(&wt_memory.senders, wt_memory.own_name) + 1;
  *ret = (wr_receipt){.delivered = wt_deliver(own, hold_string(topic), payload->ptr, payload->len)};
  return true;
}

bool weir_iec_events_publish_to(weir_string_t *extension, weir_string_t *topic, wr_bytes *payload,
                                weir_iec_types_options_t *options, wr_receipt *ret, wr_error *err) {
  (void)options;
  *ret = (wr_receipt){.delivered = 1};
  return publish(hold_string(extension), topic, payload, err);
}

// Queues.

bool weir_iec_queues_open(weir_string_t *name, uint32_t *ret, wr_error *err) {
  char *text = hold_string(name);
  if (is_denied(text, err)) return false;
  *ret = wt_number_in(&wt_memory.queues, text);
  return true;
}

bool weir_iec_queues_put(uint32_t queue, wr_bytes *payload, weir_iec_types_options_t *options, uint64_t *ret,
                         wr_error *err) {
  (void)options;
  if (wt_named_by(wt_memory.queues, queue) == NULL) return fail(err, WEIR_IEC_TYPES_ERROR_INVALID, "no such queue");
  if (is_too_large(payload->len, err)) return false;
  uint32_t own = wt_number_in(&wt_memory.senders, wt_memory.own_name) + 1;
  *ret = wt_put_as(own, queue, payload->ptr, payload->len);
  return true;
}

bool weir_iec_queues_take(uint32_t number, weir_iec_queues_taking_t *how, wr_error *err) {
  wt_named *queue = wt_named_by(wt_memory.queues, number);
  if (queue == NULL) return fail(err, WEIR_IEC_TYPES_ERROR_INVALID, "no such queue");
  queue->one_by_one = how->tag == WEIR_IEC_QUEUES_TAKING_ONE_BY_ONE;
  queue->next_jobs = queue->one_by_one ? 0 : how->val.next;
  return true;
}

static bool end_job(uint64_t id, bool is_done, wr_error *err) {
  wt_queued *job = wt_memory.jobs;
  while (job != NULL && (job->id != id || job->state != WT_IN_HAND)) job = job->next;
  if (job == NULL) return fail(err, WEIR_IEC_TYPES_ERROR_INVALID, "no such job in hand");
  job->state = is_done ? WT_DONE : job->deliveries < WT_DELIVERIES ? WT_WAITING : WT_DEAD;
  return true;
}

bool weir_iec_queues_done(uint64_t id, wr_error *err) { return end_job(id, true, err); }
bool weir_iec_queues_give_back(uint64_t id, wr_error *err) { return end_job(id, false, err); }

// The rest.

void weir_iec_lifecycle_ready(void) {
  wt_memory.is_declared = true;
  wt_memory.interruption = NULL;
}

void weir_iec_lifecycle_interrupted(weir_string_t *reason) {
  wt_memory.is_declared = true;
  wt_memory.interruption = hold_string(reason);
}

void weir_iec_lifecycle_error(weir_string_t *reason) { wt_memory.failure = hold_string(reason); }

void weir_iec_peers_own_name(weir_string_t *ret) { *ret = give_text(wt_memory.own_name); }

bool weir_iec_peers_name_of(uint32_t peer, weir_string_t *ret) {
  wt_named *known = peer == 0 ? NULL : wt_named_by(wt_memory.senders, peer - 1);
  if (peer == 0 || known != NULL) *ret = give_text(peer == 0 ? "main" : known->name);
  return peer == 0 || known != NULL;
}

void weir_iec_log_write(uint8_t level, weir_string_t *message, weir_iec_log_list_field_t *fields) {
  wt_line *new = wt_hold(sizeof *new);
  *new = (wt_line){level, hold_string(message), wt_hold(fields->len * sizeof(char *)), fields->len, NULL};
  for (size_t i = 0; i < fields->len; i++) {
    weir_iec_log_field_t *field = &fields->ptr[i];
    char *text = wt_hold(field->name.len + field->value.len + 2);
    sprintf(text, "%.*s=%.*s", (int)field->name.len, (char *)field->name.ptr, (int)field->value.len,
            (char *)field->value.ptr);
    new->fields[i] = text;
  }
  WT_APPEND(wt_memory.lines, new);
}

bool wasi_config_store_get(weir_string_t *key, weir_option_string_t *ret, wasi_config_store_error_t *err) {
  (void)err;
  char *text = hold_string(key);
  wt_pair *known = wt_memory.config;
  while (known != NULL && strcmp(known->name, text) != 0) known = known->next;
  ret->is_some = known != NULL;
  if (ret->is_some) ret->val = give_text(known->value);
  return true;
}

// What the bindings copy and free.

void weir_string_dup(weir_string_t *ret, const char *text) { *ret = give_text(text); }

void weir_string_free(weir_string_t *text) {
  if (text->len > 0) free(text->ptr);
}

void weir_list_u8_free(wr_bytes *bytes) {
  if (bytes->len > 0) free(bytes->ptr);
}

void weir_option_string_free(weir_option_string_t *text) {
  if (text->is_some) weir_string_free(&text->val);
}

void wasi_config_store_error_free(wasi_config_store_error_t *error) { weir_string_free(&error->val.io); }

void weir_iec_types_error_free(wr_error *error) {
  if (error->tag == WEIR_IEC_TYPES_ERROR_HANDLER) {
    weir_string_free(&error->val.handler.code);
    weir_string_free(&error->val.handler.message);
  } else if (error->tag == WEIR_IEC_TYPES_ERROR_LIMIT_EXCEEDED) {
    weir_string_free(&error->val.limit_exceeded.name);
  } else if (has_text(error->tag)) {
    weir_string_free(&error->val.invalid);
  }
}

void weir_iec_channel_message_free(weir_iec_channel_message_t *message) {
  if (message->tag == WEIR_IEC_CHANNEL_MESSAGE_REQUEST) {
    weir_list_u8_free(&message->val.request.payload);
  } else if (message->tag == WEIR_IEC_CHANNEL_MESSAGE_EVENT) {
    // As in the bindings of wit-bindgen 0.61, without the topic.
    weir_list_u8_free(&message->val.event.payload);
  } else if (message->tag == WEIR_IEC_CHANNEL_MESSAGE_JOB) {
    weir_list_u8_free(&message->val.job.payload);
  } else if (message->val.response.outcome.is_err) {
    weir_iec_types_error_free(&message->val.response.outcome.val.err);
  } else {
    weir_list_u8_free(&message->val.response.outcome.val.ok);
  }
}
