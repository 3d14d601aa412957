// run_artifact MODEL.fxa SIZE... : runs `forward` on a float tensor of these sizes that holds 0, 1, 2 ... divided by the
// number of its elements, and prints the elements of each result.
#include <fxstack_artifact.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

// Of torch's C interface (torch/csrc/inductor/aoti_torch/c/shim.h), so that no header of torch is needed.
extern "C" {
int32_t aoti_torch_create_tensor_from_blob(void *, int64_t, const int64_t *, const int64_t *, int64_t, int32_t, int32_t, int32_t,
                                           void **);
int32_t aoti_torch_get_numel(void *, int64_t *);
int32_t aoti_torch_get_data_ptr(void *, void **);
int32_t aoti_torch_delete_tensor_object(void *);
int32_t aoti_torch_dtype_float32();
int32_t aoti_torch_device_type_cpu();
}

int main(int count, char **words) {
    char error[1024] = "";
    if (count < 2) return 2;
    FxaArtifact *artifact = fxa_load(words[1], error, sizeof(error));
    if (!artifact) return std::fprintf(stderr, "%s\n", error), 1;
    const FxaEntryPoint *forward = fxa_entry_point(artifact, nullptr);
    std::vector<int64_t> sizes, strides(count - 2, 1);
    for (int i = 2; i < count; i++) sizes.push_back(std::atoll(words[i]));
    for (int d = count - 4; d >= 0; d--) strides[d] = strides[d + 1] * sizes[d + 1];
    int64_t elements = std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
    std::vector<float> data(elements);
    for (int64_t i = 0; i < elements; i++) data[i] = float(i) / float(elements);

    std::vector<void *> inputs(fxa_input_count(forward)), results(fxa_result_count(forward));
    for (void *&input : inputs) {
        aoti_torch_create_tensor_from_blob(data.data(), count - 2, sizes.data(), strides.data(), 0, aoti_torch_dtype_float32(),
                                           aoti_torch_device_type_cpu(), -1, &input);
    }
    int code = fxa_call(forward, inputs.data(), results.data(), error, sizeof(error));
    if (code) std::fprintf(stderr, "%s\n", error);
    for (size_t i = 0; !code && i < results.size(); i++) {
        int64_t length = 0;
        void *values = nullptr;
        aoti_torch_get_numel(results[i], &length);
        aoti_torch_get_data_ptr(results[i], &values);
        for (int64_t j = 0; j < length; j++) std::printf("%.9g\n", static_cast<float *>(values)[j]);
        aoti_torch_delete_tensor_object(results[i]);
    }
    for (void *input : inputs) aoti_torch_delete_tensor_object(input);
    fxa_unload(artifact);
    return code ? 1 : 0;
}
