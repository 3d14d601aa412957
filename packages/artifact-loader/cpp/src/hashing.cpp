#include "hashing.hpp"

#include <algorithm>

extern "C" {
#include "../../csrc/core/blake3.h"
#include "../../csrc/core/checksum.h"
#include "../../csrc/core/target.h"
}

namespace fxa {
namespace {

constexpr size_t PIECE = 8 << 20;

std::string checksum_of(const char *data, size_t size) {
    uint64_t made = fxa_checksum(*fxa_cpu_levels(), data, size);
    std::string text;
    for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[made >> shift & 15];
    return text;
}

}  // namespace

std::string digest_of(const char *data, size_t size) {
    uint8_t made[FXA_DIGEST_BYTES];
    if (!fxa_blake3(*fxa_cpu_levels(), data, size, made)) throw Refused("FXA102", "out of memory");
    std::string text;
    for (uint8_t byte : made) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

bool fits(const char *data, size_t size, const Json &stated, bool has_checksums) {
    const auto &digests = stated.list();
    if (digests.size() != std::max<size_t>(1, (size + PIECE - 1) / PIECE)) return false;
    for (size_t i = 0; i < digests.size(); i++) {
        size_t length = std::min(PIECE, size - i * PIECE);
        if (digests[i].string() != (has_checksums ? checksum_of : digest_of)(data + i * PIECE, length)) return false;
    }
    return true;
}

}  // namespace fxa
