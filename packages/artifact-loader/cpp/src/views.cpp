#include "views.hpp"

#include <algorithm>
#include <sstream>

#include "dispatcher.hpp"

namespace fxa {
namespace {

struct Operator {
    const char *name;
    const char *parameters;  // name:kind, and =default; kinds are integer, optional integer, list of integers, dtype (its number)
    bool several = false;    // it gives a list of tensors
};

// What torch's schemas say of operators whose results are views.
constexpr Operator PARAMETERS[] = {
    {"aten::_conj", ""},
    {"aten::_neg_view", ""},
    {"aten::_reshape_alias", "size:l stride:l"},
    {"aten::adjoint", ""},
    {"aten::alias", ""},
    {"aten::as_strided", "size:l stride:l storage_offset:o=none"},
    {"aten::broadcast_to", "size:l"},
    {"aten::chunk", "chunks:i dim:i=0", true},
    {"aten::conj", ""},
    {"aten::detach", ""},
    {"aten::diagonal", "offset:i=0 dim1:i=0 dim2:i=1"},
    {"aten::expand", "size:l implicit:i=0"},
    {"aten::flatten.using_ints", "start_dim:i=0 end_dim:i=-1"},
    {"aten::imag", ""},
    {"aten::linalg_diagonal", "offset:i=0 dim1:i=-2 dim2:i=-1"},
    {"aten::mH", ""},
    {"aten::mT", ""},
    {"aten::matrix_H", ""},
    {"aten::movedim.int", "source:i destination:i"},
    {"aten::movedim.intlist", "source:l destination:l"},
    {"aten::narrow", "dim:i start:i length:i"},
    {"aten::numpy_T", ""},
    {"aten::permute", "dims:l"},
    {"aten::ravel", ""},
    {"aten::real", ""},
    {"aten::reshape", "shape:l"},
    {"aten::select.int", "dim:i index:i"},
    {"aten::slice.Tensor", "dim:i=0 start:o=none end:o=none step:i=1"},
    {"aten::split.Tensor", "split_size:i dim:i=0", true},
    {"aten::split.sizes", "split_size:l dim:i=0", true},
    {"aten::split_with_sizes", "split_sizes:l dim:i=0", true},
    {"aten::squeeze", ""},
    {"aten::squeeze.dim", "dim:i"},
    {"aten::squeeze.dims", "dim:l"},
    {"aten::swapaxes", "axis0:i axis1:i"},
    {"aten::swapdims", "dim0:i dim1:i"},
    {"aten::t", ""},
    {"aten::tensor_split.indices", "indices:l dim:i=0", true},
    {"aten::tensor_split.sections", "sections:i dim:i=0", true},
    {"aten::transpose.int", "dim0:i dim1:i"},
    {"aten::unbind.int", "dim:i=0", true},
    {"aten::unflatten.int", "dim:i sizes:l"},
    {"aten::unfold", "dimension:i size:i step:i"},
    {"aten::unsqueeze", "dim:i"},
    {"aten::view", "size:l"},
    {"aten::view.dtype", "dtype:d"},
    {"aten::view_as_complex", ""},
    {"aten::view_as_real", ""},
};

using Word = uint64_t;  // a StableIValue
using List = void *;

Word list_of(const std::vector<Expression> &numbers, const Sizes &symbols) {
    List made = nullptr;
    check_torch(dispatcher.new_list(numbers.size(), &made));
    for (const Expression &number : numbers) check_torch(dispatcher.push(made, Word(number.value(symbols))));
    return Word(made);
}

// torch takes what is made here: tensors, lists, and what optional numbers lie in.
Word word_of(const Argument &argument, const Sizes &symbols) {
    if (argument.kind == 'l') return list_of(argument.numbers, symbols);
    if (argument.kind == 'o') return argument.numbers.empty() ? 0 : Word(new Word(Word(argument.numbers[0].value(symbols))));
    return Word(argument.numbers[0].value(symbols));
}

Tensor one_of(List list, int64_t index) {
    size_t count = 0;
    Tensor made;
    int32_t bad = dispatcher.size(list, &count);
    for (size_t i = 0; !bad && i < count; i++) {
        Word word = 0;
        bad = dispatcher.item(list, i, &word);
        if (bad) break;
        Tensor item{Handle(word)};
        if (int64_t(i) == index) made = std::move(item);
    }
    dispatcher.delete_list(list);
    check_torch(bad);
    if (!made.get()) throw Refused("FXA108", "a view of a result is not among those that its operator gives");
    return made;
}

// ---- the table ----

const Operator &operator_named(const std::string &name) {
    for (const Operator &known : PARAMETERS) {
        if (name == known.name) return known;
    }
    throw Refused("FXA110", "a result is a view by " + name + ", which is made in Python");
}

int64_t dtype_number(const Json &described) {
    const Dtype *dtype = dtype_named(described["dtype"].string());
    if (!dtype) throw std::invalid_argument("a view of another dtype");
    return dtype->number;
}

Expression constant(int64_t number) {
    Json words, zero, value;
    words.kind = Json::List;
    zero.kind = value.kind = Json::Int;
    value.number = number;
    words.items = {zero, value};
    return Expression(words, 0);
}

Expression expression(const Json &described, size_t symbols) {
    if (described.kind == Json::Object) return Expression(described["expr"], symbols);
    return constant(described.kind == Json::Bool ? described.number : described.integer());
}

Argument argument_of(char kind, const Json &described, size_t symbols) {
    Argument made{kind, {}};
    if (kind == 'd') {
        made.numbers.push_back(constant(dtype_number(described)));
    } else if (kind == 'l') {
        for (const Json &item : described.list()) made.numbers.push_back(expression(item, symbols));
    } else if (kind != 'o' || described.kind != Json::Null) {
        made.numbers.push_back(expression(described, symbols));
    }
    return made;
}

}  // namespace

// ---- expressions ----

Expression::Expression(const Json &words, size_t symbols) : words_(integers(words)) {
    int64_t depth = 0;
    for (size_t i = 0; i < words_.size(); i++) {
        int64_t word = words_[i];
        if (word == 0 || word == 1) {
            if (++i == words_.size() || (word == 1 && (words_[i] < 0 || size_t(words_[i]) >= symbols))) throw std::invalid_argument("an expression");
            depth++;
        } else if (word < 2 || word > 7 || --depth < 1) {
            throw std::invalid_argument("an expression");
        }
    }
    if (depth != 1) throw std::invalid_argument("an expression");
}

int64_t Expression::value(const Sizes &symbols) const {
    Sizes stack;
    for (size_t i = 0; i < words_.size(); i++) {
        if (words_[i] < 2) {
            int64_t number = words_[i + 1];
            stack.push_back(words_[i++] ? symbols[size_t(number)] : number);
        } else {
            int64_t rhs = stack.back();
            stack.pop_back();
            stack.back() = fxa_apply(words_[i], stack.back(), rhs);
        }
    }
    return stack.back();
}

// ---- steps ----

ViewStep::ViewStep(const Json &described, size_t symbols) {
    const auto &parts = described.list();
    std::string full = parts.at(0).string();
    if (size_t end = full.rfind(".default"); end != std::string::npos && end + 8 == full.size()) full.resize(end);
    const Operator &known = operator_named(full);
    name_ = full.substr(0, full.find('.'));
    overload_ = full.find('.') == std::string::npos ? "" : full.substr(full.find('.') + 1);
    const auto &given = parts.at(1).list();
    const Json &named = parts.at(2);
    size_t position = 0, used = 0;
    std::istringstream parameters(known.parameters);
    for (std::string parameter; parameters >> parameter; position++) {
        size_t colon = parameter.find(':'), equals = parameter.find('=');
        const Json *value = position < given.size() ? &given[position] : named.find(parameter.substr(0, colon));
        used += value && position >= given.size();
        char kind = parameter[colon + 1];
        if (value) {
            arguments_.push_back(argument_of(kind, *value, symbols));
        } else if (equals == std::string::npos) {
            throw std::invalid_argument("a view without " + parameter);
        } else {
            Argument left_out{kind, {}};
            if (kind != 'o') left_out.numbers.push_back(constant(std::stoll(parameter.substr(equals + 1))));
            arguments_.push_back(left_out);
        }
    }
    if (given.size() > position || used != named.members.size()) throw std::invalid_argument("a view with other arguments");
    bool has_index = parts.at(3).kind != Json::Null;
    if (has_index != known.several) throw std::invalid_argument("a view among several");
    if (has_index) index_ = parts[3].integer();
    no_grad_ = parts.size() > 4;
}

Tensor ViewStep::apply(Handle of, const Sizes &symbols) const {
    std::vector<Word> stack(std::max<size_t>(1, arguments_.size() + 1));
    Handle self = nullptr;
    check_torch(torch_functions.new_tensor_handle(of, &self));
    stack[0] = Word(self);
    for (size_t i = 0; i < arguments_.size(); i++) stack[i + 1] = word_of(arguments_[i], symbols);
    bool stops = no_grad_ && torch_functions.grad_mode_is_enabled();
    if (stops) torch_functions.grad_mode_set_enabled(false);
    int32_t bad = dispatcher.call(name_.c_str(), overload_.c_str(), stack.data(), dispatcher.version);
    if (stops) torch_functions.grad_mode_set_enabled(true);
    check_torch(bad);
    return index_ < 0 ? Tensor(Handle(stack[0])) : one_of(List(stack[0]), index_);
}

}  // namespace fxa
