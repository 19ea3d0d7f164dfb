// A program in C++: a contract that it serves, an extension in memory, calls and events.
//
//     first echo.wasm
#include <fstream>
#include <iostream>
#include <iterator>

#include <weir.hpp>

int main(int count, char **arguments) try {
    if (count != 2) {
        std::cerr << "usage: first echo.wasm\n";
        return 1;
    }
    std::ifstream file(arguments[1], std::ios::binary);
    std::string component{std::istreambuf_iterator<char>(file), {}};

    auto config = weir::config::parse("[[extension]]\nid = \"echo\"\npath = \"echo.wasm\"\nfulfills = [\"echo@1\"]\n"
                                      "[queue.news]\nmessages = 10\n");
    config.component("echo", component);
    weir::builder builder(std::move(config));
    builder.serve("platform.info@1", "model", [](weir::request request) {
        if (request.payload().empty())
            request.answer("weir-box");
        else
            request.fail("not-found", "no such thing");
    });
    weir::main main = builder.start();

    std::cout << main.call("platform.info@1", "model", "") << '\n' << main.call("echo@1", "echo", "hello") << '\n';
    try {
        main.call("platform.info@1", "model", "other");
    } catch (const weir::error &error) {
        std::cout << error.what() << '\n';
    }

    // An event comes on Main's thread. A job goes from there to this thread.
    auto news = main.queue("news");
    auto subscription = main.subscribe("t", [news = main.queue("news")](const weir::event &event) mutable {
        news.put(event.payload);
    });
    main.publish("t", "one event");
    if (auto job = news.take(std::chrono::seconds(20))) {
        std::cout << job.payload() << '\n';
        job.done();
    }
    main.shutdown();
} catch (const weir::error &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
