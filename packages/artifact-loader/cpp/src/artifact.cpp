// The C interface: a checked file becomes graphs of the core, whose results are named by the program.
#include "fxstack_artifact.h"

#include <cstring>
#include <memory>

#include "dispatcher.hpp"
#include "entry_point.hpp"

extern "C" {
#include "../../csrc/core/target.h"
}

namespace {

using fxa::Failed;
using fxa::Json;
using fxa::Refused;
using fxa::unreadable;

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

// Everything is looked at before the first native object is loaded.
void open_all(FxaArtifact &artifact, const std::string &path, const fxa::Bound &bound) {
    FxaError error;
    fxa::check(fxa_find_torch(&error), error);
    fxa::find_dispatcher();
    std::string target = target_of(artifact.archive.manifest());
    size_t size = 0;
    const char *text = artifact.archive.content("program.json", &size);
    Json program = fxa::parse_json({text, size});
    const auto &entries = program["entry_points"].members;
    if (entries.empty()) throw unreadable("there is no entry point");
    for (const Json &item : program["constants"].list()) artifact.constant_names.push_back(item["name"].string());
    for (const auto &[name, data] : entries) {
        artifact.entries.emplace_back();
        artifact.entries.back().name = name;
        fxa::describe_entry(artifact.entries.back(), data, artifact.constant_names);
    }
    artifact.constants = fxa::constants(program, artifact.archive, path, bound);
    for (size_t i = 0; i < entries.size(); i++) fxa::open_entry(artifact.entries[i], entries[i].second, target, artifact);
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

int64_t fxa_weight_count(const FxaArtifact *artifact) { return int64_t(artifact->constants.size()); }

const char *fxa_weight_name(const FxaArtifact *artifact, int64_t position) {
    return position >= 0 && position < fxa_weight_count(artifact) ? artifact->constant_names[size_t(position)].c_str() : nullptr;
}

void *fxa_weight(const FxaArtifact *artifact, const char *name) {
    for (size_t i = 0; i < artifact->constants.size(); i++) {
        if (artifact->constant_names[i] == name) return artifact->constants[i].get();
    }
    return nullptr;
}

namespace {

// What a call returns, and tells where it failed.
template <typename Action>
int guarded(char *error, size_t room, Action action) try {
    action();
    return 0;
} catch (const Failed &failed) {
    tell(failed.what(), error, room);
    return failed.code;
} catch (const std::exception &failed) {
    tell(failed.what(), error, room);
    return FXA_TORCH;
}

void hand_over(std::vector<fxa::Tensor> &made, void **to) {
    for (size_t i = 0; i < made.size(); i++) to[i] = made[i].release();
}

}  // namespace

int fxa_call(const FxaEntryPoint *entry, void *const *inputs, void **results, char *error, size_t room) {
    return guarded(error, room, [&] {
        fxa::Call call = fxa::run(*entry, inputs);
        std::vector<fxa::Tensor> made = fxa::results_of(*entry, call);
        hand_over(made, results);
    });
}

int64_t fxa_gradient_count(const FxaEntryPoint *entry) { return entry->backward ? int64_t(entry->backward->names.size()) : 0; }

const char *fxa_gradient_name(const FxaEntryPoint *entry, int64_t position) {
    return position >= 0 && position < fxa_gradient_count(entry) ? entry->backward->names[size_t(position)].c_str() : nullptr;
}

int fxa_forward(const FxaEntryPoint *entry, void *const *inputs, void **results, FxaPass **pass, char *error, size_t room) {
    return guarded(error, room, [&] {
        if (!entry->backward) throw Failed(FXA_TORCH, "[FXA204] " + entry->name + " is no entry point for training");
        fxa::Call call = fxa::run(*entry, inputs);
        std::vector<fxa::Tensor> made = fxa::results_of(*entry, call);
        *pass = fxa::pass_of(*entry, call).release();
        hand_over(made, results);
    });
}

int fxa_backward(const FxaPass *pass, void *const *gradients, void **made, char *error, size_t room) {
    return guarded(error, room, [&] {
        std::vector<fxa::Tensor> found = fxa::backward(*pass, gradients);
        hand_over(found, made);
    });
}

void fxa_drop_pass(FxaPass *pass) { delete pass; }
