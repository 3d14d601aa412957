// The constants of a program, as fxstack_artifact.program.constants and .beside make them: bound by name, out of a file beside the
// artifact, or out of the artifact.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "archive.hpp"
#include "tensor.hpp"

namespace fxa {

// Where tensors of a safetensors content lie.
struct Stored {
    std::string dtype;  // in safetensors' words
    Sizes sizes;
    char *data;
    size_t bytes;
};

// The tensors that a caller passes, by the names of a model's parameters and buffers.
struct Bound {
    std::map<std::string, Handle> tensors;  // borrowed
    std::string file;                       // or those in a safetensors file; "" is none
};

// The constants of `program`, in order. Refused FXA201 where one is missing or another one than the program takes, FXA103 where what
// lies beside the artifact at `path` was changed.
std::vector<Tensor> constants(const Json &program, const Archive &archive, const std::string &path, const Bound &bound);

}  // namespace fxa
