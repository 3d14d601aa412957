// Views among results, which torch's own operators make again, so that they share memory as the program's results do.
#pragma once

#include <string>
#include <vector>

#include "tensor.hpp"

namespace fxa {

// An integer of the sizes in a call, in postfix: fxstack_artifact.program.sizes.
class Expression {
   public:
    // std::invalid_argument where it breaks the grammar or reads a symbol that is not there.
    Expression(const Json &words, size_t symbols);
    int64_t value(const Sizes &symbols) const;

   private:
    Sizes words_;
};

// What a view operator takes at one place: integers, or a list of them.
struct Argument {
    char kind;  // of PARAMETERS in views.cpp
    std::vector<Expression> numbers;
};

// One view operator of a chain.
class ViewStep {
   public:
    // Refused FXA110 for an operator that is not in the table of views; std::logic_error for arguments that it does not take.
    ViewStep(const Json &described, size_t symbols);
    Tensor apply(Handle of, const Sizes &symbols) const;

   private:
    std::string name_, overload_;
    std::vector<Argument> arguments_;
    int64_t index_ = -1;  // of an operator that gives several
    bool no_grad_ = false;
};

}  // namespace fxa
