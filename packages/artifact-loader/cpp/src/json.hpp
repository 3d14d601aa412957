// JSON, as artifacts have it: integers are exact, keys are unique, nothing is nested deeper than 64 times.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fxa {

// Refused: a code of the loader, what happened, and what to do about it if that is known.
struct Refused : std::runtime_error {
    Refused(const std::string &code, const std::string &what, const std::string &action = "")
        : std::runtime_error("[" + code + "] " + what + (action.empty() ? "" : "\n  to do: " + action)) {}
};

struct Json {
    enum Kind { Null, Bool, Int, Real, Text, List, Object } kind = Null;
    int64_t number = 0;  // of Bool and Int
    double real = 0;
    std::string text;
    std::vector<Json> items;
    std::vector<std::pair<std::string, Json>> members;

    // The member of that name; std::invalid_argument if there is none, or if this is no object.
    const Json &operator[](std::string_view name) const;
    const Json *find(std::string_view name) const;
    // The content of a kind; std::invalid_argument if it is of another one.
    int64_t integer() const;
    const std::string &string() const;
    const std::vector<Json> &list() const;
};

// std::invalid_argument where the text is no JSON.
Json parse_json(std::string_view text);

}  // namespace fxa
