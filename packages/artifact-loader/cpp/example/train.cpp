// train MODEL.fxa STEPS RATE SIZE... : steps of gradient descent on all weights, for the one result of `forward` of a float tensor of
// these sizes that holds 0, 1, 2 ... divided by the number of its elements. Prints the loss of each step, then the weights.
#include <fxstack_artifact.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "tensors.hpp"

// weight -= rate * gradient, wherever their elements lie.
static void descend(void *weight, void *gradient, float rate) {
    int64_t rank = 0, count = 0, *sizes = nullptr, *to = nullptr, *from = nullptr;
    void *values = nullptr, *slopes = nullptr;
    aoti_torch_get_dim(weight, &rank);
    aoti_torch_get_numel(weight, &count);
    aoti_torch_get_sizes(weight, &sizes);
    aoti_torch_get_strides(weight, &to);
    aoti_torch_get_strides(gradient, &from);
    aoti_torch_get_data_ptr(weight, &values);
    aoti_torch_get_data_ptr(gradient, &slopes);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, place = 0, other = 0;
        for (int64_t d = rank; d--; rest /= sizes[d]) {
            place += rest % sizes[d] * to[d];
            other += rest % sizes[d] * from[d];
        }
        static_cast<float *>(values)[place] -= rate * static_cast<float *>(slopes)[other];
    }
}

int main(int count, char **words) {
    char error[1024] = "";
    if (count < 4) return 2;
    FxaArtifact *artifact = fxa_load(words[1], error, sizeof(error));
    if (!artifact) return std::fprintf(stderr, "%s\n", error), 1;
    const FxaEntryPoint *forward = fxa_entry_point(artifact, nullptr);
    std::vector<int64_t> sizes;
    for (int i = 4; i < count; i++) sizes.push_back(std::atoll(words[i]));
    Counted x(sizes), one({});
    one.data[0] = 1;

    std::vector<void *> inputs(fxa_input_count(forward), x.handle), results(fxa_result_count(forward));
    std::vector<void *> arriving(results.size()), gradients(fxa_gradient_count(forward));
    int code = 0;
    for (long step = 0; step < std::atol(words[2]) && !code; step++) {
        FxaPass *pass = nullptr;
        code = fxa_forward(forward, inputs.data(), results.data(), &pass, error, sizeof(error));
        if (code) break;
        arriving[0] = one.handle;
        code = fxa_backward(pass, arriving.data(), gradients.data(), error, sizeof(error));
        fxa_drop_pass(pass);
        for (void *result : results) print(result);
        for (size_t i = 0; i < gradients.size() && !code; i++) {
            void *weight = fxa_weight(artifact, fxa_gradient_name(forward, int64_t(i)));
            if (!gradients[i]) continue;
            if (weight) descend(weight, gradients[i], float(std::atof(words[3])));
            aoti_torch_delete_tensor_object(gradients[i]);
        }
    }
    if (code) std::fprintf(stderr, "%s\n", error);
    for (int64_t i = 0; i < fxa_weight_count(artifact) && !code; i++) {
        print(fxa_weight(artifact, fxa_weight_name(artifact, i)), false);
    }
    fxa_unload(artifact);
    return code ? 1 : 0;
}
