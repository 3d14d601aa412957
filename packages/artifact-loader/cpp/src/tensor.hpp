// Tensors of torch's C interface that this library owns.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "json.hpp"

extern "C" {
#include "../../csrc/core/contract.h"
}

namespace fxa {

class Tensor {
   public:
    Tensor() = default;
    explicit Tensor(Handle owned) : handle_(owned) {}
    Tensor(Tensor &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Tensor &operator=(Tensor &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Tensor() {
        if (handle_) torch_functions.delete_tensor_object(handle_);
    }
    Handle get() const { return handle_; }
    Handle release() { return std::exchange(handle_, nullptr); }

   private:
    Handle handle_ = nullptr;
};

struct Dtype {
    const char *stored, *name;  // what safetensors and torch call it
    int32_t number;
    size_t bytes;
};

using Sizes = std::vector<int64_t>;

// The one that torch calls so, or nullptr.
const Dtype *dtype_named(const std::string &name);
// The one that safetensors calls so, or nullptr.
const Dtype *stored_dtype(const std::string &name);

Sizes integers(const Json &list);
Sizes contiguous(const Sizes &sizes);

std::string shown(const Sizes &sizes);

// What a tensor is, read of it. FXA201 for one that is not strided, or none.
struct Layout {
    Sizes sizes, strides;
    int32_t dtype = -1, device = -1;

    explicit Layout(Handle tensor);
    bool fits(const Dtype &wanted, const Sizes &wanted_sizes) const;
    std::string text() const;  // "torch.float32 of [2, 3] on cpu"
};

// How many elements lie between a tensor's first and its last one; -1 where that is none.
int64_t extent_of(const Sizes &sizes, const Sizes &strides);

// A tensor on the CPU in this memory, which lives as long as anything shares it; a copy where the type cannot be read there.
Tensor from_memory(char *data, const Dtype &dtype, const Sizes &sizes, const Sizes &strides, std::shared_ptr<const void> memory);

Tensor empty_strided(const Dtype &dtype, const Sizes &sizes, const Sizes &strides);

// The same memory from its first element on, seen otherwise.
Tensor seen_as(Handle tensor, const Sizes &sizes, const Sizes &strides);

// What torch's C interface returned. FXA201 with torch's own text.
void check_torch(int32_t returned);

}  // namespace fxa
