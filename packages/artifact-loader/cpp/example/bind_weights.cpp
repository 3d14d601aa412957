// bind_weights MODEL.fxa SIZE... -- NAME SIZE... -- NAME SIZE... : runs `forward` on a float tensor of the first sizes with weights
// of this program's memory. All hold 0, 1, 2 ... divided by the number of their elements. Results are printed, and once more
// after the weights were halved where they are.
#include <fxstack_artifact.h>

#include <cstdlib>
#include <cstring>
#include <deque>

#include "tensors.hpp"

int main(int count, char **words) {
    if (count < 2) return 2;
    std::vector<std::vector<int64_t>> sizes(1);
    std::vector<FxaWeight> weights;
    for (int i = 2; i < count; i++) {
        if (!std::strcmp(words[i], "--") && i + 1 < count) {
            weights.push_back({words[++i], nullptr});
            sizes.emplace_back();
        } else {
            sizes.back().push_back(std::atoll(words[i]));
        }
    }
    std::deque<Counted> tensors;
    for (const auto &one : sizes) tensors.emplace_back(one);
    for (size_t i = 0; i < weights.size(); i++) weights[i].tensor = tensors[i + 1].handle;

    char error[1024] = "";
    FxaLoadOptions options{weights.data(), weights.size(), nullptr};
    FxaArtifact *artifact = fxa_load_with(words[1], &options, error, sizeof(error));
    if (!artifact) return std::fprintf(stderr, "%s\n", error), 1;
    const FxaEntryPoint *forward = fxa_entry_point(artifact, nullptr);
    std::vector<void *> inputs(fxa_input_count(forward), tensors[0].handle), results(fxa_result_count(forward));
    int code = 0;
    for (int round = 0; round < 2 && !code; round++) {
        code = fxa_call(forward, inputs.data(), results.data(), error, sizeof(error));
        if (code) std::fprintf(stderr, "%s\n", error);
        for (size_t i = 0; !code && i < results.size(); i++) print(results[i]);
        for (size_t i = 1; i < tensors.size(); i++) {
            for (float &value : tensors[i].data) value /= 2;
        }
    }
    fxa_unload(artifact);
    return code ? 1 : 0;
}
