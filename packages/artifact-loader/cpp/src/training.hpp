// The backward of an entry point for training, as fxstack_artifact.training runs it, without autograd.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "views.hpp"

extern "C" {
#include "../../csrc/core/graph.h"
}

struct FxaEntryPoint;

namespace fxa {

struct Call;

// A saved value or an input with a gradient.
struct Source {
    enum Kind { LEAF, WEIGHT, GRAPH } of;
    size_t number;
};

// What the backward takes of the gradient of a result of the graph.
struct Tangent {
    size_t result;
    const Dtype *dtype;
    std::vector<Expression> sizes, strides;
};

// Where the gradient of an input is: result `place` of the backward graph, or its input -1 - place. Without any of the tangents
// `depends` there is none.
struct Gradient {
    Source of;
    int64_t place;
    std::set<size_t> depends;
};

struct Backward {
    Graph graph{};
    std::vector<Source> saved;
    std::vector<std::string> saved_names;
    std::vector<Tangent> tangents;
    std::vector<Gradient> gradients;
    std::vector<std::string> names;  // of the inputs that have gradients
    std::vector<std::set<size_t>> nan_from_zeros;

    Backward() = default;
    ~Backward() { fxa_graph_close(&graph); }
    Backward(const Backward &) = delete;
    Backward &operator=(const Backward &) = delete;
};

// What the program says of it. Refused FXA110 where it needs Python.
void describe_backward(Backward &backward, const FxaEntryPoint &entry, const Json &data, const std::vector<std::string> &constant_names);

}  // namespace fxa

// What a forward keeps.
struct FxaPass {
    const FxaEntryPoint *entry = nullptr;
    fxa::Sizes symbols;
    std::vector<fxa::Tensor> saved;
    std::vector<int64_t> versions;
};

namespace fxa {

std::unique_ptr<FxaPass> pass_of(const FxaEntryPoint &entry, const Call &call);

// The gradients by those of the program's results; NULL: there is none. Failed where one does not fit, or what was saved was written.
std::vector<Tensor> backward(const FxaPass &pass, void *const *gradients);

}  // namespace fxa
