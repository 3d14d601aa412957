// The C interface: a checked file becomes graphs of the core, whose results are named by the program.
#include "fxstack_artifact.h"

#include <cstring>
#include <deque>
#include <memory>

#include "archive.hpp"

extern "C" {
#include "../../csrc/core/graph.h"
#include "../../csrc/core/target.h"
}

namespace {

using fxa::Json;
using fxa::Refused;

struct Dtype {
    const char *name;
    int32_t number;
    size_t bytes;
};

// safetensors' names, and torch's numbers
constexpr Dtype DTYPES[] = {
    {"U8", 0, 1},   {"I8", 1, 1},   {"I16", 2, 2},  {"I32", 3, 4},    {"I64", 4, 8},  {"F16", 5, 2},      {"F32", 6, 4},      {"F64", 7, 8},
    {"C64", 9, 8},  {"BOOL", 11, 1}, {"BF16", 15, 2}, {"F8_E5M2", 23, 1}, {"F8_E4M3", 24, 1}, {"U16", 27, 2}, {"U32", 28, 4}, {"U64", 29, 8},
};

Refused unreadable(const std::string &what) { return Refused("FXA108", "the artifact's program cannot be read: " + what); }

void check(FxaCode code, const FxaError &error) {
    if (code) throw Refused("FXA" + std::to_string(code), error.text);
}

// Tensors that this process owns.
class Tensors {
   public:
    Tensors() = default;
    ~Tensors() {
        for (Handle handle : handles_) torch_functions.delete_tensor_object(handle);
    }
    Tensors(const Tensors &) = delete;
    Tensors &operator=(const Tensors &) = delete;
    void add(Handle handle) { handles_.push_back(handle); }
    Handle at(size_t position) const { return handles_.at(position); }

   private:
    std::vector<Handle> handles_;
};

struct Make {
    enum Kind { GRAPH, LEAF, WEIGHT, SAME } kind;
    size_t index;
};

std::vector<int64_t> integers(const Json &list) {
    std::vector<int64_t> made;
    for (const Json &item : list.list()) made.push_back(item.integer());
    return made;
}

}  // namespace

struct FxaEntryPoint {
    std::string name;
    Graph graph{};
    std::vector<std::string> names;
    std::vector<Make> makes;  // the entry point's results

    FxaEntryPoint() = default;
    ~FxaEntryPoint() { fxa_graph_close(&graph); }
    FxaEntryPoint(const FxaEntryPoint &) = delete;
    FxaEntryPoint &operator=(const FxaEntryPoint &) = delete;
};

struct FxaArtifact {
    fxa::Archive archive;
    std::deque<std::vector<char>> moved;  // constants that lie where their type cannot be read
    Tensors constants;
    std::deque<FxaEntryPoint> entries;

    explicit FxaArtifact(const char *path) : archive(path) {}
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

// ---- constants ----

struct Stored {
    const Dtype *dtype;
    char *data;
    int64_t elements;
};

const Dtype *dtype_named(const std::string &name) {
    for (const Dtype &dtype : DTYPES) {
        if (name == dtype.name) return &dtype;
    }
    throw unreadable("there is no dtype " + name);
}

std::map<std::string, Stored> stored_tensors(char *data, size_t size) {
    uint64_t length = 0;
    if (size < 8) throw unreadable("its weights are no safetensors");
    std::memcpy(&length, data, 8);
    if (length > size - 8) throw unreadable("its weights are no safetensors");
    Json header = fxa::parse_json({data + 8, size_t(length)});
    std::map<std::string, Stored> found;
    for (const auto &[name, item] : header.members) {
        if (name == "__metadata__") continue;
        const Dtype *dtype = dtype_named(item["dtype"].string());
        std::vector<int64_t> offsets = integers(item["data_offsets"]);
        int64_t room = int64_t(size - 8 - length);
        if (offsets.size() != 2 || offsets[0] < 0 || offsets[0] > offsets[1] || offsets[1] > room ||
            (offsets[1] - offsets[0]) % int64_t(dtype->bytes)) {
            throw unreadable(name + " lies outside");
        }
        found[name] = {dtype, data + 8 + length + offsets[0], (offsets[1] - offsets[0]) / int64_t(dtype->bytes)};
    }
    return found;
}

Handle constant(const Json &item, const std::map<std::string, Stored> &stored, FxaArtifact &artifact) {
    if (item["tensor"].kind == Json::Null) throw Refused("FXA201", "the weight " + item["name"].string() + " is not in the artifact");
    auto found = stored.find(item["tensor"].string());
    if (found == stored.end()) throw Refused("FXA201", "the weight " + item["name"].string() + " is missing");
    Stored of = found->second;
    std::vector<int64_t> sizes = integers(item["sizes"]), strides = integers(item["strides"]);
    __int128 extent = 1;
    bool good = sizes.size() == strides.size() && sizes.size() <= 64, is_empty = false;
    for (size_t d = 0; good && d < sizes.size(); d++) {
        good = sizes[d] >= 0 && strides[d] >= 0;
        is_empty |= sizes[d] == 0;
        extent += __int128(sizes[d] - 1) * strides[d];
        good = good && (is_empty || extent <= of.elements);
    }
    if (!good || (is_empty ? 0 : extent) != of.elements) {
        throw Refused("FXA201", "the weight " + item["name"].string() + " is of another size than the program takes");
    }
    if (uintptr_t(of.data) % of.dtype->bytes) {
        size_t bytes = size_t(of.elements) * of.dtype->bytes;
        artifact.moved.emplace_back(of.data, of.data + bytes);
        of.data = artifact.moved.back().data();
    }
    Handle made = nullptr;
    int64_t rank = int64_t(sizes.size());
    if (torch_functions.from_blob(of.data, rank, sizes.data(), strides.data(), 0, of.dtype->number, 0, -1, &made)) {
        throw Refused("FXA201", fxa_torch_says());
    }
    return made;
}

// ---- entry points ----

void leaf_names(const Json &node, const std::string &name, std::vector<std::string> &names) {
    if (node.members.size() != 1) throw unreadable("a structure");
    const auto &[kind, content] = node.members[0];
    if (kind == "leaf" || kind == "number") {
        names.push_back(name);
    } else if (kind == "tuple" || kind == "list") {
        for (size_t i = 0; i < content.list().size(); i++) leaf_names(content.items[i], name + "[" + std::to_string(i) + "]", names);
    } else if (kind == "dict" || kind == "record") {
        for (const Json &pair : (kind == "dict" ? content : content.list().at(1)).list()) {
            const Json &key = pair.list().at(0);
            std::string shown = key.kind == Json::Int ? std::to_string(key.number) : key.string();
            leaf_names(pair.items.at(1), kind == "dict" ? name + "['" + shown + "']" : name + "." + shown, names);
        }
    } else if (kind != "const") {
        throw unreadable("a structure of kind " + kind);
    }
}

Make make_of(const Json &described, const FxaEntryPoint &entry, size_t position) {
    const std::string &kind = described.list().at(0).string();
    if (kind == "view" || kind == "constant") {
        throw Refused("FXA110", "result " + std::to_string(position) + " of " + entry.name + " is made in Python (" + kind + ")");
    }
    size_t index = size_t(described.items.at(1).integer());
    const Contract &contract = entry.graph.contract;
    if (kind == "graph" && index < size_t(contract.result_count) && contract.results[index] == RESULT_TENSOR) return {Make::GRAPH, index};
    if (kind == "leaf" && index < size_t(contract.leaf_count) && contract.leaves[index].kind == LEAF_TENSOR) return {Make::LEAF, index};
    if (kind == "weight" && index < size_t(contract.constant_count)) return {Make::WEIGHT, index};
    if (kind == "same" && index < position) return {Make::SAME, index};
    throw unreadable("a result of kind " + kind);
}

void open_entry(FxaEntryPoint &entry, const Json &data, const std::string &target, FxaArtifact &artifact) {
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
    std::vector<int64_t> words = integers(graph["contract"]);
    std::vector<Handle> constants;
    for (int64_t index : integers(graph["constants"])) constants.push_back(artifact.constants.at(size_t(index)));
    FxaError error;
    Contract contract;
    FxaCode code = fxa_contract_read(&contract, words.data(), int64_t(words.size()), names.c_str(), &error);
    if (!code && contract.constant_count != int64_t(constants.size())) code = fxa_fail(&error, FXA_BAD_PROGRAM, "constants");
    if (!code) {
        size_t size = 0;
        const char *content = nullptr;
        try {
            content = artifact.archive.content(graph["objects"][target].string(), &size);
        } catch (...) {
            fxa_contract_free(&contract);
            throw;
        }
        code = fxa_graph_open(&entry.graph, &contract, content, size, constants.data(), &error);
    }
    fxa_contract_free(&contract);
    check(code, error);
    entry.graph.scratch_limit = graph["scratch_limit"].integer();
    for (const Json &described : data["results"]["makes"].list()) {
        entry.makes.push_back(make_of(described, entry, entry.makes.size()));
    }
    for (int64_t i = 0; i < entry.graph.contract.leaf_count; i++) {
        int64_t kind = entry.graph.contract.leaves[i].kind;
        if (kind == LEAF_INTEGER || kind == LEAF_FLOAT) throw Refused("FXA110", entry.name + " takes numbers");
    }
}

void open_all(FxaArtifact &artifact) {
    FxaError error;
    check(fxa_find_torch(&error), error);
    std::string target = target_of(artifact.archive.manifest());
    size_t size = 0;
    const char *text = artifact.archive.content("program.json", &size);
    Json program = fxa::parse_json({text, size});
    if (!program["constants"].list().empty()) {
        char *weights = artifact.archive.content("weights.safetensors", &size);
        std::map<std::string, Stored> stored = stored_tensors(weights, size);
        for (const Json &item : program["constants"].items) artifact.constants.add(constant(item, stored, artifact));
    }
    for (const auto &[name, data] : program["entry_points"].members) {
        artifact.entries.emplace_back();
        artifact.entries.back().name = name;
        open_entry(artifact.entries.back(), data, target, artifact);
    }
    if (artifact.entries.empty()) throw unreadable("there is no entry point");
}

void tell(const std::string &what, char *error, size_t room) {
    if (!room) return;
    size_t length = what.copy(error, room - 1);
    error[length] = '\0';
}

}  // namespace

// ---- the interface ----

FxaArtifact *fxa_load(const char *path, char *error, size_t room) try {
    auto made = std::make_unique<FxaArtifact>(path);
    open_all(*made);
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

int64_t fxa_result_count(const FxaEntryPoint *entry) { return int64_t(entry->makes.size()); }

int fxa_call(const FxaEntryPoint *entry, void *const *inputs, void **results, char *error, size_t room) try {
    auto *graph = const_cast<Graph *>(&entry->graph);  // which a call does not change
    const Contract &contract = graph->contract;
    std::vector<Value> leaves(size_t(contract.leaf_count) + 1);
    for (int64_t i = 0; i < contract.leaf_count; i++) leaves[size_t(i)].tensor = inputs[i];
    std::vector<Handle> found(size_t(contract.result_count) + 1);
    std::vector<int64_t> numbers(size_t(contract.result_count) + 1);
    FxaError failed;
    FxaCode code = fxa_graph_run(graph, leaves.data(), found.data(), numbers.data(), &failed);
    if (code) {
        std::string told = code < 100 ? failed.text : "[FXA" + std::to_string(code) + "] " + failed.text;
        tell(*failed.action ? told + "\n  to do: " + failed.action : told, error, room);
        return code;
    }
    int32_t bad = 0;
    for (size_t i = 0; i < entry->makes.size(); i++) {
        const Make &make = entry->makes[i];
        Handle of = make.kind == Make::GRAPH  ? found[make.index]
                    : make.kind == Make::LEAF ? inputs[make.index]
                    : make.kind == Make::SAME ? results[make.index]
                                              : graph->constants[make.index];
        bad |= torch_functions.new_tensor_handle(of, &results[i]);
    }
    for (Handle handle : found) {
        if (handle) torch_functions.delete_tensor_object(handle);
    }
    if (bad) tell(fxa_torch_says(), error, room);
    return bad;
} catch (const std::exception &failed) {
    tell(failed.what(), error, room);
    return FXA_NO_MEMORY;
}
