#include "training.hpp"

#include <algorithm>

#include "dispatcher.hpp"
#include "entry_point.hpp"

namespace fxa {
namespace {

constexpr FxaCode OF_NAN = FxaCode(403), OF_GRADIENT = FxaCode(405);

Source source_of(const Json &described, const FxaEntryPoint &entry) {
    const std::string &of = described.list().at(0).string();
    const Contract &contract = entry.graph.contract;
    int64_t number = described.items.at(1).integer();
    if (of == "leaf" && number >= 0 && number < contract.leaf_count && contract.leaves[number].kind == LEAF_TENSOR) {
        return {Source::LEAF, size_t(number)};
    }
    if (of == "weight" && number >= 0 && number < contract.constant_count) return {Source::WEIGHT, size_t(number)};
    if (of == "graph" && number >= 0 && number < contract.result_count && contract.results[number] == RESULT_TENSOR) {
        return {Source::GRAPH, size_t(number)};
    }
    throw unreadable("a value of the backward");
}

std::string name_of(const Source &source, const FxaEntryPoint &entry, const Sizes &constants, const std::vector<std::string> &constant_names) {
    if (source.of == Source::LEAF) return entry.names.at(source.number);
    if (source.of == Source::WEIGHT) return constant_names.at(size_t(constants.at(source.number)));
    return "a value that the forward computed";
}

std::set<size_t> numbers_below(const Json &described, size_t count) {
    std::set<size_t> made;
    for (int64_t number : integers(described)) {
        if (number < 0 || size_t(number) >= count) throw unreadable("the gradients of results");
        made.insert(size_t(number));
    }
    return made;
}

Tangent tangent_of(const Json &described, const FxaEntryPoint &entry) {
    const Contract &contract = entry.graph.contract;
    int64_t result = described["result"].integer();
    Tangent made{size_t(result), dtype_named(described["dtype"].string()), {}, {}};
    for (const Json &words : described["sizes"].list()) made.sizes.emplace_back(words, size_t(contract.symbol_count));
    for (const Json &words : described["strides"].list()) made.strides.emplace_back(words, size_t(contract.symbol_count));
    bool good = made.dtype && made.sizes.size() == made.strides.size() && result >= 0 && result < contract.result_count;
    if (!good || contract.results[result] != RESULT_TENSOR) throw unreadable("the gradient of a result");
    return made;
}

Sizes values(const std::vector<Expression> &expressions, const Sizes &symbols) {
    Sizes made;
    for (const Expression &expression : expressions) made.push_back(expression.value(symbols));
    return made;
}

// Gradients are off while it lives.
class NoGrad {
   public:
    NoGrad() : was_(torch_functions.grad_mode_is_enabled()) {
        if (was_) torch_functions.grad_mode_set_enabled(false);
    }
    ~NoGrad() {
        if (was_) torch_functions.grad_mode_set_enabled(true);
    }

   private:
    bool was_;
};

}  // namespace

void describe_backward(Backward &backward, const FxaEntryPoint &entry, const Json &data, const std::vector<std::string> &constant_names) {
    const Json &described = data["backward"];
    Sizes constants = integers(data["graph"]["constants"]);
    for (const Json &item : described["saved"].list()) {
        backward.saved.push_back(source_of(item, entry));
        backward.saved_names.push_back(name_of(backward.saved.back(), entry, constants, constant_names));
    }
    for (const Json &item : described["tangents"].list()) backward.tangents.push_back(tangent_of(item, entry));
    size_t leaves = size_t(entry.graph.contract.symbol_count) + backward.saved.size() + backward.tangents.size();
    std::string names;
    for (size_t i = 0; i < leaves; i++) names += "value " + std::to_string(i) + " of the backward\n";
    for (const Json &name : data["symbols"]["names"].list()) names += name.string() + "\n";
    describe_graph(backward.graph, described["graph"], names, "the backward of " + entry.name);
    const Contract &contract = backward.graph.contract;
    if (described["leaves"].integer() != int64_t(leaves) || contract.leaf_count != int64_t(leaves)) throw unreadable("what the backward takes");
    for (const Json &item : described["gradients"].list()) {
        Source of = source_of(item["of"], entry);
        int64_t place = item["from"].integer();
        bool good = place >= 0 ? place < contract.result_count && contract.results[place] == RESULT_TENSOR
                               : -1 - place < contract.leaf_count && contract.leaves[-1 - place].kind == LEAF_TENSOR;
        if (!good || of.of == Source::GRAPH) throw unreadable("where a gradient is");
        backward.gradients.push_back({of, place, numbers_below(item["depends"], backward.tangents.size())});
        backward.names.push_back(name_of(of, entry, constants, constant_names));
    }
    for (const Json &item : described["nan_from_zeros"].list()) {
        backward.nan_from_zeros.push_back(numbers_below(item, backward.tangents.size()));
    }
}

std::unique_ptr<FxaPass> pass_of(const FxaEntryPoint &entry, const Call &call) {
    auto made = std::make_unique<FxaPass>();
    made->entry = &entry;
    made->symbols = symbols_of(entry.graph.contract, call.leaves);
    for (const Source &source : entry.backward->saved) {
        Handle of = source.of == Source::LEAF     ? call.leaves[source.number].tensor
                    : source.of == Source::WEIGHT ? entry.graph.constants[source.number]
                                                  : call.found[source.number].get();
        made->saved.push_back(another(of));
        made->versions.push_back(version_of(of));
    }
    return made;
}

namespace {

void check_saved(const FxaPass &pass) {
    for (size_t i = 0; i < pass.saved.size(); i++) {
        if (version_of(pass.saved[i].get()) != pass.versions[i]) {
            throw Failed(FXA_TORCH, pass.entry->backward->saved_names[i] + " was written to since the forward, and the backward needs what it was");
        }
    }
}

// The gradients that arrive, by the number of the graph's result.
std::vector<Handle> by_result(const FxaEntryPoint &entry, void *const *gradients) {
    std::vector<Handle> found(size_t(entry.graph.contract.result_count) + 1);
    for (size_t i = 0; i < entry.order.size(); i++) {
        if (!gradients[i]) continue;
        const std::string &name = entry.result_names[i];
        const Make *make = &entry.makes[entry.order[i]];
        while (make->kind == Make::SAME && make->steps.empty()) make = &entry.makes[make->index];
        if (make->kind != Make::GRAPH || !make->steps.empty()) {
            throw Failed(OF_GRADIENT, "[FXA405] " + name + " is an input, a weight or a view; its gradient is not taken from C++");
        }
        const auto &tangents = entry.backward->tangents;
        bool leads = std::any_of(tangents.begin(), tangents.end(), [&](const Tangent &tangent) { return tangent.result == make->index; });
        if (!leads) throw Failed(OF_GRADIENT, "[FXA405] " + name + " does not lead to anything that requires grad");
        if (found[make->index]) throw Failed(OF_GRADIENT, "[FXA405] " + name + " is a result that another gradient is for too: add the two");
        found[make->index] = gradients[i];
    }
    return found;
}

// A gradient as the backward takes it: zeros where there is none, copied where it lies otherwise in memory.
Tensor arrived(const Tangent &tangent, Handle gradient, const Sizes &symbols) {
    Sizes sizes = values(tangent.sizes, symbols), strides = values(tangent.strides, symbols);
    if (gradient) {
        Layout found(gradient);
        if (!found.fits(*tangent.dtype, sizes)) {
            throw Failed(OF_GRADIENT, "[FXA405] the gradient of a result is " + found.text() + ", the result is torch." + tangent.dtype->name +
                                          " of " + shown(sizes) + " on cpu");
        }
        if (found.strides == strides && !torch_functions.is_conj(gradient) && !torch_functions.is_neg(gradient)) return another(gradient);
    }
    Tensor made = empty_strided(*tangent.dtype, sizes, strides);
    if (gradient) {
        check_torch(torch_functions.copy_(made.get(), gradient, 0));
    } else {
        zero(made.get());
    }
    return made;
}

void check_nan(const Backward &of, const std::set<size_t> &missing, const std::vector<Tensor> &made) {
    auto is_missing = [&](const std::set<size_t> &numbers) { return std::includes(missing.begin(), missing.end(), numbers.begin(), numbers.end()); };
    if (missing.empty() || !std::any_of(of.nan_from_zeros.begin(), of.nan_from_zeros.end(), is_missing)) return;
    if (std::any_of(made.begin(), made.end(), [](const Tensor &gradient) { return gradient.get() && has_nan(gradient.get()); })) {
        throw Failed(OF_NAN,
                     "[FXA403] gradients are NaN, which may come of the results that have no gradient: the artifact cannot tell\n"
                     "  to do: make all results part of the loss, or an artifact of those that are used");
    }
}

}  // namespace

std::vector<Tensor> backward(const FxaPass &pass, void *const *gradients) {
    const FxaEntryPoint &entry = *pass.entry;
    Backward &of = *entry.backward;
    NoGrad off;
    check_saved(pass);
    std::vector<Handle> given = by_result(entry, gradients);
    std::vector<Tensor> made(of.gradients.size()), tangents, found;
    std::set<size_t> missing;
    for (size_t i = 0; i < of.tangents.size(); i++) {
        Handle gradient = given[of.tangents[i].result];
        if (!gradient) missing.insert(i);
        tangents.push_back(arrived(of.tangents[i], gradient, pass.symbols));
    }
    if (missing.size() == of.tangents.size()) return made;
    std::vector<Value> leaves;
    for (int64_t symbol : pass.symbols) leaves.push_back({nullptr, symbol});
    for (const Tensor &saved : pass.saved) leaves.push_back({saved.get(), 0});
    for (const Tensor &tangent : tangents) leaves.push_back({tangent.get(), 0});
    std::vector<Handle> handles(size_t(of.graph.contract.result_count) + 1);
    std::vector<int64_t> numbers(handles.size());
    FxaError failed;
    if (fxa_graph_run(&of.graph, leaves.data(), handles.data(), numbers.data(), &failed)) throw Failed(failed);
    for (Handle handle : handles) found.emplace_back(handle);
    std::set<int64_t> handed;
    for (size_t i = 0; i < of.gradients.size(); i++) {
        const Gradient &gradient = of.gradients[i];
        bool is_there = gradient.depends.empty() || !std::includes(missing.begin(), missing.end(), gradient.depends.begin(), gradient.depends.end());
        if (!is_there) continue;
        Handle tensor = gradient.place >= 0 ? found[size_t(gradient.place)].get() : leaves[size_t(-1 - gradient.place)].tensor;
        bool is_shared = gradient.place < 0 || !handed.insert(gradient.place).second;
        made[i] = is_shared ? clone(tensor) : another(tensor);  // whoever scales one in place scales no other
    }
    check_nan(of, missing, made);
    return made;
}

}  // namespace fxa
