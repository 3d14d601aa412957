#include "sha256.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace fxa {
namespace {

struct Constants {
    uint32_t rounds[64], start[8];

    // The first 32 bits of the fractions of the cube and square roots of the first primes.
    Constants() {
        int count = 0;
        for (int n = 2; count < 64; n++) {
            bool is_prime = true;
            for (int d = 2; d * d <= n; d++) is_prime = is_prime && n % d;
            if (!is_prime) continue;
            if (count < 8) start[count] = fraction(std::sqrt((long double)n));
            rounds[count++] = fraction(std::cbrt((long double)n));
        }
    }

    static uint32_t fraction(long double root) { return uint32_t((root - std::floor(root)) * 4294967296.0L); }
};

const Constants &constants() {
    static const Constants made;
    return made;
}

uint32_t rotated(uint32_t x, int n) { return x >> n | x << (32 - n); }

void block(uint32_t state[8], const unsigned char *data) {
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++) {
        w[i] = uint32_t(data[4 * i]) << 24 | data[4 * i + 1] << 16 | data[4 * i + 2] << 8 | data[4 * i + 3];
    }
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) + (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
    }
    std::memcpy(v, state, sizeof(v));
    const uint32_t *k = constants().rounds;
    for (int i = 0; i < 64; i++) {
        uint32_t e = v[4], a = v[0];
        uint32_t first = v[7] + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + k[i] + w[i];
        uint32_t second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        std::memmove(v + 1, v, 7 * sizeof(uint32_t));
        v[4] += first;
        v[0] = first + second;
    }
    for (int i = 0; i < 8; i++) state[i] += v[i];
}

}  // namespace

std::string sha256(const void *data, size_t size) {
    const auto *bytes = static_cast<const unsigned char *>(data);
    uint32_t state[8];
    std::memcpy(state, constants().start, sizeof(state));
    size_t whole = size / 64 * 64, rest = size - whole;
    for (size_t at = 0; at < whole; at += 64) block(state, bytes + at);
    unsigned char last[128] = {};
    if (rest) std::memcpy(last, bytes + whole, rest);
    last[rest] = 0x80;
    size_t length = rest < 56 ? 64 : 128;
    for (int i = 0; i < 8; i++) last[length - 1 - i] = (unsigned char)(uint64_t(size) * 8 >> (8 * i));
    for (size_t at = 0; at < length; at += 64) block(state, last + at);
    std::string made;
    for (uint32_t part : state) {
        for (int i = 28; i >= 0; i -= 4) made += "0123456789abcdef"[part >> i & 15];
    }
    return made;
}

}  // namespace fxa
