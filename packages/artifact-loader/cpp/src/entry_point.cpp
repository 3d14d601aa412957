#include "entry_point.hpp"

namespace fxa {
namespace {

// What the leaves of a structure are called, in order, and the nodes that stand for them.
void leaf_names(const Json &node, const std::string &name, std::vector<std::string> &names, std::vector<const Json *> *leaves = nullptr) {
    if (node.members.size() != 1) throw unreadable("a structure");
    const auto &[kind, content] = node.members[0];
    if (kind == "leaf" || kind == "number") {
        names.push_back(name);
        if (leaves) leaves->push_back(&content);
    } else if (kind == "tuple" || kind == "list") {
        for (size_t i = 0; i < content.list().size(); i++) leaf_names(content.items[i], name + "[" + std::to_string(i) + "]", names, leaves);
    } else if (kind == "dict" || kind == "record") {
        for (const Json &pair : (kind == "dict" ? content : content.list().at(1)).list()) {
            const Json &key = pair.list().at(0);
            std::string shown = key.kind == Json::Int ? std::to_string(key.number) : key.string();
            leaf_names(pair.items.at(1), kind == "dict" ? name + "['" + shown + "']" : name + "." + shown, names, leaves);
        }
    } else if (kind != "const") {
        throw unreadable("a structure of kind " + kind);
    }
}

Make make_of(const Json &described, const FxaEntryPoint &entry, size_t position) {
    const std::string &kind = described.list().at(0).string();
    const Contract &contract = entry.graph.contract;
    if (kind == "constant") {
        throw Refused("FXA110", "result " + std::to_string(position) + " of " + entry.name + " is made in Python (" + kind + ")");
    }
    if (kind == "view") {
        Make made = make_of(described.items.at(1), entry, position);
        for (const Json &step : described.items.at(2).list()) made.steps.emplace_back(step, size_t(contract.symbol_count));
        return made;
    }
    size_t index = size_t(described.items.at(1).integer());
    if (kind == "graph" && index < size_t(contract.result_count) && contract.results[index] == RESULT_TENSOR) return {Make::GRAPH, index, {}};
    if (kind == "leaf" && index < size_t(contract.leaf_count) && contract.leaves[index].kind == LEAF_TENSOR) return {Make::LEAF, index, {}};
    if (kind == "weight" && index < size_t(contract.constant_count)) return {Make::WEIGHT, index, {}};
    if (kind == "same" && index < position) return {Make::SAME, index, {}};
    throw unreadable("a result of kind " + kind);
}

// The leaves of a call. Integers are read here, of tensors without dimensions, which stand for them.
FxaCode leaves_of(const Contract &contract, void *const *inputs, std::vector<Value> &leaves, FxaError *error) {
    for (int64_t i = 0; i < contract.leaf_count; i++) {
        Value &leaf = leaves[size_t(i)];
        leaf.tensor = inputs[i];
        if (contract.leaves[i].kind != LEAF_INTEGER) continue;
        int64_t rank = -1;
        int32_t dtype = -1, device = -1;
        void *content = nullptr;
        bool good = !torch_functions.get_dim(inputs[i], &rank) && !torch_functions.get_dtype(inputs[i], &dtype) &&
                    !torch_functions.get_device_type(inputs[i], &device) && !rank && dtype == dtype_named("int64")->number && !device &&
                    !torch_functions.get_data_ptr(inputs[i], &content);
        if (!good) return fxa_fail(error, FXA_KIND, "%s is an int: pass an int64 tensor without dimensions on the CPU", contract.names[i]);
        leaf.number = *static_cast<int64_t *>(content);
    }
    return FXA_OK;
}

}  // namespace

Refused unreadable(const std::string &what) { return Refused("FXA108", "the artifact's program cannot be read: " + what); }

void check(FxaCode code, const FxaError &error) {
    if (code) throw Refused("FXA" + std::to_string(code), error.text);
}

namespace {

std::string told(const FxaError &error) {
    std::string what = error.code < 100 ? error.text : "[FXA" + std::to_string(error.code) + "] " + error.text;
    return *error.action ? what + "\n  to do: " + error.action : what;
}

}  // namespace

Failed::Failed(const FxaError &error) : Failed(error.code, told(error)) {}

// ---- opening ----

void describe_graph(Graph &graph, const Json &described, const std::string &names, const std::string &entry) {
    if (!described["operators"].list().empty()) {
        throw Refused("FXA110", entry + " runs " + described["operators"].items[0]["op"].string() + " through Python");
    }
    Sizes words = integers(described["contract"]);
    FxaError error;
    check(fxa_contract_read(&graph.contract, words.data(), int64_t(words.size()), names.c_str(), &error), error);
    graph.scratch_limit = described["scratch_limit"].integer();
    for (int64_t i = 0; i < graph.contract.leaf_count; i++) {
        if (graph.contract.leaves[i].kind == LEAF_FLOAT) throw Refused("FXA110", entry + " takes a float as it is");
    }
}

void describe_entry(FxaEntryPoint &entry, const Json &data, const std::vector<std::string> &constant_names) {
    for (const Json &parameter : data["parameters"].list()) {
        leaf_names(parameter["node"], parameter["name"].string(), entry.names);
    }
    std::string names;
    for (const std::string &name : entry.names) names += name + "\n";
    for (const Json &name : data["symbols"]["names"].list()) names += name.string() + "\n";
    describe_graph(entry.graph, data["graph"], names, entry.name);
    for (const Json &described : data["results"]["makes"].list()) {
        entry.makes.push_back(make_of(described, entry, entry.makes.size()));
    }
    std::vector<const Json *> leaves;
    leaf_names(data["results"]["node"], "result", entry.result_names, &leaves);
    for (const Json *leaf : leaves) {
        entry.order.push_back(size_t(leaf->integer()));
        if (entry.order.back() >= entry.makes.size()) throw unreadable("a result that is not made");
    }
    if (data["kind"].string() == "training") {
        entry.backward = std::make_unique<Backward>();
        describe_backward(*entry.backward, entry, data, constant_names);
    } else if (data["kind"].string() != "inference") {
        throw unreadable("an entry point for " + data["kind"].string());
    }
}

void open_graph(Graph &graph, const Json &described, const std::string &target, const Archive &archive, const std::vector<Handle> &constants) {
    if (graph.contract.constant_count != int64_t(constants.size())) throw unreadable("constants");
    size_t size = 0;
    const char *content = archive.content(described["objects"][target].string(), &size);
    FxaError error;
    Contract contract = std::exchange(graph.contract, Contract{});
    check(fxa_graph_open(&graph, &contract, content, size, constants.data(), &error), error);
}

void open_entry(FxaEntryPoint &entry, const Json &data, const std::string &target, FxaArtifact &artifact) {
    std::vector<Handle> constants;
    for (int64_t index : integers(data["graph"]["constants"])) constants.push_back(artifact.constants.at(size_t(index)).get());
    open_graph(entry.graph, data["graph"], target, artifact.archive, constants);
    if (entry.backward) open_graph(entry.backward->graph, data["backward"]["graph"], target, artifact.archive, {});
}

// ---- a call ----

// The sizes that symbols stand for, of inputs that were checked.
Sizes symbols_of(const Contract &contract, const std::vector<Value> &leaves) {
    Sizes made;
    for (int64_t i = 0; i < contract.symbol_count; i++) {
        const SymbolSource &symbol = contract.symbols[i];
        int64_t *sizes = nullptr;
        if (symbol.dim >= 0) check_torch(torch_functions.get_sizes(leaves[size_t(symbol.leaf)].tensor, &sizes));
        made.push_back(sizes ? sizes[symbol.dim] : leaves[size_t(symbol.leaf)].number);
    }
    return made;
}

Tensor another(Handle tensor) {
    Handle made = nullptr;
    check_torch(torch_functions.new_tensor_handle(tensor, &made));
    return Tensor(made);
}

Call run(const FxaEntryPoint &entry, void *const *inputs) {
    auto *graph = const_cast<Graph *>(&entry.graph);  // which a call does not change
    const Contract &contract = graph->contract;
    Call call;
    call.leaves.resize(size_t(contract.leaf_count) + 1);
    std::vector<Handle> handles(size_t(contract.result_count) + 1);
    std::vector<int64_t> numbers(size_t(contract.result_count) + 1);
    FxaError failed;
    FxaCode code = leaves_of(contract, inputs, call.leaves, &failed);
    if (!code) code = fxa_graph_run(graph, call.leaves.data(), handles.data(), numbers.data(), &failed);
    if (code) throw Failed(failed);
    for (Handle handle : handles) call.found.emplace_back(handle);
    return call;
}

std::vector<Tensor> results_of(const FxaEntryPoint &entry, const Call &call) {
    std::vector<Tensor> made, ordered;
    Sizes symbols;
    for (const Make &make : entry.makes) {
        Handle of = make.kind == Make::GRAPH  ? call.found[make.index].get()
                    : make.kind == Make::LEAF ? call.leaves[make.index].tensor
                    : make.kind == Make::SAME ? made[make.index].get()
                                              : entry.graph.constants[make.index];
        Tensor result = another(of);
        if (!make.steps.empty() && symbols.empty()) symbols = symbols_of(entry.graph.contract, call.leaves);
        for (const ViewStep &step : make.steps) result = step.apply(result.get(), symbols);
        made.push_back(std::move(result));
    }
    for (size_t position : entry.order) ordered.push_back(another(made[position].get()));
    return ordered;
}

}  // namespace fxa
