#include "tensor.hpp"

namespace fxa {
namespace {

constexpr Dtype DTYPES[] = {
    {"U8", "uint8", 0, 1},     {"I8", "int8", 1, 1},       {"I16", "int16", 2, 2},     {"I32", "int32", 3, 4},
    {"I64", "int64", 4, 8},    {"F16", "float16", 5, 2},   {"F32", "float32", 6, 4},   {"F64", "float64", 7, 8},
    {"C64", "complex64", 9, 8}, {"C128", "complex128", 10, 16}, {"BOOL", "bool", 11, 1},   {"BF16", "bfloat16", 15, 2}, {"F8_E5M2", "float8_e5m2", 23, 1},
    {"F8_E4M3", "float8_e4m3fn", 24, 1}, {"U16", "uint16", 27, 2}, {"U32", "uint32", 28, 4}, {"U64", "uint64", 29, 8},
};
constexpr int32_t CPU = 0, STRIDED = 0;
constexpr size_t MOST_DIMENSIONS = 64;

using FromBlob = int32_t (*)(void *, int64_t, const int64_t *, const int64_t *, int64_t, int32_t, int32_t, int32_t, Handle *, int32_t,
                             const uint8_t *, int64_t, void (*)(void *, void *), void *);
using Reinterpret = int32_t (*)(Handle, int64_t, const int64_t *, const int64_t *, int64_t, Handle *);

template <typename Function>
Function of_torch(const char *name) {
    void *found = fxa_torch_function(name);
    if (!found) throw Refused("FXA107", std::string("torch is of a version without ") + name);
    return reinterpret_cast<Function>(found);
}

void let_go(void *, void *memory) { delete static_cast<std::shared_ptr<const void> *>(memory); }

}  // namespace

const Dtype *dtype_named(const std::string &name) {
    for (const Dtype &dtype : DTYPES) {
        if (name == dtype.name) return &dtype;
    }
    return nullptr;
}

const Dtype *stored_dtype(const std::string &name) {
    for (const Dtype &dtype : DTYPES) {
        if (name == dtype.stored) return &dtype;
    }
    return nullptr;
}

Sizes integers(const Json &list) {
    Sizes made;
    for (const Json &item : list.list()) made.push_back(item.integer());
    return made;
}

Sizes contiguous(const Sizes &sizes) {
    Sizes strides(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * (sizes[d] ? sizes[d] : 1);
    return strides;
}

std::string shown(const Sizes &sizes) {
    std::string made;
    for (int64_t size : sizes) made += (made.empty() ? "" : ", ") + std::to_string(size);
    return "[" + made + "]";
}

Layout::Layout(Handle tensor) {
    int32_t layout = 0;
    if (!tensor || torch_functions.get_layout(tensor, &layout) || layout != torch_functions.layout_strided()) {
        throw Refused("FXA201", "a tensor is not strided, or none");
    }
    int64_t rank = 0, *found_sizes = nullptr, *found_strides = nullptr;
    check_torch(torch_functions.get_dim(tensor, &rank) | torch_functions.get_dtype(tensor, &dtype) |
                torch_functions.get_device_type(tensor, &device) | torch_functions.get_sizes(tensor, &found_sizes));
    check_torch(torch_functions.get_strides(tensor, &found_strides));
    sizes.assign(found_sizes, found_sizes + rank);
    strides.assign(found_strides, found_strides + rank);
}

bool Layout::fits(const Dtype &wanted, const Sizes &wanted_sizes) const {
    return dtype == wanted.number && sizes == wanted_sizes && device == CPU;
}

std::string Layout::text() const {
    return std::string("torch.") + fxa_dtype_name(dtype) + " of " + shown(sizes) + " on " + (device == CPU ? "cpu" : "another device");
}

int64_t extent_of(const Sizes &sizes, const Sizes &strides) {
    if (sizes.size() != strides.size() || sizes.size() > MOST_DIMENSIONS) return -1;
    __int128 extent = 1;
    bool is_empty = false;
    for (size_t d = 0; d < sizes.size(); d++) {
        if (sizes[d] < 0 || strides[d] < 0) return -1;
        is_empty |= sizes[d] == 0;
        extent += __int128(sizes[d] ? sizes[d] - 1 : 0) * strides[d];
        if (extent > INT64_MAX) return -1;
    }
    return is_empty ? 0 : int64_t(extent);
}

Tensor from_memory(char *data, const Dtype &dtype, const Sizes &sizes, const Sizes &strides, std::shared_ptr<const void> memory) {
    if (uintptr_t(data) % dtype.bytes) {
        auto moved = std::make_shared<std::vector<char>>(data, data + size_t(extent_of(sizes, strides)) * dtype.bytes);
        data = moved->data();
        memory = moved;
    }
    Handle made = nullptr;
    auto from_blob = of_torch<FromBlob>("torch_from_blob");
    auto kept = std::make_unique<std::shared_ptr<const void>>(std::move(memory));
    check_torch(from_blob(data, int64_t(sizes.size()), sizes.data(), strides.data(), 0, dtype.number, CPU, -1, &made, STRIDED, nullptr, 0,
                          let_go, kept.get()));
    kept.release();
    return Tensor(made);
}

Tensor empty_strided(const Dtype &dtype, const Sizes &sizes, const Sizes &strides) {
    Handle made = nullptr;
    check_torch(torch_functions.empty_strided(int64_t(sizes.size()), sizes.data(), strides.data(), dtype.number, CPU, -1, &made));
    return Tensor(made);
}

Tensor seen_as(Handle tensor, const Sizes &sizes, const Sizes &strides) {
    Handle made = nullptr;
    auto reinterpret = of_torch<Reinterpret>("aoti_torch__reinterpret_tensor");
    check_torch(reinterpret(tensor, int64_t(sizes.size()), sizes.data(), strides.data(), 0, &made));
    return Tensor(made);
}

void check_torch(int32_t returned) {
    if (returned) throw Refused("FXA201", fxa_torch_says());
}

}  // namespace fxa
