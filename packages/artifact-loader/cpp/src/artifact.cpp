// The C interface: a checked file becomes graphs of the core, whose results are named by the program.
#include "fxstack_artifact.h"

#include <cstring>
#include <deque>
#include <memory>

#include "views.hpp"
#include "weights.hpp"

extern "C" {
#include "../../csrc/core/graph.h"
#include "../../csrc/core/target.h"
}

namespace {

using fxa::Json;
using fxa::Refused;
using fxa::Sizes;
using fxa::integers;

Refused unreadable(const std::string &what) { return Refused("FXA108", "the artifact's program cannot be read: " + what); }

void check(FxaCode code, const FxaError &error) {
    if (code) throw Refused("FXA" + std::to_string(code), error.text);
}

// How a result of the program is made: a tensor that is there, or a view of it.
struct Make {
    enum Kind { GRAPH, LEAF, WEIGHT, SAME } kind;
    size_t index;
    std::vector<fxa::ViewStep> steps;
};

}  // namespace

struct FxaEntryPoint {
    std::string name;
    Graph graph{};
    std::vector<std::string> names;
    std::vector<Make> makes;  // tensors among the results, each once
    std::vector<std::string> result_names;
    std::vector<size_t> order;  // the makes, as they lie in the result

    FxaEntryPoint() = default;
    ~FxaEntryPoint() { fxa_graph_close(&graph); }
    FxaEntryPoint(const FxaEntryPoint &) = delete;
    FxaEntryPoint &operator=(const FxaEntryPoint &) = delete;
};

struct FxaArtifact {
    fxa::Archive archive;
    std::vector<fxa::Tensor> constants;
    std::deque<FxaEntryPoint> entries;

    explicit FxaArtifact(const std::string &path) : archive(path) {}
};

namespace {

// ---- requirements ----

#if defined(__x86_64__)
constexpr const char *SYSTEM = "linux-x86_64";
#elif defined(__aarch64__)
constexpr const char *SYSTEM = "linux-aarch64";
#else
constexpr const char *SYSTEM = "unknown";
#endif

// The best target of the file that this processor runs.
std::string target_of(const Json &manifest) {
    const Json &requires_ = manifest["requires"];
    if (requires_["system"].string() != SYSTEM) throw Refused("FXA105", "the artifact is for " + requires_["system"].string());
    if (requires_["entry_abi"].integer() != FXA_ENTRY_ABI) throw Refused("FXA104", "its native objects are of another version");
    auto version = reinterpret_cast<uint64_t (*)()>(fxa_torch_function("aoti_torch_abi_version"));
    uint64_t found = version ? version() : 0;
    std::string torch = std::to_string(found >> 56) + "." + std::to_string(found >> 48 & 255);
    if (requires_["torch"].string() != torch) {
        throw Refused("FXA106", "the artifact is for torch " + requires_["torch"].string() + ", this is " + torch);
    }
    for (const char *const *level = fxa_cpu_levels(); *level; level++) {
        for (const Json &target : manifest["targets"].list()) {
            if (target.string() == *level) return *level;
        }
    }
    throw Refused("FXA105", "the artifact has nothing that this processor runs");
}

// ---- entry points ----

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

// All that an entry point is but for its native object; FXA110 where it needs Python.
void describe_entry(FxaEntryPoint &entry, const Json &data) {
    const Json &graph = data["graph"];
    if (!graph["operators"].list().empty()) {
        throw Refused("FXA110", entry.name + " runs " + graph["operators"].items[0]["op"].string() + " through Python");
    }
    for (const Json &parameter : data["parameters"].list()) {
        leaf_names(parameter["node"], parameter["name"].string(), entry.names);
    }
    std::string names;
    for (const std::string &name : entry.names) names += name + "\n";
    for (const Json &name : data["symbols"]["names"].list()) names += name.string() + "\n";
    Sizes words = integers(graph["contract"]);
    FxaError error;
    Contract &contract = entry.graph.contract;
    check(fxa_contract_read(&contract, words.data(), int64_t(words.size()), names.c_str(), &error), error);
    entry.graph.scratch_limit = graph["scratch_limit"].integer();
    for (const Json &described : data["results"]["makes"].list()) {
        entry.makes.push_back(make_of(described, entry, entry.makes.size()));
    }
    std::vector<const Json *> leaves;
    leaf_names(data["results"]["node"], "result", entry.result_names, &leaves);
    for (const Json *leaf : leaves) {
        entry.order.push_back(size_t(leaf->integer()));
        if (entry.order.back() >= entry.makes.size()) throw unreadable("a result that is not made");
    }
    for (int64_t i = 0; i < contract.leaf_count; i++) {
        int64_t kind = contract.leaves[i].kind;
        if (kind == LEAF_FLOAT) throw Refused("FXA110", entry.name + " takes a float as it is");
    }
}

void open_entry(FxaEntryPoint &entry, const Json &graph, const std::string &target, FxaArtifact &artifact) {
    std::vector<Handle> constants;
    for (int64_t index : integers(graph["constants"])) constants.push_back(artifact.constants.at(size_t(index)).get());
    if (entry.graph.contract.constant_count != int64_t(constants.size())) throw unreadable("constants");
    size_t size = 0;
    const char *content = artifact.archive.content(graph["objects"][target].string(), &size);
    FxaError error;
    Contract contract = std::exchange(entry.graph.contract, Contract{});
    FxaCode code = fxa_graph_open(&entry.graph, &contract, content, size, constants.data(), &error);
    check(code, error);
}

// Everything is looked at before the first native object is loaded.
void open_all(FxaArtifact &artifact, const std::string &path, const fxa::Bound &bound) {
    FxaError error;
    check(fxa_find_torch(&error), error);
    fxa::find_dispatcher();
    std::string target = target_of(artifact.archive.manifest());
    size_t size = 0;
    const char *text = artifact.archive.content("program.json", &size);
    Json program = fxa::parse_json({text, size});
    const auto &entries = program["entry_points"].members;
    if (entries.empty()) throw unreadable("there is no entry point");
    for (const auto &[name, data] : entries) {
        artifact.entries.emplace_back();
        artifact.entries.back().name = name;
        describe_entry(artifact.entries.back(), data);
    }
    artifact.constants = fxa::constants(program, artifact.archive, path, bound);
    for (size_t i = 0; i < entries.size(); i++) open_entry(artifact.entries[i], entries[i].second["graph"], target, artifact);
}

fxa::Bound bound_of(const FxaLoadOptions *options) {
    fxa::Bound bound;
    if (!options) return bound;
    if (options->weights_file) bound.file = options->weights_file;
    for (size_t i = 0; i < options->weight_count; i++) {
        const FxaWeight &weight = options->weights[i];
        if (!weight.tensor) throw Refused("FXA201", std::string("the weight ") + weight.name + " is NULL");
        bound.tensors[weight.name] = weight.tensor;
    }
    return bound;
}

void tell(const std::string &what, char *error, size_t room) {
    if (!room) return;
    size_t length = what.copy(error, room - 1);
    error[length] = '\0';
}

}  // namespace

// ---- the interface ----

FxaArtifact *fxa_load(const char *path, char *error, size_t room) { return fxa_load_with(path, nullptr, error, room); }

FxaArtifact *fxa_load_with(const char *path, const FxaLoadOptions *options, char *error, size_t room) try {
    fxa::Bound bound = bound_of(options);
    auto made = std::make_unique<FxaArtifact>(path);
    open_all(*made, path, bound);
    return made.release();
} catch (const Refused &refused) {
    tell(refused.what(), error, room);
    return nullptr;
} catch (const std::exception &failed) {
    tell(unreadable(failed.what()).what(), error, room);
    return nullptr;
}

void fxa_unload(FxaArtifact *artifact) { delete artifact; }

const FxaEntryPoint *fxa_entry_point(const FxaArtifact *artifact, const char *name) {
    for (const FxaEntryPoint &entry : artifact->entries) {
        if (entry.name == (name ? name : "forward")) return &entry;
    }
    return !name && artifact->entries.size() == 1 ? &artifact->entries[0] : nullptr;
}

int64_t fxa_input_count(const FxaEntryPoint *entry) { return int64_t(entry->names.size()); }

const char *fxa_input_name(const FxaEntryPoint *entry, int64_t position) {
    return position >= 0 && position < fxa_input_count(entry) ? entry->names[size_t(position)].c_str() : nullptr;
}

int64_t fxa_result_count(const FxaEntryPoint *entry) { return int64_t(entry->order.size()); }

const char *fxa_result_name(const FxaEntryPoint *entry, int64_t position) {
    return position >= 0 && position < fxa_result_count(entry) ? entry->result_names[size_t(position)].c_str() : nullptr;
}

namespace {

// The sizes that symbols stand for, of inputs that were checked.
Sizes symbols_of(const Contract &contract, const std::vector<Value> &leaves) {
    Sizes made;
    for (int64_t i = 0; i < contract.symbol_count; i++) {
        const SymbolSource &symbol = contract.symbols[i];
        int64_t *sizes = nullptr;
        if (symbol.dim >= 0) fxa::check_torch(torch_functions.get_sizes(leaves[size_t(symbol.leaf)].tensor, &sizes));
        made.push_back(sizes ? sizes[symbol.dim] : leaves[size_t(symbol.leaf)].number);
    }
    return made;
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
                    !torch_functions.get_device_type(inputs[i], &device) && !rank && dtype == fxa::dtype_named("int64")->number && !device &&
                    !torch_functions.get_data_ptr(inputs[i], &content);
        if (!good) return fxa_fail(error, FXA_KIND, "%s is an int: pass an int64 tensor without dimensions on the CPU", contract.names[i]);
        leaf.number = *static_cast<int64_t *>(content);
    }
    return FXA_OK;
}

fxa::Tensor another(Handle tensor) {
    Handle made = nullptr;
    fxa::check_torch(torch_functions.new_tensor_handle(tensor, &made));
    return fxa::Tensor(made);
}

// The program's results, of the graph's.
std::vector<fxa::Tensor> results_of(const FxaEntryPoint &entry, const std::vector<Value> &leaves, const std::vector<fxa::Tensor> &found) {
    std::vector<fxa::Tensor> made;
    Sizes symbols;
    for (const Make &make : entry.makes) {
        Handle of = make.kind == Make::GRAPH  ? found[make.index].get()
                    : make.kind == Make::LEAF ? leaves[make.index].tensor
                    : make.kind == Make::SAME ? made[make.index].get()
                                              : entry.graph.constants[make.index];
        fxa::Tensor result = another(of);
        if (!make.steps.empty() && symbols.empty()) symbols = symbols_of(entry.graph.contract, leaves);
        for (const fxa::ViewStep &step : make.steps) result = step.apply(result.get(), symbols);
        made.push_back(std::move(result));
    }
    return made;
}

}  // namespace

int fxa_call(const FxaEntryPoint *entry, void *const *inputs, void **results, char *error, size_t room) try {
    auto *graph = const_cast<Graph *>(&entry->graph);  // which a call does not change
    const Contract &contract = graph->contract;
    std::vector<Value> leaves(size_t(contract.leaf_count) + 1);
    std::vector<Handle> handles(size_t(contract.result_count) + 1);
    std::vector<int64_t> numbers(size_t(contract.result_count) + 1);
    FxaError failed;
    FxaCode code = leaves_of(contract, inputs, leaves, &failed);
    if (!code) code = fxa_graph_run(graph, leaves.data(), handles.data(), numbers.data(), &failed);
    if (code) {
        std::string told = code < 100 ? failed.text : "[FXA" + std::to_string(code) + "] " + failed.text;
        tell(*failed.action ? told + "\n  to do: " + failed.action : told, error, room);
        return code;
    }
    std::vector<fxa::Tensor> found;
    for (Handle handle : handles) found.emplace_back(handle);
    std::vector<fxa::Tensor> made = results_of(*entry, leaves, found), ordered;
    for (size_t position : entry->order) ordered.push_back(another(made[position].get()));
    for (size_t i = 0; i < ordered.size(); i++) results[i] = ordered[i].release();
    return 0;
} catch (const std::exception &failed) {
    tell(failed.what(), error, room);
    return FXA_NO_MEMORY;
}
