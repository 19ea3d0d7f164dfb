// Each function of weir.hpp that the examples leave out. Prints nothing if all is well.
//
//     all echo.wasm
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iostream>
#include <iterator>

#include <sys/stat.h>
#include <unistd.h>

#include <weir.hpp>

static void check(bool holds, const char *what, int line) {
    if (!holds) {
        std::cerr << "line " << line << ": " << what << '\n';
        std::exit(1);
    }
}
#define CHECK(...) check((__VA_ARGS__), #__VA_ARGS__, __LINE__)

template <typename F> weir_error_kind kind_of(F act) {
    try {
        act();
    } catch (const weir::error &error) {
        return error.kind();
    }
    return static_cast<weir_error_kind>(0);
}

static const std::string ECHO = "[[extension]]\nid = \"echo\"\npath = \"echo.wasm\"\nfulfills = [\"echo@1\"]\n";
static const std::string QUEUE = "[queue.news]\nmessages = 10\nmax-deliveries = 1\ndead-letter = \"dead\"\n[queue.dead]\n";
static const std::string PEER = "[peer.\"app:screen\"]\nuid = 1000\nwants = [\"echo@1\"]\nfulfills = [\"screen@1\"]\n"
                                "publishes = [\"screen.>\"]\nlimits.sessions = 1\n";

int main(int count, char **arguments) try {
    CHECK(count == 2);
    const std::string path = arguments[1], dir = path.substr(0, path.rfind('/') + 1);
    CHECK(weir::version() == weir_version());
    std::atomic<int> lines{0}, states{0};
    weir::log("info", [&lines](weir_log_level, std::string_view line) { lines += !line.empty(); });
    CHECK(kind_of([] { weir::log("info", [](weir_log_level, std::string_view) {}); }) ==
          WEIR_ERROR_KIND_INVALID_ARGUMENT);

    char own[] = "/tmp/weir-XXXXXX";
    CHECK(mkdtemp(own));
    const std::string socket = std::string(own) + "/weir.sock";
    const std::string first = "[main]\ncontrol-socket = \"" + socket + "\"\n" + ECHO + QUEUE + PEER;
    auto whole = [&](const std::string &more) { return weir::config::parse(first + more, "all", dir.c_str()); };
    struct stat is_there;
    weir::builder builder(whole(""));
    builder.open_sockets();
    CHECK(kind_of([&] { weir::builder(whole("")).open_sockets(); }) == WEIR_ERROR_KIND_START);
    builder.on_event([&states](weir::main_event event) {
        CHECK(!event.json().empty());
        states += event.kind() == WEIR_MAIN_EVENT_KIND_STATE && event.extension() == "echo";
    });
    weir::main main = builder.start();
    CHECK(main.call("echo@1", "echo", "1") == "1");
    for (int tries = 0; tries < 2000 && states == 0; tries++)
        usleep(10000);
    CHECK(states > 0 && main.limits("echo").find("memory") != std::string::npos && stat(socket.c_str(), &is_there) == 0);

    std::promise<weir::answer> answered;
    auto call = main.call_async("echo@1", "echo", "2", [&](weir::answer given) { answered.set_value(std::move(given)); });
    weir::answer given = answered.get_future().get();
    CHECK(given.value == "2" && !given.failure);
    call.cancel();
    std::promise<weir::answer> failed;
    main.call_async("none@1", "none", "", [&](weir::answer given) { failed.set_value(std::move(given)); });
    given = failed.get_future().get();
    CHECK(!given.value && given.failure->kind() == WEIR_ERROR_KIND_UNKNOWN_CONTRACT);

    auto events = main.subscribe("t", weir::room{"drop-newest", 1, 0});
    CHECK(!events.next(weir::timeout(0)));
    main.publish("t", "one");
    main.publish("t", "lost");
    CHECK(events.next()->payload == "one" && !events.next(weir::timeout(0)));
    CHECK(main.topics().find("\"t\"") != std::string::npos && main.queues().find("news") != std::string::npos);

    {
        weir::main screen = main.session("app:screen");
        CHECK(screen.call("echo@1", "echo", "as screen") == "as screen");
        CHECK(kind_of([&] { screen.call("screen@1", "show", ""); }) == WEIR_ERROR_KIND_PERMISSION_DENIED);
        CHECK(kind_of([&] { screen.publish("t", "no"); }) == WEIR_ERROR_KIND_PERMISSION_DENIED);
        CHECK(kind_of([&] { screen.status("echo"); }) == WEIR_ERROR_KIND_PERMISSION_DENIED);
        CHECK(kind_of([&] { screen.session("app:screen"); }) == WEIR_ERROR_KIND_PERMISSION_DENIED);
        CHECK(kind_of([&] { main.session("app:screen"); }) == WEIR_ERROR_KIND_LIMIT_EXCEEDED);
        CHECK(kind_of([&] { main.session("app:other"); }) == WEIR_ERROR_KIND_PERMISSION_DENIED);
        auto show = [](weir::request request) {
            const std::string said = std::string(request.sender()) + " " + std::string(request.operation()) + " ";
            if (request.payload() != "keep")
                request.answer(said + std::string(request.payload()));
        };
        CHECK(kind_of([&] { screen.serve("echo@1", "echo", show); }) == WEIR_ERROR_KIND_PERMISSION_DENIED);
        CHECK(kind_of([&] { main.serve("screen@1", "show", show); }) == WEIR_ERROR_KIND_INVALID_ARGUMENT);
        screen.serve("screen@1", "show hide", show);
        CHECK(main.call("screen@1", "hide", "now") == "main screen@1 hide now");
        CHECK(kind_of([&] { main.call("screen@1", "show", "keep"); }) == WEIR_ERROR_KIND_HANDLER);
        CHECK(kind_of([&] { screen.serve("screen@1", "blink", [](weir::request) {}); }) == WEIR_ERROR_KIND_INVALID);
        CHECK(kind_of([&] { main.call("screen@1", "blink", ""); }) == WEIR_ERROR_KIND_INVALID);
        CHECK(main.call("screen@1", "show", "still") == "main screen@1 show still");
        screen.shutdown();
        CHECK(kind_of([&] { screen.call("echo@1", "echo", ""); }) == WEIR_ERROR_KIND_ENDED);
        CHECK(kind_of([&] { main.call("screen@1", "show", ""); }) == WEIR_ERROR_KIND_NO_PROVIDER);
        CHECK(main.session("app:screen").call("echo@1", "echo", "again") == "again");
    }
    weir::queue news = main.queue("news");
    news.put("x");
    CHECK(main.queue_jobs("news", 9).find("main") != std::string::npos);
    { auto given_back = news.take(); }
    CHECK(main.queue_jobs("news", 9) == "[]" && main.queue_jobs("dead", 9) != "[]");
    CHECK(kind_of([&] { main.requeue("dead", 99); }) == WEIR_ERROR_KIND_INVALID);
    CHECK(main.requeue("dead") == 1 && main.requeue("dead") == 0 && main.queue_jobs("dead", 9) == "[]");
    CHECK(main.contracts().front() == '[');

    main.put("[[extension]]\nid = \"more\"\npath = \"echo.wasm\"\n");
    CHECK(main.status("more").find("ready") != std::string::npos && main.history("more").front() == '[');
    CHECK(kind_of([&] { main.put("[[extension]]\nid = 1\n"); }) == WEIR_ERROR_KIND_CONFIG);
    CHECK(kind_of([&] { main.put("[[extension]]\nid = \"bad\"\npath = \"none.wasm\"\n"); }) ==
          WEIR_ERROR_KIND_CONTROL);
    main.remove("bad");
    main.remove("more");
    CHECK(kind_of([&] { main.remove("more"); }) == WEIR_ERROR_KIND_CONTROL);
    CHECK(main.reload(whole("[queue.more]\n")).find("queue.more") != std::string::npos);
    CHECK(main.reload_in_stages(false, whole("")).find("queue.more") != std::string::npos);
    CHECK(kind_of([&] { main.reload_in_stages(true); }) == WEIR_ERROR_KIND_CONTROL);
    CHECK(kind_of([&] { main.roll_back_with_data("echo"); }) == WEIR_ERROR_KIND_CONTROL);
    main.shutdown();
    CHECK(kind_of([&] { events.next(); }) == WEIR_ERROR_KIND_ENDED && lines > 0);
    CHECK(stat(socket.c_str(), &is_there) != 0);
    rmdir(own);

    weir::builder artifacts(whole(""));
    weir::main none = artifacts.precompiled_only().start();
    CHECK(none.status("echo").find("failed") != std::string::npos);
    weir::builder child(whole(""));
    // The cache has it, so the program is not needed.
    CHECK(child.compile_in_child("/nowhere").start().call("echo@1", "echo", "3") == "3");
} catch (const weir::error &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
