// An entry point of a program: what it takes, how its results are made, and its native objects.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "training.hpp"
#include "views.hpp"
#include "weights.hpp"

extern "C" {
#include "../../csrc/core/graph.h"
}

namespace fxa {

// How a result of the program is made: a tensor that is there, or a view of it.
struct Make {
    enum Kind { GRAPH, LEAF, WEIGHT, SAME } kind;
    size_t index;
    std::vector<ViewStep> steps;
};

}  // namespace fxa

struct FxaEntryPoint {
    std::string name;
    Graph graph{};
    std::vector<std::string> names;
    std::vector<fxa::Make> makes;  // tensors among the results, each once
    std::vector<std::string> result_names;
    std::vector<size_t> order;  // the makes, as they lie in the result
    std::unique_ptr<fxa::Backward> backward;  // of one for training

    FxaEntryPoint() = default;
    ~FxaEntryPoint() { fxa_graph_close(&graph); }
    FxaEntryPoint(const FxaEntryPoint &) = delete;
    FxaEntryPoint &operator=(const FxaEntryPoint &) = delete;
};

struct FxaArtifact {
    fxa::Archive archive;
    std::vector<fxa::Tensor> constants;
    std::vector<std::string> constant_names;
    std::deque<FxaEntryPoint> entries;

    explicit FxaArtifact(const std::string &path) : archive(path) {}
};

namespace fxa {

Refused unreadable(const std::string &what);
void check(FxaCode code, const FxaError &error);

// A call that failed: the code that the interface returns, and what it tells.
struct Failed : std::runtime_error {
    FxaCode code;
    Failed(FxaCode code, const std::string &what) : std::runtime_error(what), code(code) {}
    explicit Failed(const FxaError &error);
};

// All that an entry point is but for its native objects; Refused FXA110 where it needs Python.
void describe_entry(FxaEntryPoint &entry, const Json &data, const std::vector<std::string> &constant_names);
void open_entry(FxaEntryPoint &entry, const Json &data, const std::string &target, FxaArtifact &artifact);

// The native object of a graph that was described.
void open_graph(Graph &graph, const Json &described, const std::string &target, const Archive &archive, const std::vector<Handle> &constants);
// What `described` says of a graph; Refused FXA110 where it runs operators through Python.
void describe_graph(Graph &graph, const Json &described, const std::string &names, const std::string &entry);

// A forward that ran: the leaves of the call, and what the graph gave.
struct Call {
    std::vector<Value> leaves;
    std::vector<Tensor> found;
};

// Failed where the inputs do not fit.
Call run(const FxaEntryPoint &entry, void *const *inputs);
// The sizes that symbols stand for, of inputs that were checked.
Sizes symbols_of(const Contract &contract, const std::vector<Value> &leaves);
// The program's results, in their order.
std::vector<Tensor> results_of(const FxaEntryPoint &entry, const Call &call);
Tensor another(Handle tensor);

}  // namespace fxa
