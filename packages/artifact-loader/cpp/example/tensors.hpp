// Float tensors that the example programs make and print.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <numeric>
#include <vector>

// Of torch's C interface (torch/csrc/inductor/aoti_torch/c/shim.h), so that no header of torch is needed.
extern "C" {
int32_t aoti_torch_create_tensor_from_blob(void *, int64_t, const int64_t *, const int64_t *, int64_t, int32_t, int32_t, int32_t,
                                           void **);
int32_t aoti_torch_empty_strided(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, void **);
int32_t aoti_torch_copy_(void *, void *, int32_t);
int32_t aoti_torch_get_dim(void *, int64_t *);
int32_t aoti_torch_get_sizes(void *, int64_t **);
int32_t aoti_torch_get_strides(void *, int64_t **);
int32_t aoti_torch_get_numel(void *, int64_t *);
int32_t aoti_torch_get_data_ptr(void *, void **);
int32_t aoti_torch_delete_tensor_object(void *);
int32_t aoti_torch_dtype_float32();
int32_t aoti_torch_dtype_int64();
int32_t aoti_torch_device_type_cpu();
}

inline std::vector<int64_t> contiguous(const std::vector<int64_t> &sizes) {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
    return strides;
}

// A tensor in memory of the program's, which holds 0, 1, 2 ... divided by the number of its elements.
struct Counted {
    std::vector<float> data;
    void *handle = nullptr;

    explicit Counted(const std::vector<int64_t> &sizes) {
        data.resize(size_t(std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>())));
        for (size_t i = 0; i < data.size(); i++) data[i] = float(i) / float(data.size());
        aoti_torch_create_tensor_from_blob(data.data(), int64_t(sizes.size()), sizes.data(), contiguous(sizes).data(), 0,
                                           aoti_torch_dtype_float32(), aoti_torch_device_type_cpu(), -1, &handle);
    }
    Counted(const Counted &) = delete;
    Counted &operator=(const Counted &) = delete;
    ~Counted() { aoti_torch_delete_tensor_object(handle); }
};

// Print the elements of a float tensor in the order of its dimensions, one a line, and delete it if it is the program's.
inline void print(void *tensor, bool owned = true) {
    int64_t rank = 0, count = 0, *sizes = nullptr;
    void *copy = nullptr, *values = nullptr;
    aoti_torch_get_dim(tensor, &rank);
    aoti_torch_get_numel(tensor, &count);
    aoti_torch_get_sizes(tensor, &sizes);
    std::vector<int64_t> known(sizes, sizes + rank);
    aoti_torch_empty_strided(rank, known.data(), contiguous(known).data(), aoti_torch_dtype_float32(), aoti_torch_device_type_cpu(), -1, &copy);
    aoti_torch_copy_(copy, tensor, 0);
    aoti_torch_get_data_ptr(copy, &values);
    for (int64_t i = 0; i < count; i++) std::printf("%.9g\n", static_cast<float *>(values)[i]);
    aoti_torch_delete_tensor_object(copy);
    if (owned) aoti_torch_delete_tensor_object(tensor);
}
