"""The top of every C++ file: integer types, vector forms of math functions, and what C++ lacks of torch's arithmetic."""

from __future__ import annotations

from inductor_codegen.codegen.cpp.operations import VECTOR_FUNCTIONS

_BINARY = frozenset({"pow", "atan2"})

_TYPES = """\
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
"""

_SCALAR_FUNCTIONS = """\
extern "C" {
float lgammaf(float) noexcept; double lgamma(double) noexcept;
float fmodf(float, float) noexcept; double fmod(double, double) noexcept;
}
"""

_ARITHMETIC = """\
// Larger and smaller of two numbers; NaN if either is.
template <typename T> static inline T maximum(T a, T b) { return (a > b || a != a) ? a : b; }
template <typename T> static inline T minimum(T a, T b) { return (a < b || a != a) ? a : b; }
template <typename T> static inline T sign(T a) { return (T)((T(0) < a) - (a < T(0))); }

// Division and remainder rounded down, as Python has them; division by an integer zero sets a bit of bad.
static inline float floor_remainder(float a, float b) {
  float r = fmodf(a, b);
  return (r != 0 && ((b < 0) != (r < 0))) ? r + b : r;
}
static inline double floor_remainder(double a, double b) {
  double r = fmod(a, b);
  return (r != 0 && ((b < 0) != (r < 0))) ? r + b : r;
}
static inline float fmod(float a, float b) { return fmodf(a, b); }
static inline float trunc_div(float a, float b) { return __builtin_truncf(a / b); }
static inline double trunc_div(double a, double b) { return __builtin_trunc(a / b); }
template <typename T> static inline T floor_div_floating(T a, T b, T m) {
  if (b == 0) return a / b;
  T q = (a - m) / b;
  if (m != 0 && ((b < 0) != (m < 0))) q -= 1;
  if (q == 0) return __builtin_copysign(T(0), a / b);
  T f = (T)__builtin_floor((double)q);
  return (q - f > T(0.5)) ? f + 1 : f;
}
static inline float floor_div(float a, float b) { return floor_div_floating(a, b, fmodf(a, b)); }
static inline double floor_div(double a, double b) { return floor_div_floating(a, b, fmod(a, b)); }
template <typename T> static inline T divisor_integer(T b, int32_t& bad) {
  if (b == 0) bad |= 2;
  return b == 0 ? T(1) : b;
}
template <typename T> static inline T trunc_div_integer(T a, T b, int32_t& bad) {
  b = divisor_integer(b, bad);
  return b == T(-1) ? T(0) - a : a / b;
}
template <typename T> static inline T fmod_integer(T a, T b, int32_t& bad) {
  b = divisor_integer(b, bad);
  return b == T(-1) ? T(0) : a % b;
}
template <typename T> static inline T floor_div_integer(T a, T b, int32_t& bad) {
  b = divisor_integer(b, bad);
  if (b == T(-1)) return T(0) - a;
  return a / b - (a % b != 0 && ((a < 0) != (b < 0)));
}
template <typename T> static inline T remainder_integer(T a, T b, int32_t& bad) {
  b = divisor_integer(b, bad);
  if (b == T(-1)) return T(0);
  T r = a % b;
  return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;
}
template <typename T> static inline T power_integer(T base, T exponent) {
  if (exponent < 0) return base == 1 ? T(1) : base == T(-1) ? ((exponent & 1) ? T(-1) : T(1)) : T(0);
  T result = 1;
  for (; exponent; exponent >>= 1, base *= base) if (exponent & 1) result *= base;
  return result;
}
static inline int64_t size_floordiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && ((a < 0) != (b < 0))); }
static inline int64_t size_mod(int64_t a, int64_t b) { int64_t r = a % b; return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r; }
static inline int64_t size_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t size_max(int64_t a, int64_t b) { return a > b ? a : b; }

// An index from data: negative ones count from the end; one out of range sets a bit of bad and becomes 0.
static inline int64_t wrap_index(int64_t i, int64_t n, int32_t& bad) {
  i += i < 0 ? n : 0;
  int32_t outside = (uint64_t)i >= (uint64_t)n;
  bad |= outside;
  return outside ? 0 : i;
}
"""

_HALVES = """\
// 16-bit floats: widening is exact, narrowing rounds to nearest, ties to even.
static inline float float_of_bits(uint32_t bits) { float f; __builtin_memcpy(&f, &bits, 4); return f; }
static inline uint32_t bits_of_float(float f) { uint32_t bits; __builtin_memcpy(&bits, &f, 4); return bits; }
static inline float float_from_bfloat16(uint16_t b) { return float_of_bits((uint32_t)b << 16); }
static inline uint16_t bfloat16_from_float(float f) {
  uint32_t bits = bits_of_float(f);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (uint16_t)(f != f ? 0x7fc0u : rounded);
}
static inline float float_from_half(uint16_t h) {
  uint32_t magnitude = (uint32_t)(h & 0x7fffu) << 13;
  float scaled = float_of_bits(magnitude) * 0x1p112f;
  float special = float_of_bits(magnitude | 0x7f800000u);
  float positive = (h & 0x7c00u) == 0x7c00u ? special : scaled;
  return float_of_bits(bits_of_float(positive) | ((uint32_t)(h & 0x8000u) << 16));
}
static inline uint16_t half_from_float(float f) {
  uint32_t bits = bits_of_float(f);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  uint32_t small = bits_of_float(float_of_bits(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t result = magnitude < 0x38800000u ? small : normal;
  result = magnitude >= 0x477ff000u ? 0x7c00u : result;
  result = magnitude > 0x7f800000u ? 0x7e00u : result;
  return (uint16_t)(sign | result);
}
"""


def _vector_declarations() -> str:
    lines = ['extern "C" {', '#define VECTOR __attribute__((simd("notinbranch")))']
    for name in sorted(VECTOR_FUNCTIONS):
        double = "double, double" if name in _BINARY else "double"
        single = double.replace("double", "float")
        lines.append(f"VECTOR double {name}({double}) noexcept; VECTOR float {name}f({single}) noexcept;")
    return "\n".join([*lines, "}", ""])


PREAMBLE = "\n".join([_TYPES, _vector_declarations(), _SCALAR_FUNCTIONS, _ARITHMETIC, _HALVES])
"""C++ text that the kernels of ``emit_kernel`` need before them. Includes no header."""
