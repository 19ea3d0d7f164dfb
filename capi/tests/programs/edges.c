/* What a careless program does, and that each time it gets an error: `edges puppet.wasm`. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir.h>

#define CHECK(condition)                                                     \
    do {                                                                     \
        if (!(condition)) {                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);  \
            exit(EXIT_FAILURE);                                              \
        }                                                                    \
    } while (0)

static const char CONFIG[] =
    "[[extension]]\n"
    "id = \"puppet\"\n"
    "path = \"puppet.wasm\"\n"
    "fulfills = [\"puppet@1\"]\n"
    "wants = [\"own@1\"]\n"
    "publishes = [\"t\"]\n"
    "[queue.q]\n"
    "messages = 1\n"
    "when-full = \"block\"\n";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int freed, answered, held;
static weir_error_kind last_kind;
static weir_error_kind in_callback[8];
static weir_main *weir;
static weir_request *kept;
static weir_queue *queue;

static void count(int *counter)
{
    pthread_mutex_lock(&lock);
    ++*counter;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_for(const int *counter, int value)
{
    pthread_mutex_lock(&lock);
    while (*counter < value)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void on_drop(void *data)
{
    (void)data;
    count(&freed);
}

/* Frees the error, and returns its kind: 0 for none. */
static weir_error_kind kind(weir_error *error)
{
    if (!error)
        return (weir_error_kind)0;
    weir_error_kind kind = weir_error_kind_of(error);
    CHECK(*weir_error_message(error) && *weir_error_code(error) && *weir_error_facts(error) == '{');
    weir_error_free(error);
    return kind;
}

static void on_hold(weir_request *request, void *data)
{
    (void)data;
    kept = request;
    count(&held);
}

static void on_forget(weir_request *request, void *data)
{
    (void)data;
    weir_request_free(request);
}

/* Everything that waits fails on Main's thread. */
static void on_block(weir_request *request, void *data)
{
    (void)data;
    weir_error *error;
    CHECK(!weir_call(weir, "puppet@1", "run", "", 0, 1, &error));
    in_callback[0] = kind(error);
    CHECK(!weir_main_shutdown(weir, &error));
    in_callback[1] = kind(error);
    CHECK(!weir_extension_stop(weir, "puppet", &error));
    in_callback[2] = kind(error);
    CHECK(!weir_hooks_run(weir, "none", NULL, &error));
    in_callback[3] = kind(error);
    CHECK(!weir_queue_take(queue, 1, &error));
    in_callback[4] = kind(error);
    /* The queue holds one job, and has it. */
    CHECK(!weir_queue_put(queue, "x", 1, WEIR_NO_TIMEOUT, NULL, &error));
    in_callback[5] = kind(error);
    /* These need not wait. */
    CHECK(weir_publish(weir, "t", "x", 1, WEIR_NO_TIMEOUT, NULL, &error));
    CHECK(!error);
    weir_job *job = weir_queue_take(queue, 0, &error);
    CHECK(job && !error);
    weir_job_done(job);
    CHECK(weir_request_answer(request, "", 0, &error));
    CHECK(!error);
}

static void on_answer(weir_buffer *answer, weir_error *error, void *data)
{
    (void)data;
    CHECK(!answer != !error);
    weir_buffer_free(answer);
    pthread_mutex_lock(&lock);
    last_kind = kind(error);
    pthread_mutex_unlock(&lock);
    count(&answered);
}

static void null_arguments(void)
{
    weir_error *error = (weir_error *)1; /* What is there is not read. */
    const weir_error_kind wrong = WEIR_ERROR_KIND_INVALID_ARGUMENT;
    CHECK(!weir_config_load(NULL, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_config_parse(NULL, NULL, NULL, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_config_parse("\xff", NULL, NULL, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_config_parse("", "\xc3(", NULL, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_config_set_component(NULL, "a", "b", 1, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_config_set_signature(NULL, "a", "b", &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_builder_new(NULL, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_builder_start(NULL, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_builder_compile_in_child(NULL, "/x", &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_builder_precompiled_only(NULL, &error));
    CHECK(kind(error) == wrong);
    freed = 0;
    CHECK(!weir_builder_serve(NULL, "a@1", "b", on_hold, NULL, on_drop, &error));
    CHECK(kind(error) == wrong && freed == 1);
    CHECK(!weir_builder_serve_blocking(NULL, "a@1", "b", NULL, NULL, on_drop, &error));
    CHECK(kind(error) == wrong && freed == 2);
    CHECK(!weir_builder_on_event(NULL, NULL, NULL, on_drop, &error));
    CHECK(kind(error) == wrong && freed == 3);
    CHECK(!weir_log_start("=", NULL, NULL, on_drop, &error));
    CHECK(kind(error) == wrong && freed == 4);
    CHECK(!weir_main_shutdown(NULL, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_call(NULL, "a@1", "b", NULL, 0, 0, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_call_async(NULL, "a@1", "b", NULL, 0, 0, on_answer, NULL, on_drop, NULL, &error));
    CHECK(kind(error) == wrong && freed == 5 && answered == 0);
    CHECK(!weir_publish(NULL, "t", NULL, 0, 0, NULL, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_subscribe(NULL, "t", NULL, 0, 0, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_subscribe_callback(NULL, "t", NULL, 0, 0, NULL, NULL, on_drop, &error));
    CHECK(kind(error) == wrong && freed == 6);
    CHECK(!weir_subscription_next(NULL, 0, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_queue_open(NULL, "q", &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_queue_put(NULL, NULL, 0, 0, NULL, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_queue_take(NULL, 0, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_request_answer(NULL, NULL, 0, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_request_fail(NULL, "a", "b", &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_extension_start(NULL, "a", &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_extension_roll_back(NULL, "a", 0, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_extension_versions(NULL, "a", &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_extensions(NULL, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_reload_with(NULL, NULL, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_reload_in_stages(NULL, NULL, false, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_hooks_run(NULL, "a", NULL, &error));
    CHECK(kind(error) == wrong);
    CHECK(!weir_call(NULL, NULL, NULL, NULL, 0, 0, NULL));

    size_t length = 7;
    CHECK(!weir_buffer_data(NULL, &length) && length == 0);
    CHECK(!weir_request_payload(NULL, NULL) && !weir_request_sender(NULL) && !weir_request_operation(NULL));
    CHECK(!weir_event_payload(NULL, NULL) && !weir_event_topic(NULL) && !weir_event_sender(NULL));
    CHECK(!weir_job_payload(NULL, NULL) && !weir_job_sender(NULL) && !weir_job_id(NULL));
    CHECK(!weir_error_message(NULL) && !weir_error_code(NULL) && !weir_error_facts(NULL));
    CHECK(weir_error_kind_of(NULL) == wrong && !weir_main_event_json(NULL) && !weir_request_remaining_ms(NULL));
    weir_error_free(NULL);
    weir_buffer_free(NULL);
    weir_config_free(NULL);
    weir_builder_free(NULL);
    weir_main_free(NULL);
    weir_request_free(NULL);
    weir_call_cancel(NULL);
    weir_call_kill(NULL);
    CHECK(!weir_session_open(NULL, NULL, NULL) && !weir_session_serve(NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    CHECK(!weir_queue_requeue(NULL, NULL, 0, NULL, NULL) && !weir_queue_jobs(NULL, NULL, 0, NULL));
    CHECK(!weir_contracts(NULL, NULL));
    weir_call_handle_free(NULL);
    weir_subscription_free(NULL);
    weir_event_free(NULL);
    weir_queue_free(NULL);
    weir_job_done(NULL);
    weir_job_give_back(NULL);
}

static void configurations(const char *component, size_t length)
{
    weir_error *error;
    CHECK(!weir_config_parse("[main]\nno-key = 1\n", "mine", NULL, &error));
    CHECK(strstr(weir_error_message(error), "mine:2:1") && strstr(weir_error_facts(error), "\"line\":2"));
    CHECK(kind(error) == WEIR_ERROR_KIND_CONFIG);
    CHECK(!weir_config_load("/nonexistent/weir.toml", &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_CONFIG);
    weir_config *config = weir_config_parse(CONFIG, NULL, NULL, &error);
    CHECK(config && !error);
    CHECK(!weir_config_set_component(config, "other", component, length, &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_INVALID_ARGUMENT);
    CHECK(!weir_config_set_component(config, "puppet", NULL, 1, &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_INVALID_ARGUMENT);
    CHECK(!weir_config_set_component(config, "puppet", component, (size_t)-1, &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_INVALID_ARGUMENT);
    CHECK(!weir_config_set_component(config, "puppet", component, 0, &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_INVALID_ARGUMENT);
    char signature[1026] = "";
    memset(signature, 'a', 1025);
    CHECK(!weir_config_set_signature(config, "puppet", signature, &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_INVALID_ARGUMENT);
    CHECK(!weir_config_set_signature(config, "other", "weir signature 1", &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_INVALID_ARGUMENT);
    CHECK(!weir_config_set_signature(config, "puppet", NULL, &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_INVALID_ARGUMENT);
    CHECK(weir_config_set_signature(config, "puppet", "weir signature 1", &error));
    weir_config_free(config);

    /* The configuration names a contract that nobody serves. */
    config = weir_config_parse("[main]\nserves = [\"own@1\"]\n", NULL, NULL, &error);
    CHECK(config && !error);
    CHECK(!weir_builder_start(weir_builder_new(config, NULL), &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_START);

    config = weir_config_parse(CONFIG, NULL, NULL, &error);
    CHECK(weir_config_set_component(config, "puppet", component, length, &error));
    weir_builder *builder = weir_builder_new(config, &error);
    freed = 0;
    CHECK(!weir_builder_serve(builder, "no contract", "x", on_hold, NULL, on_drop, &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_INVALID && freed == 1);
    CHECK(!weir_builder_compile_in_child(builder, "relative", &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_INVALID_ARGUMENT);
    CHECK(weir_builder_serve(builder, "own@1", "hold", on_hold, NULL, on_drop, &error));
    CHECK(weir_builder_serve(builder, "own@1", "forget", on_forget, NULL, on_drop, &error));
    CHECK(weir_builder_serve(builder, "own@1", "block", on_block, NULL, on_drop, &error));
    CHECK(weir_builder_serve_blocking(builder, "own@1", "forget-late", on_forget, NULL, on_drop, &error));
    weir = weir_builder_start(builder, &error);
    CHECK(weir && !error && freed == 1);
}

/* The outcome of a call with this timeout. */
static weir_error_kind call(const char *contract, const char *operation, const char *payload, uint64_t timeout_ms)
{
    weir_error *error;
    weir_buffer *answer = weir_call(weir, contract, operation, payload, strlen(payload), timeout_ms, &error);
    CHECK(!answer != !error);
    weir_buffer_free(answer);
    return kind(error);
}

static void start_async(const char *contract, const char *operation, const char *payload, weir_call_handle **handle)
{
    weir_error *error;
    CHECK(weir_call_async(weir, contract, operation, payload, strlen(payload), WEIR_NO_TIMEOUT, on_answer, NULL,
                          on_drop, handle, &error));
    CHECK(!error);
}

static void calls(void)
{
    weir_error *error;
    CHECK(call("none@1", "x", "", WEIR_NO_TIMEOUT) == WEIR_ERROR_KIND_UNKNOWN_CONTRACT);
    CHECK(call("own@1", "none", "", WEIR_NO_TIMEOUT) == WEIR_ERROR_KIND_INVALID);
    CHECK(call("puppet@1", "run", "trap", 20000) == WEIR_ERROR_KIND_TRAPPED);
    CHECK(weir_extension_restart(weir, "puppet", &error));
    CHECK(call("puppet@1", "run", "error no", 20000) == WEIR_ERROR_KIND_HANDLER);
    CHECK(call("own@1", "forget", "", 20000) == WEIR_ERROR_KIND_HANDLER);
    CHECK(call("own@1", "forget-late", "", 20000) == WEIR_ERROR_KIND_HANDLER);

    /* Kept beyond its deadline: the caller has its timeout, and the late answer an error. */
    CHECK(call("own@1", "hold", "", 10) == WEIR_ERROR_KIND_TIMEOUT);
    CHECK(held == 1 && weir_request_remaining_ms(kept) == 0);
    CHECK(!weir_request_answer(kept, "late", 4, &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_TIMEOUT);

    freed = 0;
    weir_call_handle *handle = NULL;
    start_async("own@1", "hold", "", &handle);
    wait_for(&held, 2);
    weir_call_cancel(handle);
    wait_for(&answered, 1);
    CHECK(last_kind == WEIR_ERROR_KIND_CANCELLED);
    wait_for(&freed, 1);
    weir_call_cancel(handle);
    weir_call_handle_free(handle);
    weir_request_free(kept);

    /* A freed handle leaves its call alone. */
    start_async("own@1", "hold", "", &handle);
    weir_call_handle_free(handle);
    wait_for(&held, 3);
    CHECK(weir_request_remaining_ms(kept) > 0 && strcmp(weir_request_sender(kept), "main") == 0);
    CHECK(strcmp(weir_request_operation(kept), "own@1 hold") == 0);
    CHECK(weir_request_fail(kept, "no", "not now", &error));
    wait_for(&answered, 2);
    CHECK(last_kind == WEIR_ERROR_KIND_HANDLER);

    /* A cancel ends the wait, and a kill the work. */
    start_async("puppet@1", "run", "forget", &handle);
    CHECK(call("puppet@1", "run", "echo in order", 20000) == 0);
    weir_call_kill(handle);
    wait_for(&answered, 3);
    CHECK(last_kind == WEIR_ERROR_KIND_CANCELLED);
    weir_call_handle_free(handle);
    CHECK(call("puppet@1", "run", "echo again", 20000) == 0);
    weir_buffer *status = weir_extension_status(weir, "puppet", &error);
    CHECK(status && strstr(weir_buffer_data(status, NULL), "ended by the caller of request"));
    weir_buffer_free(status);
}

static void callbacks(void)
{
    weir_error *error;
    queue = weir_queue_open(weir, "q", &error);
    CHECK(queue && weir_queue_put(queue, "x", 1, WEIR_NO_TIMEOUT, NULL, &error));
    CHECK(call("own@1", "block", "", 20000) == (weir_error_kind)0);
    for (int number = 0; number < 6; ++number)
        CHECK(in_callback[number] == WEIR_ERROR_KIND_WOULD_BLOCK);
    CHECK(!weir_queue_open(weir, "none", &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_INVALID);
    CHECK(!weir_queue_take(queue, 1, &error) && !error);
    CHECK(!weir_subscribe(weir, "t", "sometimes", 0, 0, &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_INVALID_ARGUMENT);
    CHECK(!weir_publish(weir, "a..b", "", 0, 0, NULL, &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_INVALID);
    CHECK(!weir_hooks_run(weir, "none", "{\"param\": {}}", &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_INVALID_ARGUMENT);
    CHECK(!weir_hooks_run(weir, "none", NULL, &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_HOOKS);
    CHECK(!weir_extension_status(weir, "none", &error));
    CHECK(strcmp(weir_error_code(error), "unknown-extension") == 0 && kind(error) == WEIR_ERROR_KIND_CONTROL);
    CHECK(!weir_extension_versions(weir, "puppet", &error));
    CHECK(strcmp(weir_error_code(error), "no-version") == 0 && kind(error) == WEIR_ERROR_KIND_CONTROL);
    CHECK(!weir_extension_accept(weir, "puppet", &error));
    CHECK(strcmp(weir_error_code(error), "no-version") == 0 && kind(error) == WEIR_ERROR_KIND_CONTROL);
    CHECK(!weir_extension_roll_back(weir, "puppet", 1, &error));
    CHECK(strcmp(weir_error_code(error), "no-version") == 0 && kind(error) == WEIR_ERROR_KIND_CONTROL);
    CHECK(!weir_reload(weir, &error));
    CHECK(strcmp(weir_error_code(error), "no-file") == 0 && kind(error) == WEIR_ERROR_KIND_CONTROL);
    CHECK(!weir_reload_in_stages(weir, NULL, true, &error));
    CHECK(strcmp(weir_error_code(error), "no-file") == 0 && kind(error) == WEIR_ERROR_KIND_CONTROL);
}

static void *wait_for_an_event(void *subscription)
{
    weir_error *error;
    CHECK(!weir_subscription_next(subscription, WEIR_NO_TIMEOUT, &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_ENDED);
    return NULL;
}

static void on_event(const weir_event *event, void *data)
{
    (void)event;
    (void)data;
}

static void after_the_end(void)
{
    weir_error *error;
    weir_subscription *waits = weir_subscribe(weir, "u", NULL, 0, 0, &error);
    weir_subscription *calls_back =
        weir_subscribe_callback(weir, "u", NULL, 0, 0, on_event, NULL, on_drop, &error);
    CHECK(waits && calls_back);
    CHECK(!weir_subscription_next(calls_back, 1, &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_INVALID_ARGUMENT);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_for_an_event, waits) == 0);
    start_async("own@1", "hold", "", NULL);
    wait_for(&held, 4);

    freed = 0;
    CHECK(weir_main_shutdown(weir, &error) && !error);
    pthread_join(thread, NULL);
    wait_for(&answered, 3);
    CHECK(last_kind == WEIR_ERROR_KIND_PEER_GONE || last_kind == WEIR_ERROR_KIND_ENDED);
    /* The call's, the subscription's, and those of four handlers. */
    wait_for(&freed, 6);
    CHECK(!weir_request_answer(kept, "late", 4, &error));
    CHECK(kind(error) == WEIR_ERROR_KIND_TIMEOUT);

    const weir_error_kind ended = WEIR_ERROR_KIND_ENDED;
    CHECK(!weir_main_shutdown(weir, &error));
    CHECK(kind(error) == ended);
    CHECK(call("puppet@1", "run", "echo", 1) == ended);
    CHECK(!weir_call_async(weir, "a@1", "b", NULL, 0, 0, on_answer, NULL, on_drop, NULL, &error));
    CHECK(kind(error) == ended && freed == 7);
    CHECK(!weir_publish(weir, "t", NULL, 0, 0, NULL, &error));
    CHECK(kind(error) == ended);
    CHECK(!weir_subscribe(weir, "t", NULL, 0, 0, &error));
    CHECK(kind(error) == ended);
    CHECK(!weir_extension_start(weir, "puppet", &error));
    CHECK(kind(error) == ended);
    CHECK(!weir_extensions(weir, &error));
    CHECK(kind(error) == ended);
    CHECK(!weir_hooks_run(weir, "a", NULL, &error));
    CHECK(kind(error) == ended);
    CHECK(!weir_queue_put(queue, "x", 1, 1, NULL, &error));
    CHECK(kind(error) == ended);
    CHECK(!weir_extension_put(weir, "", &error));
    CHECK(kind(error) == ended);
    CHECK(!weir_extension_remove(weir, "puppet", &error));
    CHECK(kind(error) == ended);
    CHECK(!weir_queue_take(queue, WEIR_NO_TIMEOUT, &error));
    CHECK(kind(error) == ended);
    /* In any order. */
    weir_main_free(weir);
    weir_queue_free(queue);
    weir_subscription_free(waits);
    weir_subscription_free(calls_back);
}

int main(int arguments, char **argument)
{
    CHECK(arguments == 2);
    FILE *file = fopen(argument[1], "rb");
    CHECK(file && fseek(file, 0, SEEK_END) == 0);
    size_t length = (size_t)ftell(file);
    rewind(file);
    char *component = malloc(length);
    CHECK(component && fread(component, 1, length, file) == length);
    fclose(file);

    null_arguments();
    configurations(component, length);
    free(component);
    calls();
    callbacks();
    after_the_end();
    return EXIT_SUCCESS;
}
