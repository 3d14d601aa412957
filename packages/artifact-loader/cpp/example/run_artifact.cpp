// run_artifact [--weights FILE] MODEL.fxa SIZE... [-- NUMBER...] : runs `forward` on a float tensor of these sizes that holds 0, 1, 2 ...
// divided by the number of its elements, and on integers, and prints the elements of each result. FILE: safetensors, in the place of
// the artifact's weights.
#include <fxstack_artifact.h>

#include <cstdlib>
#include <cstring>

#include "tensors.hpp"

int main(int count, char **words) {
    char error[1024] = "";
    FxaLoadOptions options{};
    if (count > 2 && !std::strcmp(words[1], "--weights")) {
        options.weights_file = words[2];
        count -= 2, words += 2;
    }
    if (count < 2) return 2;
    FxaArtifact *artifact = fxa_load_with(words[1], &options, error, sizeof(error));
    if (!artifact) return std::fprintf(stderr, "%s\n", error), 1;
    const FxaEntryPoint *forward = fxa_entry_point(artifact, nullptr);
    std::vector<int64_t> sizes, numbers;
    int at = 2;
    for (; at < count && std::strcmp(words[at], "--"); at++) sizes.push_back(std::atoll(words[at]));
    while (++at < count) numbers.push_back(std::atoll(words[at]));
    Counted x(sizes);

    std::vector<void *> inputs(fxa_input_count(forward), x.handle), results(fxa_result_count(forward));
    for (size_t i = 0; i < numbers.size() && i + 1 < inputs.size(); i++) {
        aoti_torch_create_tensor_from_blob(&numbers[i], 0, nullptr, nullptr, 0, aoti_torch_dtype_int64(), aoti_torch_device_type_cpu(), -1,
                                           &inputs[i + 1]);
    }
    int code = fxa_call(forward, inputs.data(), results.data(), error, sizeof(error));
    if (code) std::fprintf(stderr, "%s\n", error);
    for (size_t i = 0; i < numbers.size() && i + 1 < inputs.size(); i++) aoti_torch_delete_tensor_object(inputs[i + 1]);
    fxa_unload(artifact);  // results live on
    for (size_t i = 0; !code && i < results.size(); i++) print(results[i]);
    return code ? 1 : 0;
}
