/* A program that serves extensions and uses them: a contract, calls, events, jobs, states and log lines.
 *
 *     embed device.toml [weir-compile-helper]
 *
 * With the absolute path of that program, components are compiled in a process of their own.
 *
 * The file has an extension `puppet`, which does what it is told, and a queue `work`: see capi/tests/c.rs.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir.h>

#define THREADS 4
#define CALLS 50

/* What waits for callbacks. */
struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int events;
    int answers;
    int ready;
    int freed;
    int lines;
};

static struct waiting waiting = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, 0, 0};

static void add(int *counter)
{
    pthread_mutex_lock(&waiting.lock);
    ++*counter;
    pthread_cond_broadcast(&waiting.changed);
    pthread_mutex_unlock(&waiting.lock);
}

static void wait_until(const int *counter, int value)
{
    pthread_mutex_lock(&waiting.lock);
    while (*counter < value)
        pthread_cond_wait(&waiting.changed, &waiting.lock);
    pthread_mutex_unlock(&waiting.lock);
}

/* Ends the program with what went wrong. */
static void fail(const char *what, weir_error *error)
{
    fprintf(stderr, "%s: %s (%s)\n", what, weir_error_message(error), weir_error_code(error));
    exit(EXIT_FAILURE);
}

static void on_log(weir_log_level level, const char *line, void *data)
{
    (void)data;
    add(&waiting.lines);
    if (level <= WEIR_LOG_LEVEL_WARN)
        fprintf(stderr, "%s\n", line);
}

static void on_main_event(const weir_main_event *event, void *data)
{
    (void)data;
    if (weir_main_event_kind_of(event) == WEIR_MAIN_EVENT_KIND_STATE &&
        strstr(weir_main_event_json(event), "\"to\":\"ready\""))
        add(&waiting.ready);
}

/* Runs on Main's thread, and answers at once. */
static void on_model(weir_request *request, void *data)
{
    const char *model = data;
    weir_error *error = NULL;
    if (strcmp(weir_request_payload(request, NULL), "unknown") == 0) {
        if (!weir_request_fail(request, "not-found", "there is no such model", &error))
            fail("fail", error);
    } else if (!weir_request_answer(request, model, strlen(model), &error)) {
        fail("answer", error);
    }
}

static void *answer_later(void *data)
{
    weir_request *request = data;
    size_t length;
    const char *payload = weir_request_payload(request, &length);
    char *copy = malloc(length + 1);
    memcpy(copy, payload, length);
    weir_error *error = NULL;
    if (!weir_request_answer(request, copy, length, &error))
        fail("answer later", error);
    free(copy);
    return NULL;
}

/* Another thread answers, and Main's goes on meanwhile. */
static void on_later(weir_request *request, void *data)
{
    pthread_t thread;
    (void)data;
    if (pthread_create(&thread, NULL, answer_later, request) == 0)
        pthread_detach(thread);
    else
        weir_request_free(request);
}

/* Runs on a thread of the pool: here it may wait. */
static void on_slow(weir_request *request, void *data)
{
    (void)data;
    answer_later(request);
}

static void on_event(const weir_event *event, void *data)
{
    (void)data;
    if (strcmp(weir_event_topic(event), "room.light") == 0)
        add(&waiting.events);
}

static void on_answer(weir_buffer *answer, weir_error *error, void *data)
{
    (void)data;
    if (error)
        fail("asynchronous call", error);
    weir_buffer_free(answer);
    add(&waiting.answers);
}

static void on_drop(void *data)
{
    (void)data;
    add(&waiting.freed);
}

/* The puppet does what a line says. */
static weir_buffer *tell(weir_main *weir, const char *line, weir_error **error)
{
    return weir_call(weir, "puppet@1", "run", line, strlen(line), 20000, error);
}

static void expect(weir_main *weir, const char *line, const char *expected)
{
    weir_error *error = NULL;
    weir_buffer *answer = tell(weir, line, &error);
    if (!answer)
        fail(line, error);
    if (expected && strcmp(weir_buffer_data(answer, NULL), expected) != 0) {
        fprintf(stderr, "`%s` answered `%s`\n", line, weir_buffer_data(answer, NULL));
        exit(EXIT_FAILURE);
    }
    weir_buffer_free(answer);
}

static void *call_often(void *data)
{
    for (int number = 0; number < CALLS; ++number)
        expect(data, "call platform.info@1 model x", "weir-box");
    return NULL;
}

static void topics(weir_main *weir)
{
    weir_error *error = NULL;
    weir_subscription *calls_back =
        weir_subscribe_callback(weir, "room.>", "drop-oldest", 0, 0, on_event, NULL, on_drop, &error);
    weir_subscription *waits = weir_subscribe(weir, "room.*", NULL, 16, 0, &error);
    if (!calls_back || !waits)
        fail("subscribe", error);
    expect(weir, "publish room.light on", NULL);
    weir_receipt receipt;
    if (!weir_publish(weir, "room.light", "off", 3, WEIR_NO_TIMEOUT, &receipt, &error))
        fail("publish", error);
    if (receipt.delivered != 2 || receipt.shed != 0)
        exit(EXIT_FAILURE);
    weir_event *event = weir_subscription_next(waits, 20000, &error);
    if (!event)
        fail("next", error);
    printf("%s from %s: %s, number %llu\n", weir_event_topic(event), weir_event_sender(event),
           weir_event_payload(event, NULL), (unsigned long long)weir_event_sequence(event));
    weir_event_free(event);
    wait_until(&waiting.events, 2);
    weir_subscription_free(calls_back);
    weir_subscription_free(waits);
    wait_until(&waiting.freed, 1);
}

static void jobs(weir_main *weir)
{
    weir_error *error = NULL;
    weir_queue *queue = weir_queue_open(weir, "work", &error);
    uint64_t id;
    if (!queue || !weir_queue_put(queue, "one", 3, WEIR_NO_TIMEOUT, &id, &error))
        fail("put", error);
    weir_job *job = weir_queue_take(queue, 20000, &error);
    if (!job || weir_job_id(job) != id || weir_job_deliveries(job) != 1)
        fail("take", error);
    weir_job_give_back(job);
    job = weir_queue_take(queue, 20000, &error);
    if (!job)
        fail("take again", error);
    printf("%s from %s, delivered %u times\n", weir_job_payload(job, NULL), weir_job_sender(job),
           weir_job_deliveries(job));
    weir_job_done(job);
    if (weir_queue_take(queue, 0, &error) || error)
        exit(EXIT_FAILURE);
    weir_queue_free(queue);
}

static void steer(weir_main *weir)
{
    weir_error *error = NULL;
    if (!weir_extension_stop(weir, "puppet", &error) || !weir_extension_start(weir, "puppet", &error) ||
        !weir_extension_reload(weir, "puppet", &error) || !weir_extension_restart(weir, "puppet", &error))
        fail("steer", error);
    wait_until(&waiting.ready, 3);
    /* The log names who asked for each of them. */
    wait_until(&waiting.lines, 4);
    weir_buffer *shown[] = {
        weir_extensions(weir, &error), weir_extension_status(weir, "puppet", &error),
        weir_extension_history(weir, "puppet", &error), weir_limits(weir, NULL, &error),
        weir_topics(weir, &error), weir_queues(weir, &error), weir_reload(weir, &error),
    };
    for (size_t number = 0; number < sizeof shown / sizeof *shown; ++number) {
        if (!shown[number])
            fail("show", error);
        weir_buffer_free(shown[number]);
    }
}

int main(int count, char **arguments)
{
    weir_error *error = NULL;
    if (count != 2 && count != 3)
        return EXIT_FAILURE;
    if (!weir_log_start("info", on_log, NULL, NULL, &error))
        fail("log", error);
    weir_config *config = weir_config_load(arguments[1], &error);
    weir_builder *builder = config ? weir_builder_new(config, &error) : NULL;
    if (!builder || !weir_builder_on_event(builder, on_main_event, NULL, on_drop, &error) ||
        !weir_builder_serve(builder, "platform.info@1", "model", on_model, "weir-box", NULL, &error) ||
        !weir_builder_serve(builder, "platform.info@1", "later", on_later, NULL, on_drop, &error) ||
        !weir_builder_serve_blocking(builder, "platform.info@1", "slow", on_slow, NULL, on_drop, &error))
        fail("builder", error);
    if (count == 3 && !weir_builder_compile_in_child(builder, arguments[2], &error))
        fail("compile helper", error);
    weir_main *weir = weir_builder_start(builder, &error);
    if (!weir)
        fail("start", error);
    printf("weir %s\n", weir_version());

    expect(weir, "call platform.info@1 later soon", "soon");
    expect(weir, "call platform.info@1 slow slowly", "slowly");
    if (weir_call(weir, "platform.info@1", "model", "unknown", 7, WEIR_NO_TIMEOUT, &error))
        exit(EXIT_FAILURE);
    printf("%s, %s\n", weir_error_code(error), weir_error_facts(error));
    weir_error_free(error);

    pthread_t threads[THREADS];
    for (int number = 0; number < THREADS; ++number)
        if (pthread_create(&threads[number], NULL, call_often, weir) != 0)
            exit(EXIT_FAILURE);
    for (int number = 0; number < THREADS; ++number)
        pthread_join(threads[number], NULL);
    for (int number = 0; number < CALLS; ++number)
        if (!weir_call_async(weir, "puppet@1", "run", "echo x", 6, WEIR_NO_TIMEOUT, on_answer, NULL, NULL, NULL,
                             &error))
            fail("call", error);
    wait_until(&waiting.answers, CALLS);

    topics(weir);
    jobs(weir);
    steer(weir);

    if (!weir_main_shutdown(weir, &error))
        fail("shutdown", error);
    weir_main_free(weir);
    wait_until(&waiting.freed, 4);
    printf("done\n");
    return EXIT_SUCCESS;
}
