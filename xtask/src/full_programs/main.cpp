#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

struct Guard {
    const char *name;
    explicit Guard(const char *name) : name(name) {}
    ~Guard() { std::printf("left %s\n", name); }
};

static int area(int sides) {
    Guard guard("area");
    if (sides < 3) throw std::invalid_argument("a shape of " + std::to_string(sides) + " sides");
    return sides * sides;
}

int main() {
    for (int sides : std::vector<int>{2, 3, 4}) {
        try {
            std::printf("%d: %d\n", sides, area(sides));
        } catch (const std::exception &error) {
            std::printf("refused: %s\n", error.what());
        }
    }
    long caught = 0;
    for (int i = 0; i < 10000; i++) {
        try {
            if (i % 2) throw i;
        } catch (int number) {
            caught += number;
        }
    }
    std::printf("caught %ld\n", caught);
    try {
        std::vector<int>().at(1);
    } catch (...) {
        std::puts("out of range");
    }
}
