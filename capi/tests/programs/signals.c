/* A program with handlers of its own: `signals DIRECTORY`, with `wild.wasm` in it. The extension reads memory that it does not have, which the
 * kernel says by SIGSEGV. That is the extension's fault, and the program's handler does not hear of it. Then the program
 * reads such memory itself, and its handler does. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir.h>

static const char CONFIG[] =
    "[[extension]]\nid = \"wild\"\npath = \"wild.wasm\"\nrestart = { policy = \"never\" }\n";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int failures;
static volatile sig_atomic_t faults;

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)context;
    ++faults;
    if (signal == SIGSEGV && info->si_addr == (void *)8) {
        static const char said[] = "the program's own\n";
        ssize_t written = write(STDOUT_FILENO, said, sizeof said - 1);
        _exit(written > 0 ? 42 : 1);
    }
    _exit(1);
}

static void on_event(const weir_main_event *event, void *data)
{
    (void)data;
    if (weir_main_event_kind_of(event) != WEIR_MAIN_EVENT_KIND_FAILED)
        return;
    printf("%s failed: %s\n", weir_main_event_extension(event), weir_main_event_json(event));
    fflush(stdout);
    pthread_mutex_lock(&lock);
    ++failures;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

int main(int count, char **arguments)
{
    struct sigaction action = {0}, pipe = {0};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGILL, &action, NULL);
    sigaction(SIGFPE, &action, NULL);

    weir_error *error = NULL;
    if (count != 2)
        return EXIT_FAILURE;
    weir_config *config = weir_config_parse(CONFIG, NULL, arguments[1], &error);
    weir_builder *builder = config ? weir_builder_new(config, &error) : NULL;
    if (!builder || !weir_builder_on_event(builder, on_event, NULL, NULL, &error)) {
        fprintf(stderr, "%s\n", weir_error_message(error));
        return EXIT_FAILURE;
    }
    weir_main *weir = weir_builder_start(builder, &error);
    if (!weir) {
        fprintf(stderr, "%s\n", weir_error_message(error));
        return EXIT_FAILURE;
    }
    pthread_mutex_lock(&lock);
    while (failures < 1)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);

    /* A library leaves this to its program. */
    sigaction(SIGPIPE, NULL, &pipe);
    if (faults != 0 || pipe.sa_handler != SIG_DFL)
        return EXIT_FAILURE;
    return *(volatile int *)8;
}
