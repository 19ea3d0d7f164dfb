/* Weir for C++17: the functions of weir.h, with objects that free themselves, lambdas, and exceptions for errors.
 *
 * Callbacks must not throw: a throw ends the process. Threads and waits are as weir.h says.
 */
#ifndef WEIR_HPP
#define WEIR_HPP

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "weir.h"

namespace weir {

/* Frees a handle by its function of weir.h. */
template <auto Free> struct freed {
    template <typename T> void operator()(T *handle) const noexcept { Free(handle); }
};

/* Why a function failed. */
class error : public std::runtime_error {
  public:
    explicit error(weir_error *raw) : error(std::unique_ptr<weir_error, freed<weir_error_free>>(raw)) {}
    weir_error_kind kind() const noexcept { return kind_; }
    /* A word for programs, such as `not-found`. */
    const std::string &code() const noexcept { return code_; }
    /* A JSON object. */
    const std::string &facts() const noexcept { return facts_; }

  private:
    explicit error(std::unique_ptr<weir_error, freed<weir_error_free>> raw)
        : std::runtime_error(weir_error_message(raw.get())), kind_(weir_error_kind_of(raw.get())),
          code_(weir_error_code(raw.get())), facts_(weir_error_facts(raw.get())) {}
    weir_error_kind kind_;
    std::string code_, facts_;
};

/* Calls a function of weir.h whose last argument is the error, and throws it. */
template <typename Function, typename... Arguments> auto checked(Function function, Arguments... arguments) {
    weir_error *failure = nullptr;
    auto result = function(arguments..., &failure);
    if (failure)
        throw error(failure);
    return result;
}

/* None: WEIR_NO_TIMEOUT. */
using timeout = std::chrono::milliseconds;
inline constexpr timeout no_timeout{-1};
inline std::uint64_t ms(timeout time) noexcept {
    return time < timeout::zero() ? WEIR_NO_TIMEOUT : static_cast<std::uint64_t>(time.count());
}

template <typename F> void drop(void *data) noexcept { delete static_cast<F *>(data); }

/* The version of the library. */
inline std::string version() { return weir_version(); }

inline std::string text(weir_buffer *raw) {
    std::unique_ptr<weir_buffer, freed<weir_buffer_free>> buffer(raw);
    std::size_t length = 0;
    const char *bytes = weir_buffer_data(buffer.get(), &length);
    return {bytes, length};
}

/* A request in hand. Dropped, it is answered with the error `unanswered`. */
class request {
  public:
    explicit request(weir_request *raw) noexcept : raw_(raw) {}
    std::string_view payload() const noexcept {
        std::size_t length = 0;
        const char *bytes = weir_request_payload(raw_.get(), &length);
        return {bytes, length};
    }
    std::string_view sender() const noexcept { return weir_request_sender(raw_.get()); }
    std::string_view operation() const noexcept { return weir_request_operation(raw_.get()); }
    timeout remaining() const noexcept { return timeout(weir_request_remaining_ms(raw_.get())); }
    /* False if the caller waits no longer. */
    bool answer(std::string_view value) noexcept {
        return weir_request_answer(raw_.release(), value.data(), value.size(), nullptr);
    }
    bool fail(const std::string &code, const std::string &message) noexcept {
        return weir_request_fail(raw_.release(), code.c_str(), message.c_str(), nullptr);
    }

  private:
    std::unique_ptr<weir_request, freed<weir_request_free>> raw_;
};

/* A received event. */
struct event {
    std::string topic, sender, payload;
    std::uint64_t sequence, lost;
    bool retained;
    explicit event(const weir_event *raw)
        : topic(weir_event_topic(raw)), sender(weir_event_sender(raw)), sequence(weir_event_sequence(raw)),
          lost(weir_event_lost(raw)), retained(weir_event_retained(raw)) {
        std::size_t length = 0;
        const char *bytes = weir_event_payload(raw, &length);
        payload.assign(bytes, length);
    }
};

/* A job in hand. Dropped before `done`, it goes back to the queue. */
class job {
  public:
    explicit job(weir_job *raw) noexcept : raw_(raw) {}
    explicit operator bool() const noexcept { return raw_ != nullptr; }
    std::string_view payload() const noexcept {
        std::size_t length = 0;
        const char *bytes = weir_job_payload(raw_.get(), &length);
        return {bytes, length};
    }
    std::string_view sender() const noexcept { return weir_job_sender(raw_.get()); }
    std::uint64_t id() const noexcept { return weir_job_id(raw_.get()); }
    std::uint32_t deliveries() const noexcept { return weir_job_deliveries(raw_.get()); }
    void done() noexcept { weir_job_done(raw_.release()); }

  private:
    std::unique_ptr<weir_job, freed<weir_job_give_back>> raw_;
};

class queue {
  public:
    queue(const weir_main *main, const std::string &name) : raw_(checked(weir_queue_open, main, name.c_str())) {}
    std::uint64_t put(std::string_view payload, timeout time = no_timeout) {
        std::uint64_t id = 0;
        checked(weir_queue_put, raw_.get(), payload.data(), payload.size(), ms(time), &id);
        return id;
    }
    /* None if the time is over. */
    job take(timeout time = no_timeout) { return job(checked(weir_queue_take, raw_.get(), ms(time))); }

  private:
    std::unique_ptr<weir_queue, freed<weir_queue_free>> raw_;
};

/* A subscription. Dropped, it ends. */
class subscription {
  public:
    subscription() noexcept = default;
    explicit subscription(weir_subscription *raw) noexcept : raw_(raw) {}
    explicit operator bool() const noexcept { return raw_ != nullptr; }
    void end() noexcept { raw_.reset(); }
    /* None if the time is over. Throws if the subscription has a lambda, or Main has ended. */
    std::optional<event> next(timeout time = no_timeout) const {
        std::unique_ptr<weir_event, freed<weir_event_free>> raw(checked(weir_subscription_next, raw_.get(), ms(time)));
        return raw ? std::optional<event>(event(raw.get())) : std::nullopt;
    }

  private:
    std::unique_ptr<weir_subscription, freed<weir_subscription_free>> raw_;
};

/* What may wait of a subscription. 0 and none mean the defaults of weir_subscribe. */
struct room {
    const char *policy = nullptr;
    std::uint32_t messages = 0;
    std::uint64_t bytes = 0;
};

/* The answer to a call, or why there is none. */
struct answer {
    std::optional<std::string> value;
    std::optional<error> failure;
};

/* A call under way. Dropped, it goes on. */
class call_handle {
  public:
    explicit call_handle(weir_call_handle *raw) noexcept : raw_(raw) {}
    /* The lambda then gets an error of the kind WEIR_ERROR_KIND_CANCELLED, unless it has run. */
    void cancel() const noexcept { weir_call_cancel(raw_.get()); }
    /* A cancel that also ends the work: see `weir_call_kill`. */
    void kill() const noexcept { weir_call_kill(raw_.get()); }

  private:
    std::unique_ptr<weir_call_handle, freed<weir_call_handle_free>> raw_;
};

/* An event of Main or its extensions, for as long as the lambda runs that takes it. */
class main_event {
  public:
    explicit main_event(const weir_main_event *raw) noexcept : raw_(raw) {}
    const weir_main_event *get() const noexcept { return raw_; }
    weir_main_event_kind kind() const noexcept { return weir_main_event_kind_of(raw_); }
    /* Empty if the event is of no extension. */
    std::string_view extension() const noexcept {
        const char *id = weir_main_event_extension(raw_);
        return id ? id : std::string_view();
    }
    std::string_view json() const noexcept { return weir_main_event_json(raw_); }

  private:
    const weir_main_event *raw_;
};

/* `act` takes each level and line, on any thread, on several at once, and must neither wait nor call Weir. */
template <typename F> void log(const char *filter, F act) {
    weir_on_log run = [](weir_log_level level, const char *line, void *data) noexcept {
        (*static_cast<F *>(data))(level, std::string_view(line));
    };
    checked(weir_log_start, filter, run, static_cast<void *>(new F(std::move(act))), &drop<F>);
}

/* A configuration. `builder` takes it. */
class config {
  public:
    static config load(const std::string &path) { return config(checked(weir_config_load, path.c_str())); }
    static config parse(const std::string &text, const char *name = nullptr, const char *base_dir = nullptr) {
        return config(checked(weir_config_parse, text.c_str(), name, base_dir));
    }
    config &component(const std::string &id, std::string_view bytes) {
        checked(weir_config_set_component, raw_.get(), id.c_str(), bytes.data(), bytes.size());
        return *this;
    }
    config &signature(const std::string &id, const std::string &text) {
        checked(weir_config_set_signature, raw_.get(), id.c_str(), text.c_str());
        return *this;
    }
    weir_config *release() noexcept { return raw_.release(); }

  private:
    explicit config(weir_config *raw) noexcept : raw_(raw) {}
    std::unique_ptr<weir_config, freed<weir_config_free>> raw_;
};

/* A running Main, or a session with it. Its end, or its destructor, stops every extension, or ends the session. */
class main {
  public:
    explicit main(weir_main *raw) noexcept : raw_(raw) {}
    weir_main *get() const noexcept { return raw_.get(); }
    std::string call(const std::string &contract, const std::string &operation, std::string_view payload,
                     timeout time = no_timeout) const {
        return text(checked(weir_call, get(), contract.c_str(), operation.c_str(), payload.data(), payload.size(),
                            ms(time)));
    }
    weir_receipt publish(const std::string &topic, std::string_view payload, timeout time = no_timeout) const {
        weir_receipt receipt{};
        checked(weir_publish, get(), topic.c_str(), payload.data(), payload.size(), ms(time), &receipt);
        return receipt;
    }
    /* `act` takes an `answer` once, on Main's thread, and must not wait. */
    template <typename F>
    call_handle call_async(const std::string &contract, const std::string &operation, std::string_view payload, F act,
                           timeout time = no_timeout) const {
        weir_on_answer run = [](weir_buffer *value, weir_error *failure, void *data) noexcept {
            answer given;
            if (failure)
                given.failure.emplace(failure);
            else
                given.value.emplace(text(value));
            (*static_cast<F *>(data))(std::move(given));
        };
        weir_call_handle *handle = nullptr;
        checked(weir_call_async, get(), contract.c_str(), operation.c_str(), payload.data(), payload.size(), ms(time),
                run, static_cast<void *>(new F(std::move(act))), &drop<F>, &handle);
        return call_handle(handle);
    }
    /* `act` takes each event, on Main's thread, and must not wait. */
    template <typename F> subscription subscribe(const std::string &pattern, F act, room waiting = {}) const {
        weir_on_event run = [](const weir_event *raw, void *data) noexcept { (*static_cast<F *>(data))(event(raw)); };
        return subscription(checked(weir_subscribe_callback, get(), pattern.c_str(), waiting.policy, waiting.messages,
                                    waiting.bytes, run, static_cast<void *>(new F(std::move(act))), &drop<F>));
    }
    /* Its `next` takes the events. */
    subscription subscribe(const std::string &pattern, room waiting = {}) const {
        return subscription(
            checked(weir_subscribe, get(), pattern.c_str(), waiting.policy, waiting.messages, waiting.bytes));
    }
    weir::queue queue(const std::string &name) const { return {get(), name}; }
    std::string extensions() const { return text(checked(weir_extensions, get())); }
    std::string status(const std::string &id) const { return text(checked(weir_extension_status, get(), id.c_str())); }
    std::string versions(const std::string &id) const {
        return text(checked(weir_extension_versions, get(), id.c_str()));
    }
    std::string history(const std::string &id) const {
        return text(checked(weir_extension_history, get(), id.c_str()));
    }
    std::string limits() const { return text(checked(weir_limits, get(), nullptr)); }
    std::string limits(const std::string &id) const { return text(checked(weir_limits, get(), id.c_str())); }
    std::string topics() const { return text(checked(weir_topics, get())); }
    std::string queues() const { return text(checked(weir_queues, get())); }
    std::string queue_jobs(const std::string &queue, std::size_t most) const {
        return text(checked(weir_queue_jobs, get(), queue.c_str(), most));
    }
    /* Puts all dead letters of a queue back, or the one with this id, and returns how many. */
    std::uint64_t requeue(const std::string &queue, std::uint64_t id = 0) const {
        std::uint64_t moved = 0;
        checked(weir_queue_requeue, get(), queue.c_str(), id, &moved);
        return moved;
    }
    std::string contracts() const { return text(checked(weir_contracts, get())); }
    /* This Main under the name of a peer of the configuration, with the grants of that. */
    main session(const std::string &name) const { return main(checked(weir_session_open, get(), name.c_str())); }
    /* In a session: `act` takes a `request` to one of these operations, on Main's thread, and must not wait. There is a
     * space between their names. */
    template <typename F> void serve(const std::string &contract, const std::string &operations, F act) const {
        weir_handler run = [](weir_request *raw, void *data) noexcept { (*static_cast<F *>(data))(request(raw)); };
        checked(weir_session_serve, get(), contract.c_str(), operations.c_str(), run,
                static_cast<void *>(new F(std::move(act))), &drop<F>);
    }
    std::string reload() const { return text(checked(weir_reload, get())); }
    std::string reload(config with) const { return text(checked(weir_reload_with, get(), with.release())); }
    /* The file again, or `with`. */
    std::string reload_in_stages(bool until_proven, std::optional<config> with = std::nullopt) const {
        weir_config *raw = with ? with->release() : nullptr;
        return text(checked(weir_reload_in_stages, get(), raw, until_proven));
    }
    std::string hooks(const std::string &name, const char *call = nullptr) const {
        return text(checked(weir_hooks_run, get(), name.c_str(), call));
    }
    void start(const std::string &id) const { checked(weir_extension_start, get(), id.c_str()); }
    void put(const std::string &table) const { checked(weir_extension_put, get(), table.c_str()); }
    void remove(const std::string &id) const { checked(weir_extension_remove, get(), id.c_str()); }
    void stop(const std::string &id) const { checked(weir_extension_stop, get(), id.c_str()); }
    void restart(const std::string &id) const { checked(weir_extension_restart, get(), id.c_str()); }
    void reload(const std::string &id) const { checked(weir_extension_reload, get(), id.c_str()); }
    void reload_now(const std::string &id) const { checked(weir_extension_reload_now, get(), id.c_str()); }
    void accept(const std::string &id) const { checked(weir_extension_accept, get(), id.c_str()); }
    /* To the latest proven version but the one that runs, or to the one with this number. */
    void roll_back(const std::string &id, std::uint64_t version = 0) const {
        checked(weir_extension_roll_back, get(), id.c_str(), version);
    }
    void roll_back_with_data(const std::string &id, std::uint64_t version = 0) const {
        checked(weir_extension_roll_back_with_data, get(), id.c_str(), version);
    }
    void shutdown() const { checked(weir_main_shutdown, get()); }

  private:
    std::unique_ptr<weir_main, freed<weir_main_free>> raw_;
};

/* A Main before its start. */
class builder {
  public:
    explicit builder(config config) : raw_(checked(weir_builder_new, config.release())) {}
    /* `act` takes a `request`, on Main's thread, and must not wait; it may move the request elsewhere. */
    template <typename F> builder &serve(const std::string &contract, const std::string &operation, F act) {
        return add(weir_builder_serve, contract, operation, std::move(act));
    }
    /* `act` takes a `request` on a thread of Main's pool, on several at once, and may wait. */
    template <typename F> builder &serve_blocking(const std::string &contract, const std::string &operation, F act) {
        return add(weir_builder_serve_blocking, contract, operation, std::move(act));
    }
    /* `act` takes a `main_event`, on Main's thread, and must not wait. */
    template <typename F> builder &on_event(F act) {
        weir_on_main_event run = [](const weir_main_event *raw, void *data) noexcept {
            (*static_cast<F *>(data))(main_event(raw));
        };
        checked(weir_builder_on_event, raw_.get(), run, static_cast<void *>(new F(std::move(act))), &drop<F>);
        return *this;
    }
    builder &compile_in_child(const std::string &program) {
        checked(weir_builder_compile_in_child, raw_.get(), program.c_str());
        return *this;
    }
    /* The control socket of the configuration, and the peer socket if there is one. */
    builder &open_sockets() {
        checked(weir_builder_open_sockets, raw_.get());
        return *this;
    }
    builder &precompiled_only() {
        checked(weir_builder_precompiled_only, raw_.get());
        return *this;
    }
    main start() { return main(checked(weir_builder_start, raw_.release())); }

  private:
    template <typename F, typename Serve>
    builder &add(Serve serve, const std::string &contract, const std::string &operation, F act) {
        weir_handler run = [](weir_request *raw, void *data) noexcept { (*static_cast<F *>(data))(request(raw)); };
        checked(serve, raw_.get(), contract.c_str(), operation.c_str(), run,
                static_cast<void *>(new F(std::move(act))), &drop<F>);
        return *this;
    }
    std::unique_ptr<weir_builder, freed<weir_builder_free>> raw_;
};

} // namespace weir

#endif
