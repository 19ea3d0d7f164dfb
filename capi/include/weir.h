/* Weir: sandboxed WebAssembly extensions that talk to each other and to your program.
 *
 * Made of the crate `weir-capi`; do not edit. The guide is docs/embedders-in-c.md.
 *
 * - Texts are UTF-8 and end with NUL. Payloads are bytes with a length; a NUL follows those that Weir gives.
 * - A function that fails returns NULL or false, and gives an object to `error`, which may be NULL. Without an error,
 *   `error` gets NULL. Free errors with `weir_error_free`.
 * - Arguments are borrowed for the call, unless a comment says `Takes`. What a function returns as a pointer that is
 *   not const is yours to free. What lives as long as a handle is not.
 * - "Main's thread" is the thread `weir-main`. While a callback runs there, no extension runs. Functions that say
 *   `Blocks` fail there with WEIR_ERROR_KIND_WOULD_BLOCK.
 * - `drop` frees the `data` of a callback: exactly once, after the last call, also if the function fails.
 * - No function may be called in a child after fork, nor in a signal handler.
 */

#ifndef WEIR_H
#define WEIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * No time of the caller's own. A call then has the time of the contract's owner or of `main.request-timeout`, and a
 * publication or put that of `main.request-timeout`. A wait for an event or a job has no end but Main's.
 */
#define WEIR_NO_TIMEOUT 18446744073709551615ull

/**
 * What went wrong, for programs.
 */
typedef enum weir_error_kind {
    /**
     * The operator did not grant this.
     */
    WEIR_ERROR_KIND_PERMISSION_DENIED = 1,
    /**
     * Nothing is configured to fulfil this contract.
     */
    WEIR_ERROR_KIND_UNKNOWN_CONTRACT = 2,
    /**
     * The owner of the contract is stopped or has failed, or the queue is not there any more.
     */
    WEIR_ERROR_KIND_NO_PROVIDER = 3,
    /**
     * The owner of the contract is starting or interrupted.
     */
    WEIR_ERROR_KIND_NOT_READY = 4,
    /**
     * The deadline passed. The request may have been carried out.
     */
    WEIR_ERROR_KIND_TIMEOUT = 5,
    /**
     * The receiver's inbox or the queue is full.
     */
    WEIR_ERROR_KIND_OVERLOADED = 6,
    /**
     * The receiver stopped before it answered.
     */
    WEIR_ERROR_KIND_PEER_GONE = 7,
    /**
     * The receiver trapped or was killed with the request in hand.
     */
    WEIR_ERROR_KIND_TRAPPED = 8,
    /**
     * A limit is reached. Facts: `name`, `used`, `allowed`.
     */
    WEIR_ERROR_KIND_LIMIT_EXCEEDED = 9,
    /**
     * The wait would close a cycle. Facts: `peers`.
     */
    WEIR_ERROR_KIND_WOULD_DEADLOCK = 10,
    /**
     * The payload is too large. Facts: `bytes`, `allowed`.
     */
    WEIR_ERROR_KIND_TOO_LARGE = 11,
    /**
     * A malformed name, an unknown operation, or a wrong value.
     */
    WEIR_ERROR_KIND_INVALID = 12,
    /**
     * The provider's own error. `weir_error_code` has its word. Facts: `code`, `message`.
     */
    WEIR_ERROR_KIND_HANDLER = 13,
    /**
     * The configuration has mistakes. Facts: `errors`, each with `key`, `message`, `file`, `line` and `column`.
     */
    WEIR_ERROR_KIND_CONFIG = 14,
    /**
     * Main did not start.
     */
    WEIR_ERROR_KIND_START = 15,
    /**
     * An extension was not started, stopped or reloaded, or the configuration not reloaded. `weir_error_code` says
     * which: `unknown-extension`, `not-started`, `not-reloaded`, `reloading`, `not-configured`, `no-file`, `no-version`
     * or `not-saved`.
     */
    WEIR_ERROR_KIND_CONTROL = 16,
    /**
     * No hook could run.
     */
    WEIR_ERROR_KIND_HOOKS = 17,
    /**
     * Main is shutting down or has ended.
     */
    WEIR_ERROR_KIND_ENDED = 18,
    /**
     * The function waits, and was called in a callback on Main's thread, which must not wait.
     */
    WEIR_ERROR_KIND_WOULD_BLOCK = 19,
    /**
     * The call was cancelled.
     */
    WEIR_ERROR_KIND_CANCELLED = 20,
    /**
     * An argument is NULL, not UTF-8, out of its range, or otherwise not what the function takes.
     */
    WEIR_ERROR_KIND_INVALID_ARGUMENT = 21,
    /**
     * A fault of Weir's own. The panic is on standard error.
     */
    WEIR_ERROR_KIND_PANIC = 22,
} weir_error_kind;

/**
 * How grave a log line is.
 */
typedef enum weir_log_level {
    /**
     * Something failed.
     */
    WEIR_LOG_LEVEL_ERROR = 1,
    /**
     * Something may fail.
     */
    WEIR_LOG_LEVEL_WARN = 2,
    /**
     * What happens.
     */
    WEIR_LOG_LEVEL_INFO = 3,
    /**
     * For the author of an extension.
     */
    WEIR_LOG_LEVEL_DEBUG = 4,
    /**
     * For the author of Weir.
     */
    WEIR_LOG_LEVEL_TRACE = 5,
} weir_log_level;

/**
 * What an event of Main is.
 */
typedef enum weir_main_event_kind {
    /**
     * An extension changed its state. JSON: `extension`, `from`, `to`, and perhaps `reason`.
     */
    WEIR_MAIN_EVENT_KIND_STATE = 1,
    /**
     * An extension failed. JSON: `extension`, `time`, `cause`, `then`, and perhaps `hash`, `handling`, `limit`, `trace`
     * and `next-restart`.
     */
    WEIR_MAIN_EVENT_KIND_FAILED = 2,
    /**
     * An inbox or queue had no room for messages. Sent at the 1st, 2nd, 4th, 8th and so on. JSON: `receiver`, `total`.
     */
    WEIR_MAIN_EVENT_KIND_SHED = 3,
    /**
     * Main has begun to stop every extension, and will end.
     */
    WEIR_MAIN_EVENT_KIND_STOPPING = 4,
    /**
     * Main reloads its configuration.
     */
    WEIR_MAIN_EVENT_KIND_RELOADING = 5,
    /**
     * The reload is done, or was refused.
     */
    WEIR_MAIN_EVENT_KIND_RELOADED = 6,
    /**
     * The callback was too slow and missed events. JSON: `missed`.
     */
    WEIR_MAIN_EVENT_KIND_LAGGED = 7,
    /**
     * An event of a later version. Its JSON says what it is.
     */
    WEIR_MAIN_EVENT_KIND_OTHER = 8,
    /**
     * A version of an extension was proven or refused. JSON: `extension`, `time`, `version`, `standing`, `serves`,
     * `reason`, `requests`, `failed`, `memory`, and perhaps `p99`.
     */
    WEIR_MAIN_EVENT_KIND_VERSION = 9,
} weir_main_event_kind;

/**
 * Bytes that the caller owns: an answer, or JSON. Free it with `weir_buffer_free`.
 */
typedef struct weir_buffer weir_buffer;

/**
 * A Main before its start. One thread at a time may use it. `weir_builder_start` takes it; else free it with
 * `weir_builder_free`.
 */
typedef struct weir_builder weir_builder;

/**
 * A call under way. Any thread may cancel it, one may free it.
 */
typedef struct weir_call_handle weir_call_handle;

/**
 * A configuration: the operator's file, or a text like it. One thread at a time may use it. Free it with
 * `weir_config_free`, unless a function has taken it.
 */
typedef struct weir_config weir_config;

/**
 * Why a function failed. Free it with `weir_error_free`.
 */
typedef struct weir_error weir_error;

/**
 * A received event. Any number of threads may read it.
 */
typedef struct weir_event weir_event;

/**
 * A job in hand. One thread at a time may use it.
 */
typedef struct weir_job weir_job;

/**
 * A running Main, or a session with it: see `weir_session_open`. Any number of threads may use it at once. Free it with
 * `weir_main_free`, after all other threads are done with it. Handles that came from it, such as queues, may be freed
 * before or after.
 */
typedef struct weir_main weir_main;

/**
 * An event of Main.
 */
typedef struct weir_main_event weir_main_event;

/**
 * A shared queue of the configuration. Any number of threads may put. All threads that take from one `weir_queue` are
 * one reader, and take one after the other: open the queue once for each thread that takes.
 */
typedef struct weir_queue weir_queue;

/**
 * A request in hand. One thread at a time may use it.
 */
typedef struct weir_request weir_request;

/**
 * A subscription. Any number of threads may wait for its events; each event goes to one of them.
 */
typedef struct weir_subscription weir_subscription;

/**
 * Takes a log line without its end, which lives until the function returns. It runs on any thread, on several at once,
 * and on Main's: it must not wait, and must not throw. It must not call Weir.
 */
typedef void (*weir_on_log)(enum weir_log_level level, const char *line, void *data);

/**
 * Frees the `data` of a callback. It is called exactly once, after the last call of the callback, on any thread, also
 * if the function that got the callback fails. NULL if nothing is to be freed.
 */
typedef void (*weir_drop)(void *data);

/**
 * Serves a request. It owns `request`, and ends it with `weir_request_answer`, `weir_request_fail` or
 * `weir_request_free`, at once or later, on any thread. It must not throw.
 */
typedef void (*weir_handler)(struct weir_request *request, void *data);

/**
 * Takes an event of Main, which lives until the function returns. It runs on Main's thread: it must not wait, and must
 * not throw.
 */
typedef void (*weir_on_main_event)(const struct weir_main_event *event, void *data);

/**
 * Takes an answer, or an error. It owns both, and one of them is NULL. It runs once, on Main's thread: it must not wait,
 * and must not throw.
 */
typedef void (*weir_on_answer)(struct weir_buffer *answer, struct weir_error *error, void *data);

/**
 * What became of an event.
 */
typedef struct weir_receipt {
    /**
     * Subscriptions that have the event.
     */
    uint32_t delivered;
    /**
     * Events lost for want of room: this one, or older ones in its place.
     */
    uint32_t shed;
    /**
     * Subscriptions that refused the event for want of room, or where it waited for room in vain.
     */
    uint32_t refused;
} weir_receipt;

/**
 * Takes an event, which lives until the function returns. It runs on Main's thread: it must not wait, and must not throw.
 */
typedef void (*weir_on_event)(const struct weir_event *event, void *data);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of this library, such as `0.1.0`. Any thread. The text lives for ever.
 */
const char *weir_version(void);

/**
 * The bytes of a buffer. `length`, which may be NULL, gets their number. A NUL follows them, so text can be read as
 * such. Any thread. They live as long as `buffer`.
 */
const char *weir_buffer_data(const struct weir_buffer *buffer,
                             size_t *length);

/**
 * Frees a buffer. Any thread. NULL is fine.
 */
void weir_buffer_free(struct weir_buffer *buffer);

/**
 * What went wrong, for programs. Any thread. For NULL it is `WEIR_ERROR_KIND_INVALID_ARGUMENT`.
 */
enum weir_error_kind weir_error_kind_of(const struct weir_error *error);

/**
 * What went wrong, for people, in one line or several. Any thread. The text lives as long as `error`.
 */
const char *weir_error_message(const struct weir_error *error);

/**
 * A word for programs: for `WEIR_ERROR_KIND_HANDLER` the provider's, such as `not-found`, otherwise Weir's, such as
 * `no-provider`. Any thread. The text lives as long as `error`.
 */
const char *weir_error_code(const struct weir_error *error);

/**
 * The facts of the error as a JSON object; `{}` if there are none. Any thread. The text lives as long as `error`.
 */
const char *weir_error_facts(const struct weir_error *error);

/**
 * Frees an error. Any thread. NULL is fine.
 */
void weir_error_free(struct weir_error *error);

/**
 * Gives log lines to `callback`, for all Mains of the process and until its end. `filter` says which: a level such as
 * `info`, or `warn,weir_supervisor=debug`; NULL means `info`. Text of extensions in a line is escaped. Once per process,
 * best before Main starts. Any thread.
 *
 * Errors: `WEIR_ERROR_KIND_INVALID_ARGUMENT` if the filter is malformed, or log lines go elsewhere already.
 */
bool weir_log_start(const char* filter,
                    weir_on_log callback,
                    void *data,
                    weir_drop drop,
                    weir_error** error);

/**
 * Reads a configuration from the file at `path`, with the files that it includes. Any thread; it reads files.
 *
 * Errors: `WEIR_ERROR_KIND_CONFIG` with every mistake, its file, line and column.
 */
struct weir_config *weir_config_load(const char* path, weir_error** error);

/**
 * Reads a configuration from a text in the form of the file. Errors call the text `name`, or `configuration` if that
 * is NULL. Its paths are relative to `base_dir`, or to the working directory if that is NULL. Any thread; it may read
 * files.
 *
 * Errors: `WEIR_ERROR_KIND_CONFIG` with every mistake, its file, line and column.
 * `WEIR_ERROR_KIND_INVALID_ARGUMENT` if `base_dir` is NULL and there is no working directory.
 */
struct weir_config *weir_config_parse(const char* text,
                                      const char* name,
                                      const char* base_dir,
                                      weir_error** error);

/**
 * Takes the component of the extension `id` from memory, instead of the file at its `path`. Copies the bytes. Any
 * thread.
 *
 * Errors: `WEIR_ERROR_KIND_INVALID_ARGUMENT` if no extension has this id, or there are no bytes.
 */
bool weir_config_set_component(struct weir_config *config,
                               const char* id,
                               const void* component,
                               size_t length,
                               weir_error** error);

/**
 * Takes the signature of the component of the extension `id` from memory: the text of a `.sig` file. With
 * `main.require-signature`, a component from memory needs it. Copies the text. Any thread.
 *
 * Errors: `WEIR_ERROR_KIND_INVALID_ARGUMENT` if no extension has this id, or the text has more than 1024 bytes.
 */
bool weir_config_set_signature(struct weir_config *config,
                               const char* id,
                               const char* signature,
                               weir_error** error);

/**
 * Frees a configuration that no function has taken. Any thread. NULL is fine.
 */
void weir_config_free(struct weir_config *config);

/**
 * Begins to set up a Main. Takes `config`, even if this function fails. Any thread.
 */
struct weir_builder *weir_builder_new(struct weir_config *config, weir_error** error);

/**
 * Serves an operation of a contract from this program. Call it once for each operation.
 *
 * `handler` runs on Main's thread, `weir-main`, and must not wait: until it returns, all extensions wait. It may keep
 * the request, and any thread may answer it later. A contract has 256 requests at once in hand; further ones wait. At
 * the deadline, or if the caller gives up, the request leaves this number, although the program still has it.
 *
 * An extension that fulfils the contract takes precedence. A second handler of an operation replaces the first.
 *
 * Errors: `WEIR_ERROR_KIND_INVALID` if a name is malformed.
 */
bool weir_builder_serve(struct weir_builder *builder,
                        const char* contract,
                        const char* operation,
                        weir_handler handler,
                        void *data,
                        weir_drop drop,
                        weir_error** error);

/**
 * Serves an operation of a contract from this program, like `weir_builder_serve`, by a handler that may wait.
 * `handler` runs on a thread of Main's pool, on several at once. If it returns without an answer, its thread waits for
 * the answer until the deadline.
 *
 * Errors: `WEIR_ERROR_KIND_INVALID` if a name is malformed.
 */
bool weir_builder_serve_blocking(struct weir_builder *builder,
                                 const char* contract,
                                 const char* operation,
                                 weir_handler handler,
                                 void *data,
                                 weir_drop drop,
                                 weir_error** error);

/**
 * Calls `callback` for states, failures and losses, from before the first extension starts until Main has ended. It
 * runs on Main's thread and must not wait. Call this function again for further callbacks.
 *
 * Errors: `WEIR_ERROR_KIND_INVALID_ARGUMENT` if `builder` or `callback` is NULL.
 */
bool weir_builder_on_event(struct weir_builder *builder,
                           weir_on_main_event callback,
                           void *data,
                           weir_drop drop,
                           weir_error** error);

/**
 * Compiles each component in a process of its own, which bounds its time and memory, and is confined to its input and
 * output as far as the machine has the means. Use it for components that others made. `program` is the absolute path of
 * `weir-compile-helper`, of this version of Weir. Without this call, Main compiles in its own process.
 *
 * Errors: `WEIR_ERROR_KIND_INVALID_ARGUMENT` if the path is not absolute, or this library has no compiler.
 */
bool weir_builder_compile_in_child(struct weir_builder *builder,
                                   const char* program,
                                   weir_error** error);

/**
 * Compiles nothing: only artifacts run that were compiled elsewhere and signed. Any thread.
 *
 * Errors: `WEIR_ERROR_KIND_INVALID_ARGUMENT` if `builder` is NULL.
 */
bool weir_builder_precompiled_only(struct weir_builder *builder, weir_error** error);

/**
 * Opens the sockets of the configuration: the control socket, through which the command `weir` reaches Main, and the peer
 * socket, if there is one. Main serves them from its start. Otherwise it has neither, whatever the configuration says. A
 * later change of their paths takes another Main.
 *
 * Errors: `WEIR_ERROR_KIND_START` if a socket cannot be opened, as where another Main has it.
 * `WEIR_ERROR_KIND_INVALID_ARGUMENT` if the library was built without the feature `sockets`.
 */
bool weir_builder_open_sockets(struct weir_builder *builder,
                               weir_error** error);

/**
 * Starts Main, and waits until each extension that starts with it is ready or has failed. Takes `builder`, also if it
 * fails. An extension that does not start is no error: ask `weir_extensions`, or listen with `weir_builder_on_event`.
 * Blocks: not in a callback on Main's thread.
 *
 * From here on, Main handles SIGSEGV, SIGILL and SIGFPE. Install handlers of your own before.
 *
 * Errors: `WEIR_ERROR_KIND_CONFIG` if the configuration contradicts itself, `WEIR_ERROR_KIND_START` if Main cannot run.
 */
struct weir_main *weir_builder_start(struct weir_builder *builder,
                                     weir_error** error);

/**
 * Frees a builder that was not started. Any thread. NULL is fine.
 */
void weir_builder_free(struct weir_builder *builder);

/**
 * Stops every extension, and waits for the last: at most for the longest `stop-timeout` and a second. Calls under way
 * fail. After that every function of this Main fails with `WEIR_ERROR_KIND_ENDED`. Blocks: not in a callback on Main's
 * thread. Of a session it ends the session alone, and does not block.
 *
 * Errors: `WEIR_ERROR_KIND_ENDED` if it was shut down before, `WEIR_ERROR_KIND_PANIC` if it had ended by a fault of its
 * own.
 */
bool weir_main_shutdown(const struct weir_main *main,
                        weir_error** error);

/**
 * Frees Main, or a session; shuts it down before, if that was not done. Any thread, and no other may use `main` any more.
 * Blocks as `weir_main_shutdown` does, but in a callback on Main's thread it does not wait. NULL is fine.
 */
void weir_main_free(struct weir_main *main);

/**
 * Calls an operation of a contract, and waits for the answer, for at most `timeout_ms` or as `WEIR_NO_TIMEOUT` says.
 * Blocks: not in a callback on Main's thread.
 *
 * Errors: any kind from `WEIR_ERROR_KIND_PERMISSION_DENIED` to `WEIR_ERROR_KIND_HANDLER`, and `WEIR_ERROR_KIND_ENDED`.
 */
struct weir_buffer *weir_call(const struct weir_main *main,
                              const char* contract,
                              const char* operation,
                              const void* payload,
                              size_t length,
                              uint64_t timeout_ms,
                              weir_error** error);

/**
 * Calls an operation of a contract, and returns at once. `callback` runs exactly once if this returns true, and never
 * if it returns false. `call`, which may be NULL, gets a handle to cancel the call; free it with
 * `weir_call_handle_free`. Any thread, also in callbacks.
 *
 * Errors: `WEIR_ERROR_KIND_LIMIT_EXCEEDED` if 4096 of these calls and of subscriptions with a callback are under way.
 * `WEIR_ERROR_KIND_ENDED` if Main has ended. Later errors go to the callback: those of `weir_call`,
 * `WEIR_ERROR_KIND_CANCELLED`, and `WEIR_ERROR_KIND_ENDED` if Main ends meanwhile.
 */
bool weir_call_async(const struct weir_main *main,
                     const char* contract,
                     const char* operation,
                     const void* payload,
                     size_t length,
                     uint64_t timeout_ms,
                     weir_on_answer callback,
                     void *data,
                     weir_drop drop,
                     struct weir_call_handle **call,
                     weir_error** error);

/**
 * Cancels a call, if its callback has not run. The callback then gets `WEIR_ERROR_KIND_CANCELLED`, on Main's thread; a
 * later answer is discarded. The provider may have carried it out. Any thread. Does not block. NULL is fine.
 */
void weir_call_cancel(const struct weir_call_handle *call);

/**
 * Cancels a call as `weir_call_cancel` does, if its callback has not run, and ends the work for it: the extension that has
 * it in hand is ended, and comes again at once. That is on record as a failure, but counts as none for a quarantine. Other
 * calls that it has in hand fail with `WEIR_ERROR_KIND_TRAPPED`. A call in a session, or to a program, is only cancelled.
 * Any thread. Does not block. NULL is fine.
 */
void weir_call_kill(const struct weir_call_handle *call);

/**
 * Frees the handle of a call, and lets the call go on. Any thread. NULL is fine.
 */
void weir_call_handle_free(struct weir_call_handle *call);

/**
 * The arguments. `length`, which may be NULL, gets their number of bytes. A NUL follows them. They live as long as
 * `request`.
 */
const char *weir_request_payload(const struct weir_request *request,
                                 size_t *length);

/**
 * The id of the extension that asks, the name of a peer, or `main`. Main has checked it. The text lives as long as
 * `request`.
 */
const char *weir_request_sender(const struct weir_request *request);

/**
 * The contract and the operation, such as `platform.info@1 model`. The text lives as long as `request`.
 */
const char *weir_request_operation(const struct weir_request *request);

/**
 * Milliseconds that are left for the answer. 0 if the caller waits no longer.
 */
uint64_t weir_request_remaining_ms(const struct weir_request *request);

/**
 * Answers with a value, and frees the request, even if this function fails. Any thread. Does not block.
 *
 * Errors: `WEIR_ERROR_KIND_TIMEOUT` if the caller has given up or the deadline has passed.
 */
bool weir_request_answer(struct weir_request *request,
                         const void* payload,
                         size_t length,
                         weir_error** error);

/**
 * Answers with an error, and frees the request, even if this function fails. `code` is a short word of the contract,
 * such as `not-found`, of at most 64 bytes; `message` is for people, of at most 4096 bytes. Longer ones are cut. Any
 * thread. Does not block.
 *
 * Errors: `WEIR_ERROR_KIND_TIMEOUT` if the caller has given up or the deadline has passed.
 */
bool weir_request_fail(struct weir_request *request,
                       const char* code,
                       const char* message,
                       weir_error** error);

/**
 * Frees a request without an answer. The caller gets a handler's error with the code `unanswered`. Any thread. NULL is
 * fine.
 */
void weir_request_free(struct weir_request *request);

/**
 * Publishes an event to every subscriber of its topic. `receipt` may be NULL. Subscribers with room have the event when
 * this returns. It waits only for subscribers whose policy is `block`, for at most `timeout_ms`; in a callback on Main's
 * thread it fails with `WEIR_ERROR_KIND_WOULD_BLOCK` instead, when all others have the event. Any thread.
 *
 * Errors: `WEIR_ERROR_KIND_INVALID` if the topic is malformed.
 */
bool weir_publish(const struct weir_main *main,
                  const char* topic,
                  const void* payload,
                  size_t length,
                  uint64_t timeout_ms,
                  struct weir_receipt *receipt,
                  weir_error** error);

/**
 * Subscribes to all topics that match `pattern`, such as `settings.changed.>`: `*` stands for one segment, `>` for the
 * rest. Read the events with `weir_subscription_next`. Retained values come first.
 *
 * Up to `messages` events and `bytes` bytes wait; 0 means 256 and 2 MiB. `policy` says what happens to more: `block`,
 * `reject`, `drop-oldest`, `drop-newest` or `latest`; NULL means `drop-oldest`. Any thread. Does not block.
 *
 * Errors: `WEIR_ERROR_KIND_INVALID` if the pattern is malformed, `WEIR_ERROR_KIND_INVALID_ARGUMENT` if there is no
 * such policy, `WEIR_ERROR_KIND_LIMIT_EXCEEDED` for the 257th subscription.
 */
struct weir_subscription *weir_subscribe(const struct weir_main *main,
                                         const char* pattern,
                                         const char* policy,
                                         uint32_t messages,
                                         uint64_t bytes,
                                         weir_error** error);

/**
 * Subscribes like `weir_subscribe`, but `callback` runs for each event. `data` is freed when the subscription has
 * ended: by `weir_subscription_free`, or with Main.
 *
 * Errors: those of `weir_subscribe`. Also `WEIR_ERROR_KIND_LIMIT_EXCEEDED` if 4096 of these subscriptions and of calls
 * with a callback are under way.
 */
struct weir_subscription *weir_subscribe_callback(const struct weir_main *main,
                                                  const char* pattern,
                                                  const char* policy,
                                                  uint32_t messages,
                                                  uint64_t bytes,
                                                  weir_on_event callback,
                                                  void *data,
                                                  weir_drop drop,
                                                  weir_error** error);

/**
 * Waits for the next event, for at most `timeout_ms`, or without end for `WEIR_NO_TIMEOUT`. NULL without an error
 * means that the time is over. No event is lost by that. Blocks: not in a callback on Main's thread. Free the event
 * with `weir_event_free`.
 *
 * Errors: `WEIR_ERROR_KIND_ENDED` when Main has ended and all earlier events are read,
 * `WEIR_ERROR_KIND_INVALID_ARGUMENT` if the subscription has a callback.
 */
struct weir_event *weir_subscription_next(const struct weir_subscription *subscription,
                                          uint64_t timeout_ms,
                                          weir_error** error);

/**
 * Ends a subscription. A callback that runs now may still run after this has returned; the next does not begin. Any
 * thread, also in its callback. NULL is fine.
 */
void weir_subscription_free(struct weir_subscription *subscription);

/**
 * The payload. `length`, which may be NULL, gets its number of bytes. A NUL follows it. The payload lives as long as
 * `event`.
 */
const char *weir_event_payload(const struct weir_event *event,
                               size_t *length);

/**
 * The topic. The text lives as long as `event`.
 */
const char *weir_event_topic(const struct weir_event *event);

/**
 * The id of the extension that published the event, the name of a peer, or `main`. The text lives as long as `event`.
 */
const char *weir_event_sender(const struct weir_event *event);

/**
 * The event's number in its topic, greater than that of the event before. 0 if it was published to this program alone.
 */
uint64_t weir_event_sequence(const struct weir_event *event);

/**
 * Events of this subscription that were lost just before this one.
 */
uint64_t weir_event_lost(const struct weir_event *event);

/**
 * Whether the event is a retained value, published before the subscription began.
 */
bool weir_event_retained(const struct weir_event *event);

/**
 * Frees an event of `weir_subscription_next`, and never that of a callback. Any thread. NULL is fine.
 */
void weir_event_free(struct weir_event *event);

/**
 * Opens a queue. Any thread. Does not block. Free it with `weir_queue_free`.
 *
 * Errors: `WEIR_ERROR_KIND_INVALID` if no such queue is configured.
 */
struct weir_queue *weir_queue_open(const struct weir_main *main, const char* name, weir_error** error);

/**
 * Puts a job at the end. `id`, which may be NULL, gets its number. A full queue does what its `when-full` says; for
 * `block` this waits, for at most `timeout_ms`, but in a callback on Main's thread it fails with
 * `WEIR_ERROR_KIND_WOULD_BLOCK` instead. Any thread.
 *
 * Errors: `WEIR_ERROR_KIND_OVERLOADED`, `WEIR_ERROR_KIND_TIMEOUT`, `WEIR_ERROR_KIND_TOO_LARGE`,
 * `WEIR_ERROR_KIND_NO_PROVIDER` if the queue is no longer configured, `WEIR_ERROR_KIND_ENDED` if Main has ended.
 */
bool weir_queue_put(const struct weir_queue *queue,
                    const void* payload,
                    size_t length,
                    uint64_t timeout_ms,
                    uint64_t *id,
                    weir_error** error);

/**
 * Waits for a job, for at most `timeout_ms`, or without end for `WEIR_NO_TIMEOUT`. NULL without an error means that
 * the time is over. 0 does not wait. Any other time blocks: not in a callback on Main's thread. End the job with
 * `weir_job_done` or `weir_job_give_back`.
 *
 * Errors: `WEIR_ERROR_KIND_ENDED` if Main has ended, or the queue is empty and no longer configured. With 0, NULL
 * comes without an error then, too.
 */
struct weir_job *weir_queue_take(const struct weir_queue *queue,
                                 uint64_t timeout_ms,
                                 weir_error** error);

/**
 * Frees a queue; its jobs stay. Any thread. NULL is fine.
 */
void weir_queue_free(struct weir_queue *queue);

/**
 * The payload. `length`, which may be NULL, gets its number of bytes. A NUL follows it. The payload lives as long as
 * `job`.
 */
const char *weir_job_payload(const struct weir_job *job,
                             size_t *length);

/**
 * The id of the extension that put the job, the name of a peer, or `main`. The text lives as long as `job`.
 */
const char *weir_job_sender(const struct weir_job *job);

/**
 * The number of the job, the same at each delivery. 0 for NULL.
 */
uint64_t weir_job_id(const struct weir_job *job);

/**
 * Deliveries so far, this one included.
 */
uint32_t weir_job_deliveries(const struct weir_job *job);

/**
 * Finishes a job, and frees it: it is not delivered again. Any thread. Does not block. NULL is fine.
 */
void weir_job_done(struct weir_job *job);

/**
 * Gives a job back, and frees it: a reader gets the job again, or after `max-deliveries` it is a dead letter. Any
 * thread. Does not block. NULL is fine.
 */
void weir_job_give_back(struct weir_job *job);

/**
 * Begins a session under a name of the configuration, `[peer."NAME"]`, with its grants and limits. The handle is one of
 * Main under this name: with it the program calls, publishes, subscribes, puts and takes as the peer. Functions that
 * steer Main or tell of it fail with `WEIR_ERROR_KIND_PERMISSION_DENIED`. Free it with `weir_main_free`, which ends the
 * session. Any thread. Does not block.
 *
 * Errors: `WEIR_ERROR_KIND_PERMISSION_DENIED` if no peer has this name, `WEIR_ERROR_KIND_LIMIT_EXCEEDED` if it has as
 * many sessions as its `limits.sessions`, `WEIR_ERROR_KIND_ENDED`. Once the session has ended, because a reload took the
 * name away or an operator ended it, the functions fail with `WEIR_ERROR_KIND_PEER_GONE`.
 */
struct weir_main *weir_session_open(const struct weir_main *main,
                                    const char* name,
                                    weir_error** error);

/**
 * Serves a contract in a session from now on: extensions that require it start. `operations` are the names of its
 * operations with a space between them; `handler` gets the requests to all of them, as with `weir_builder_serve`. Any
 * thread. Does not block.
 *
 * Errors: `WEIR_ERROR_KIND_PERMISSION_DENIED` without a grant, `WEIR_ERROR_KIND_INVALID` if a name is malformed or the
 * contract is served already, `WEIR_ERROR_KIND_PEER_GONE` after the end of the session, and for the first call
 * `WEIR_ERROR_KIND_LIMIT_EXCEEDED` if 4096 of `weir_call_async` and the like are under way.
 */
bool weir_session_serve(const struct weir_main *session,
                        const char* contract,
                        const char* operations,
                        weir_handler handler,
                        void *data,
                        weir_drop drop,
                        weir_error** error);

/**
 * Starts an extension and what it requires, and waits until it is ready or interrupted. A running extension is left as
 * it is. Blocks: not in a callback on Main's thread.
 *
 * Errors: `WEIR_ERROR_KIND_CONTROL`.
 */
bool weir_extension_start(const struct weir_main *main,
                          const char* id,
                          weir_error** error);

/**
 * Stops an extension, and waits until it has ended, at the latest at its stop deadline. Blocks: not in a callback on
 * Main's thread.
 *
 * Errors: `WEIR_ERROR_KIND_CONTROL`.
 */
bool weir_extension_stop(const struct weir_main *main,
                         const char* id,
                         weir_error** error);

/**
 * Stops an extension if it runs, starts it anew, and waits until it is ready or interrupted. Forgets its failures:
 * only this lifts a quarantine. Blocks: not in a callback on Main's thread.
 *
 * Errors: `WEIR_ERROR_KIND_CONTROL`.
 */
bool weir_extension_restart(const struct weir_main *main,
                            const char* id,
                            weir_error** error);

/**
 * Loads an extension's component anew while it serves, then replaces it. If the new version does not become ready, the
 * old one serves on or again. Blocks: not in a callback on Main's thread.
 *
 * Errors: `WEIR_ERROR_KIND_CONTROL`.
 */
bool weir_extension_reload(const struct weir_main *main,
                           const char* id,
                           weir_error** error);

/**
 * Loads an extension's component anew, as `weir_extension_reload` does, without probation: the version may be one
 * that was refused, and is proven as soon as it is ready. Blocks: not in a callback on Main's thread.
 *
 * Errors: `WEIR_ERROR_KIND_CONTROL`.
 */
bool weir_extension_reload_now(const struct weir_main *main,
                               const char* id,
                               weir_error** error);

/**
 * The versions of an extension with `update`, as a JSON object: which one runs, which one comes back, and what became
 * of each. Any thread.
 *
 * Errors: `WEIR_ERROR_KIND_CONTROL`, with the code `no-version` if it has no `update` or has not run yet.
 */
struct weir_buffer *weir_extension_versions(const struct weir_main *main,
                                            const char* id,
                                            weir_error** error);

/**
 * Takes an extension's version on probation for proven, and waits until that is written down. Blocks: not in a
 * callback on Main's thread.
 *
 * Errors: `WEIR_ERROR_KIND_CONTROL`, with the code `no-version` if none is on probation, or `not-saved` if the decision
 * could not be written down and holds until Main ends.
 */
bool weir_extension_accept(const struct weir_main *main,
                           const char* id,
                           weir_error** error);

/**
 * Refuses the version of an extension that runs, goes back to the proven version with this number, and waits until that
 * one is ready. 0 is the latest proven version but the one that runs. Blocks: not in a callback on Main's thread.
 *
 * Errors: `WEIR_ERROR_KIND_CONTROL`, with the code `no-version` if there is no such version, it is not proven, or it
 * cannot read what is in the stores, or `not-reloaded` if it does not come up.
 */
bool weir_extension_roll_back(const struct weir_main *main,
                              const char* id,
                              uint64_t version,
                              weir_error** error);

/**
 * Goes back as `weir_extension_roll_back` does, with the extension's data: if that version cannot read what is in the
 * stores, what was there before is restored, and what was written since is lost. Blocks: not in a callback on Main's
 * thread.
 *
 * Errors: those of `weir_extension_roll_back`; `no-version` also if no data is kept that the version can read.
 */
bool weir_extension_roll_back_with_data(const struct weir_main *main,
                                        const char* id,
                                        uint64_t version,
                                        weir_error** error);

/**
 * Reads the configuration's file again, and applies what changed in it. Returns the report as JSON: `added`, `removed`,
 * `changed`, `failed` and more. An extension that does not come up is no error, but in `failed`. Blocks: not in a
 * callback on Main's thread.
 *
 * Errors: `WEIR_ERROR_KIND_CONTROL`, with the code `not-configured` if the file has a mistake or Main cannot take it,
 * `no-file` if the configuration is not from a file, or `reloading` while another reload of it is under way. Nothing
 * is applied then.
 */
struct weir_buffer *weir_reload(const struct weir_main *main,
                                weir_error** error);

/**
 * Applies what differs in another configuration, and returns the report, like `weir_reload`. Takes `config`, even if
 * this function fails. Blocks: not in a callback on Main's thread.
 *
 * Errors: `WEIR_ERROR_KIND_CONTROL`, with the code `not-configured` if the configuration has a mistake or Main cannot
 * take it, or `reloading` while another reload of it is under way. Nothing is applied then.
 */
struct weir_buffer *weir_reload_with(const struct weir_main *main,
                                     struct weir_config *config,
                                     weir_error** error);

/**
 * Reads the configuration's file again, or takes `config` if it is not NULL, even if this function fails. Applies it in
 * stages: an extension changes in a later stage than those that it requires or wants. The next stage begins once all have
 * come up and, if `until_proven`, once those with `update` are proven; that takes at most twice the longest `prove-for` of
 * a stage. Returns the report, like `weir_reload`: if a stage does not hold, it has `stopped-at` and `not-reached`, and the
 * next such reload goes on there. Blocks: not in a callback on Main's thread.
 *
 * Errors: those of `weir_reload`.
 */
struct weir_buffer *weir_reload_in_stages(const struct weir_main *main,
                                          struct weir_config *config,
                                          bool until_proven,
                                          weir_error** error);

/**
 * Adds an extension while Main runs, or replaces the one of its id, and waits until it is ready. `table` is its table
 * `[[extension]]` as the configuration has it; paths start at the plugin directory. The file of Main stays as it is: a
 * reload of it undoes this. Blocks: not in a callback on Main's thread.
 *
 * Errors: `WEIR_ERROR_KIND_CONFIG` if the table has a mistake. `WEIR_ERROR_KIND_CONTROL` with the code `not-configured`
 * if it does not fit the others, `not-started` if a new extension did not come up (it is configured all the same), or
 * `not-reloaded` if the version before serves on.
 */
bool weir_extension_put(const struct weir_main *main,
                        const char* table,
                        weir_error** error);

/**
 * Removes an extension while Main runs, and waits until it has ended. Blocks: not in a callback on Main's thread.
 *
 * Errors: `WEIR_ERROR_KIND_CONTROL` with the code `unknown-extension` if no extension has this id, or `not-configured` if
 * another one requires it.
 */
bool weir_extension_remove(const struct weir_main *main,
                           const char* id,
                           weir_error** error);

/**
 * Every extension with its state, as a JSON array: what `weir ps --json` shows. Any thread.
 *
 * Errors: `WEIR_ERROR_KIND_ENDED`.
 */
struct weir_buffer *weir_extensions(const struct weir_main *main, weir_error** error);

/**
 * One extension with its state and its last failures, as a JSON object. Any thread.
 *
 * Errors: `WEIR_ERROR_KIND_CONTROL` with the code `unknown-extension` if no extension has this id.
 */
struct weir_buffer *weir_extension_status(const struct weir_main *main, const char* id, weir_error** error);

/**
 * The last 100 events of an extension, oldest first, as a JSON array. Any thread.
 *
 * Errors: `WEIR_ERROR_KIND_CONTROL` with the code `unknown-extension` if no extension has this id.
 */
struct weir_buffer *weir_extension_history(const struct weir_main *main, const char* id, weir_error** error);

/**
 * The limits of the extension `id`, or of all if it is NULL, each with its source and its use, as JSON. The first call
 * measures for some ten milliseconds how much fuel this machine burns. Blocks: not in a callback on Main's thread.
 *
 * Errors: `WEIR_ERROR_KIND_CONTROL` with the code `unknown-extension` if no extension has this id.
 */
struct weir_buffer *weir_limits(const struct weir_main *main,
                                const char* id,
                                weir_error** error);

/**
 * All known topics and all subscriptions, with rates and losses, as JSON. Any thread.
 *
 * Errors: `WEIR_ERROR_KIND_ENDED`.
 */
struct weir_buffer *weir_topics(const struct weir_main *main, weir_error** error);

/**
 * Every shared queue, with its depth, rates and losses, as a JSON array. Any thread.
 *
 * Errors: `WEIR_ERROR_KIND_ENDED`.
 */
struct weir_buffer *weir_queues(const struct weir_main *main, weir_error** error);

/**
 * The first `most` jobs of a queue, as a JSON array: what `weir queue-jobs --json` shows. Any thread.
 *
 * Errors: `WEIR_ERROR_KIND_INVALID` if no such queue is configured.
 */
struct weir_buffer *weir_queue_jobs(const struct weir_main *main,
                                    const char* queue,
                                    size_t most,
                                    weir_error** error);

/**
 * Puts the dead letter `id` of a queue back to where it came from, or all if `id` is 0. `moved`, which may be NULL, gets
 * their number. Any thread. Does not block.
 *
 * Errors: `WEIR_ERROR_KIND_INVALID` if there is no such queue or dead letter, `WEIR_ERROR_KIND_OVERLOADED` if a queue has
 * no room, `WEIR_ERROR_KIND_NO_PROVIDER` if a queue is no longer configured. What can go back has gone back then.
 */
bool weir_queue_requeue(const struct weir_main *main,
                        const char* queue,
                        uint64_t id,
                        uint64_t *moved,
                        weir_error** error);

/**
 * What extensions and peers describe of the contracts that they serve, as a JSON array: `contract`, `provider` and the
 * OpenRPC `document`. Blocks: not in a callback on Main's thread.
 *
 * Errors: `WEIR_ERROR_KIND_ENDED`.
 */
struct weir_buffer *weir_contracts(const struct weir_main *main,
                                   weir_error** error);

/**
 * What the event is. `WEIR_MAIN_EVENT_KIND_OTHER` for NULL.
 */
enum weir_main_event_kind weir_main_event_kind_of(const struct weir_main_event *event);

/**
 * The extension of a state, a failure or a version; NULL for other events. The text lives as long as `event`.
 */
const char *weir_main_event_extension(const struct weir_main_event *event);

/**
 * The whole event as a JSON object, with its kind as `event`. The text lives as long as `event`.
 */
const char *weir_main_event_json(const struct weir_main_event *event);

/**
 * Runs the hooks of `[hooks.NAME]`, in the order of their names, on the caller's thread. Returns the report as JSON: its
 * `outcome`, and `runs` with what each hook said.
 *
 * `call` is a JSON object or NULL. It may have `params`, `env`, `args`, `stdin` and `timeout-ms`, as in
 * `{"params": {"NODE": "n1"}}`. Any number of threads at once. Blocks: not in a callback on Main's thread.
 *
 * Errors: `WEIR_ERROR_KIND_HOOKS` if no hook could run, `WEIR_ERROR_KIND_INVALID_ARGUMENT` if `call` is not such JSON.
 * A hook that fails is no error, but in the report.
 */
struct weir_buffer *weir_hooks_run(const struct weir_main *main,
                                   const char* name,
                                   const char* call,
                                   weir_error** error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WEIR_H */
