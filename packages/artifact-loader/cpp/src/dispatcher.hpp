// Operators by name, and the lists that they take and give: torch/csrc/stable/c/shim.h.
#pragma once

#include <cstdint>
#include <string>

#include "tensor.hpp"

namespace fxa {

struct Dispatcher {
    int32_t (*call)(const char *, const char *, uint64_t *, uint64_t) = nullptr;
    int32_t (*new_list)(size_t, void **) = nullptr;
    int32_t (*push)(void *, uint64_t) = nullptr;
    int32_t (*size)(void *, size_t *) = nullptr;
    int32_t (*item)(void *, size_t, uint64_t *) = nullptr;
    int32_t (*delete_list)(void *) = nullptr;
    uint64_t version = 0;
};

extern Dispatcher dispatcher;

// Fill `dispatcher`. Refused FXA107 where this torch has none.
void find_dispatcher();

// How often torch has written to a tensor; -1 where it does not count (in inference mode).
int64_t version_of(Handle tensor);
bool has_nan(Handle tensor);
void zero(Handle tensor);
Tensor clone(Handle tensor);

}  // namespace fxa
