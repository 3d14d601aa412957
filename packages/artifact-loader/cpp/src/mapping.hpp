// A file that is mapped privately: what is written there stays in this process.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace fxa {

class Mapping {
   public:
    // Empty, with errno in `failure`, where the file cannot be opened or mapped; an empty file has no data and no failure.
    explicit Mapping(const std::string &path);
    ~Mapping();
    Mapping(const Mapping &) = delete;
    Mapping &operator=(const Mapping &) = delete;

    std::string_view bytes() const { return {data, size}; }

    char *data = nullptr;
    size_t size = 0;
    int failure = 0;
};

}  // namespace fxa
