#include "weights.hpp"

#include <cstring>
#include <filesystem>
#include <optional>

#include "hashing.hpp"

namespace fxa {
namespace {

constexpr const char *PASS = "pass it: fxa_load_with takes tensors by their names, or a safetensors file";

Refused unreadable(const std::string &what) { return Refused("FXA108", "the artifact's program cannot be read: " + what); }

// What the program says of a constant.
struct Constant {
    std::string name;
    std::vector<std::string> names;  // that of the constant, and its aliases
    std::string dtype_name;
    const Dtype *dtype;
    Sizes sizes, strides;
    const Json *item;

    explicit Constant(const Json &item)
        : name(item["name"].string()),
          names{name},
          dtype_name(item["dtype"].string()),
          dtype(dtype_named(dtype_name)),
          sizes(integers(item["sizes"])),
          strides(integers(item["strides"])),
          item(&item) {
        if (const Json *aliases = item.find("aliases")) {
            for (const Json &alias : aliases->list()) names.push_back(alias.string());
        }
        if (!dtype || extent_of(sizes, strides) < 0) throw unreadable("the weight " + name + " of dtype " + dtype_name);
    }

    bool is_inside() const { return (*item)["tensor"].kind != Json::Null; }
    std::string wanted() const { return "the program takes torch." + dtype_name + " of " + shown(sizes) + " on cpu"; }
};

// ---- safetensors ----

std::map<std::string, Stored> stored_tensors(char *data, size_t size) {
    uint64_t length = 0;
    if (size < 8) throw std::invalid_argument("it was cut off");
    std::memcpy(&length, data, 8);
    if (length > size - 8) throw std::invalid_argument("its header is longer than it");
    Json header = parse_json({data + 8, size_t(length)});
    int64_t room = int64_t(size - 8 - length);
    std::map<std::string, Stored> found;
    for (const auto &[name, item] : header.members) {
        if (name == "__metadata__") continue;
        Sizes offsets = integers(item["data_offsets"]), sizes = integers(item["shape"]);
        if (offsets.size() != 2 || offsets[0] < 0 || offsets[0] > offsets[1] || offsets[1] > room) {
            throw std::invalid_argument(name + " lies outside");
        }
        found[name] = {item["dtype"].string(), sizes, data + 8 + length + offsets[0], size_t(offsets[1] - offsets[0])};
    }
    return found;
}

bool has_elements(const Stored &stored, const Dtype &dtype, int64_t count) {
    return count >= 0 && stored.bytes % dtype.bytes == 0 && stored.bytes / dtype.bytes == size_t(count);
}

// ---- tensors that are passed ----

// Whether elements that the program sees as one are equal to the bit. `full` is contiguous.
bool repeats(const char *full, const Constant &wanted) {
    int64_t count = extent_of(wanted.sizes, contiguous(wanted.sizes));
    size_t bytes = wanted.dtype->bytes;
    for (int64_t i = 0; i < count; i++) {
        int64_t first = 0, rest = i, step = 1;
        for (size_t d = wanted.sizes.size(); d--;) {
            first += wanted.strides[d] ? rest % wanted.sizes[d] * step : 0;
            rest /= wanted.sizes[d];
            step *= wanted.sizes[d];
        }
        if (std::memcmp(full + i * bytes, full + first * bytes, bytes)) return false;
    }
    return true;
}

// A copy that lies in memory as the program takes it.
Tensor rearranged(const Constant &wanted, Handle given) {
    Sizes once = wanted.sizes, steps = wanted.strides;
    for (size_t d = 0; d < once.size(); d++) {
        if (!steps[d] && once[d] > 1) once[d] = 1;  // the program sees one memory several times
        if (!steps[d]) steps[d] = 1;
    }
    Sizes rows = contiguous(wanted.sizes);
    Tensor full = empty_strided(*wanted.dtype, wanted.sizes, rows), made = empty_strided(*wanted.dtype, once, steps);
    check_torch(torch_functions.copy_(full.get(), given, 0));
    void *content = nullptr;
    check_torch(torch_functions.get_data_ptr(full.get(), &content));
    if (once != wanted.sizes && !repeats(static_cast<char *>(content), wanted)) {
        throw Refused("FXA201", "the weight " + wanted.name + " has strides " + shown(wanted.strides) + " in the program, and repeats nothing here");
    }
    check_torch(torch_functions.copy_(made.get(), seen_as(full.get(), once, rows).get(), 0));
    return once == wanted.sizes ? std::move(made) : seen_as(made.get(), wanted.sizes, wanted.strides);
}

// A tensor of the caller's; a copy of it only where it lies otherwise in memory than the program takes it.
Tensor bound_tensor(const Constant &wanted, Handle tensor) {
    Layout given(tensor);
    if (!given.fits(*wanted.dtype, wanted.sizes)) throw Refused("FXA201", "the weight " + wanted.name + " is " + given.text() + ", " + wanted.wanted());
    if (given.strides != wanted.strides || torch_functions.is_conj(tensor) || torch_functions.is_neg(tensor)) return rearranged(wanted, tensor);
    Handle made = nullptr;
    check_torch(torch_functions.new_tensor_handle(tensor, &made));
    return Tensor(made);
}

// ---- files of weights: the one that is passed, and the one beside ----

class WeightsFile {
   public:
    WeightsFile(std::shared_ptr<Mapping> file) : file_(std::move(file)), stored_(stored_tensors(file_->data, file_->size)) {}

    // The constant by its name, or by one of its others; nullptr where there is none.
    const Stored *find(const Constant &wanted) const {
        for (const std::string &name : wanted.names) {
            auto found = stored_.find(name);
            if (found != stored_.end()) return &found->second;
        }
        return nullptr;
    }

    Tensor tensor(const Constant &wanted, const Stored &stored) const {
        const Dtype *dtype = stored_dtype(stored.dtype);
        bool has_its_size = dtype && has_elements(stored, *dtype, extent_of(stored.sizes, contiguous(stored.sizes)));
        if (dtype != wanted.dtype || stored.sizes != wanted.sizes || !has_its_size) {
            std::string name = dtype ? std::string("torch.") + dtype->name : stored.dtype;
            throw Refused("FXA201", "the weight " + wanted.name + " is " + name + " of " + shown(stored.sizes) + ", " + wanted.wanted());
        }
        Tensor made = from_memory(stored.data, *dtype, stored.sizes, contiguous(stored.sizes), file_);
        return bound_tensor(wanted, made.get());
    }

   private:
    std::shared_ptr<Mapping> file_;
    std::map<std::string, Stored> stored_;
};

WeightsFile passed(const std::string &path) {
    auto file = std::make_shared<Mapping>(path);
    if (file->failure) throw Refused("FXA201", path + " cannot be opened: " + std::strerror(file->failure));
    try {
        return WeightsFile(file);
    } catch (const std::logic_error &error) {
        throw Refused("FXA201", path + " is no safetensors file (" + error.what() + ")");
    }
}

WeightsFile beside(const Json &stated, const std::string &artifact) {
    const std::string &name = stated["file"].string();
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) throw unreadable("its weights are in " + name);
    auto file = std::make_shared<Mapping>(std::filesystem::path(artifact).parent_path() / name);
    if (file->failure) {
        throw Refused("FXA201", "its weights are in " + name + ", which cannot be read beside it (" + std::strerror(file->failure) + ")",
                      "put it there, or pass them: fxa_load_with");
    }
    if (int64_t(file->size) != stated["size"].integer() || !fits(file->data, file->size, stated["blake3"], false)) {
        throw Refused("FXA103", name + ", which holds its weights, was changed", "copy or make it again");
    }
    return WeightsFile(file);
}

// ---- inside ----

std::map<std::string, Stored> inside_tensors(const Archive &archive) {
    size_t size = 0;
    char *content = archive.content("weights.safetensors", &size);
    try {
        return stored_tensors(content, size);
    } catch (const std::logic_error &error) {
        throw unreadable(std::string("its weights are no safetensors (") + error.what() + ")");
    }
}

Tensor inside(const Constant &wanted, const std::map<std::string, Stored> &stored, const Archive &archive) {
    auto found = stored.find((*wanted.item)["tensor"].string());
    if (found == stored.end()) throw Refused("FXA201", "the weight " + wanted.name + " is missing");
    const Stored &of = found->second;
    if (stored_dtype(of.dtype) != wanted.dtype || !has_elements(of, *wanted.dtype, extent_of(wanted.sizes, wanted.strides))) {
        throw Refused("FXA201", "the weight " + wanted.name + " is " + of.dtype + " of " + std::to_string(of.bytes) + " bytes, " + wanted.wanted());
    }
    return from_memory(of.data, *wanted.dtype, wanted.sizes, wanted.strides, archive.file());
}

Handle given_for(const Constant &wanted, const Bound &bound) {
    for (const std::string &name : wanted.names) {
        auto found = bound.tensors.find(name);
        if (found != bound.tensors.end()) return found->second;
    }
    return nullptr;
}

}  // namespace

std::vector<Tensor> constants(const Json &program, const Archive &archive, const std::string &path, const Bound &bound) {
    std::optional<WeightsFile> given, other;
    if (!bound.file.empty()) given.emplace(passed(bound.file));
    std::optional<std::map<std::string, Stored>> stored;
    std::vector<Tensor> made;
    for (const Json &item : program["constants"].list()) {
        Constant constant(item);
        if (Handle tensor = given_for(constant, bound)) {
            made.push_back(bound_tensor(constant, tensor));
        } else if (const Stored *found = given ? given->find(constant) : nullptr) {
            made.push_back(given->tensor(constant, *found));
        } else if (constant.is_inside()) {
            if (!stored) stored.emplace(inside_tensors(archive));
            made.push_back(inside(constant, *stored, archive));
        } else {
            const Json *stated = program.find("beside");
            if (stated && !other) other.emplace(beside(*stated, path));
            const Stored *here = other ? other->find(constant) : nullptr;
            if (!here) throw Refused("FXA201", "the weight " + constant.name + " is not in the artifact", PASS);
            made.push_back(other->tensor(constant, *here));
        }
    }
    return made;
}

}  // namespace fxa
