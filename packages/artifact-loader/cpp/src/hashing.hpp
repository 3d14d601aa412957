// Hashes as the manifest and the program state them.
#pragma once

#include <string>

#include "json.hpp"

namespace fxa {

// BLAKE3, in hexadecimal digits.
std::string digest_of(const char *data, size_t size);

// Whether the pieces of a content have these hashes, which are checksums or BLAKE3.
bool fits(const char *data, size_t size, const Json &stated, bool has_checksums);

}  // namespace fxa
