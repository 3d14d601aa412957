"""The top of every C++ file: integer types, the math functions in use, and what C++ lacks of torch's arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from inductor_codegen.codegen.cpp.functions.single_functions import EXPONENTIALS, LOGARITHMS
from inductor_codegen.codegen.cpp.functions.tile_product import TILE_PRODUCT
from inductor_codegen.codegen.cpp.functions.transpose import TRANSPOSE
from inductor_codegen.codegen.cpp.text.math_functions import math_functions

_TYPES = """\
#define INLINE static inline __attribute__((always_inline))
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define SHORT_VECTOR_BYTES (VECTOR_BYTES < 32 ? VECTOR_BYTES : 32)
// An integer that was a float. Without traps gcc makes (float)(int)x a rounding of floats: -0.5 became -0.0, not 0.0.
#if defined(__clang__)
#define TRUNCATED(x) (x)
#elif __GNUC__ >= 12
#define TRUNCATED(x) __builtin_assoc_barrier(x)
#else
#define TRUNCATED(x) __extension__({ __typeof__(x) i = (x); __asm__("" : "+r"(i)); i; })
#endif
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
// An integer of a float that the compiler may know: out of range it takes the nearest integer, x86 the lowest.
template <typename I, typename T> INLINE I integer_in_range(T x) {
#if defined(__x86_64__)
  const T bound = (T)((uint64_t)1 << (sizeof(I) * 8 - 1));
  return x >= -bound && x < bound ? (I)x : (I)((uint64_t)1 << (sizeof(I) * 8 - 1));
#else
  return (I)x;
#endif
}
"""

_ARITHMETIC = """\
// The sums of a part of many rows into their totals, and on to the next part: one function for all kernels of a file.
template <typename T> static __attribute__((noinline)) void join_part(double* totals, T* sums, int64_t rows) {
#pragma omp simd
  for (int64_t i = 0; i < rows; ++i) totals[i] += sums[i];
  __builtin_memset(sums, 0, sizeof(T) * rows);
}

// Larger and smaller of two numbers; NaN if either is.
template <typename T> INLINE T maximum(T a, T b) { return (a > b || a != a) ? a : b; }
template <typename T> INLINE T minimum(T a, T b) { return (a < b || a != a) ? a : b; }
template <typename T> INLINE T sign(T a) { return (T)((T(0) < a) - (a < T(0))); }

// Division and remainder rounded down, as Python has them; division by an integer zero sets a bit of bad.
template <typename T> INLINE T floor_remainder(T a, T b, T m) {
  return (m != 0 && ((b < 0) != (m < 0))) ? m + b : m;
}
INLINE float trunc_div(float a, float b) { return __builtin_truncf(a / b); }
INLINE double trunc_div(double a, double b) { return __builtin_trunc(a / b); }
INLINE float rounded_down(float q) { return __builtin_floorf(q); }
INLINE double rounded_down(double q) { return __builtin_floor(q); }
INLINE float with_sign(float a, float b) { return __builtin_copysignf(a, b); }
INLINE double with_sign(double a, double b) { return __builtin_copysign(a, b); }
template <typename T> INLINE T floor_div_floating(T a, T b, T m) {
  T q = (a - m) / b;
  q = m != 0 && ((b < 0) != (m < 0)) ? q - 1 : q;
  T f = rounded_down(q);
  f = q - f > T(0.5) ? f + 1 : f;
  f = q == 0 ? with_sign(T(0), a / b) : f;
  return b == 0 ? a / b : f;
}
template <typename T> INLINE T divisor_integer(T b, int32_t& bad) {
  if (b == 0) bad |= 2;
  return b == 0 ? T(1) : b;
}
template <typename T> INLINE bool is_minus_one(T b) { return T(-1) < T(0) && b == T(-1); }
template <typename T> INLINE T trunc_div_integer(T a, T b, int32_t& bad) {
  b = divisor_integer(b, bad);
  return is_minus_one(b) ? T(0) - a : a / b;
}
template <typename T> INLINE T fmod_integer(T a, T b, int32_t& bad) {
  b = divisor_integer(b, bad);
  return is_minus_one(b) ? T(0) : a % b;
}
template <typename T> INLINE T floor_div_integer(T a, T b, int32_t& bad) {
  b = divisor_integer(b, bad);
  if (is_minus_one(b)) return T(0) - a;
  return a / b - (a % b != 0 && ((a < 0) != (b < 0)));
}
template <typename T> INLINE T remainder_integer(T a, T b, int32_t& bad) {
  b = divisor_integer(b, bad);
  if (is_minus_one(b)) return T(0);
  T r = a % b;
  return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;
}
// By less than no bit, or by all of them or more, nothing is left but the sign: C++ does not say what that gives.
template <typename T> INLINE T shift_left(T a, T b) {
  return b >= 0 && b < T(8 * sizeof(T)) ? T(a << b) : T(0);
}
template <typename T> INLINE T shift_right(T a, T b) {
  return b >= 0 && b < T(8 * sizeof(T)) ? T(a >> b) : a < 0 ? T(-1) : T(0);
}
template <typename T> INLINE T power_integer(T base, T exponent) {
  if (exponent < 0) return base == 1 ? T(1) : base == T(-1) ? ((exponent & 1) ? T(-1) : T(1)) : T(0);
  T result = 1;
  for (; exponent; exponent >>= 1, base *= base) if (exponent & 1) result *= base;
  return result;
}
INLINE int64_t size_floordiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && ((a < 0) != (b < 0))); }
INLINE int64_t size_mod(int64_t a, int64_t b) {
  int64_t r = a % b;
  return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;
}
INLINE int64_t size_min(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t size_max(int64_t a, int64_t b) { return a > b ? a : b; }

// An index from data: one out of range sets a bit of bad and becomes 0. Wrapped ones count from the end if negative.
INLINE int64_t check_index(int64_t i, int64_t n, int32_t& bad) {
  int32_t outside = (uint64_t)i >= (uint64_t)n;
  bad |= outside;
  return outside ? 0 : i;
}
INLINE int64_t wrap_index(int64_t i, int64_t n, int32_t& bad) {
  return check_index(i + (i < 0 ? n : 0), n, bad);
}
"""

_HALVES = """\
// 16-bit floats: widening is exact, narrowing rounds to nearest, ties to even.
INLINE float float_from_bfloat16(uint16_t b) { return float_of_bits((uint32_t)b << 16); }
INLINE uint16_t bfloat16_from_float(float f) {
  uint32_t bits = bits_of_float(f);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (uint16_t)(f != f ? 0x7fc0u : rounded);
}
INLINE float bfloat16_rounded(float f) { return float_from_bfloat16(bfloat16_from_float(f)); }
// The same of what is no NaN with a bit set among the lower 16.
INLINE uint16_t bfloat16_bits_plainly(float f) {
  uint32_t bits = bits_of_float(f);
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
INLINE uint16_t upper_bits(float f) { return (uint16_t)(bits_of_float(f) >> 16); }
INLINE float bfloat16_rounded_plainly(float f) { return float_from_bfloat16(bfloat16_bits_plainly(f)); }
INLINE float float_from_half(uint16_t h) {
  uint32_t magnitude = (uint32_t)(h & 0x7fffu) << 13;
  float scaled = float_of_bits(magnitude) * 0x1p112f;
  float special = float_of_bits(magnitude | 0x7f800000u);
  float positive = (h & 0x7c00u) == 0x7c00u ? special : scaled;
  return float_of_bits(bits_of_float(positive) | ((uint32_t)(h & 0x8000u) << 16));
}
INLINE uint16_t half_from_float(float f) {
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
// The float16 next to f, as float: adding c and taking it away leaves the multiples of the last of 11 bits.
INLINE float half_rounded(float f) {
  float a = __builtin_fabsf(f);
  uint32_t exponent = bits_of_float(a) & 0x7f800000u;
  float c = float_of_bits((exponent < 0x38800000u ? 0x38800000u : exponent) + 0x06800000u);
  float r = (a + c) - c;
  r = a >= 65520.0f ? __builtin_inff() : r;
  return __builtin_copysignf(r, f);
}
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#define HALVES 16
#define WIDENED(h) (floats) __builtin_ia32_vcvtph2ps512_mask(h, (floats){}, (uint16_t)-1, 4)
#define NARROWED(f) __builtin_ia32_vcvtps2ph512_mask(f, 0, (halves){}, (uint16_t)-1)
#elif defined(__F16C__) && defined(__GNUC__) && !defined(__clang__)
#define HALVES 8
#define WIDENED(h) __builtin_ia32_vcvtph2ps256(h)
#define NARROWED(f) __builtin_ia32_vcvtps2ph256(f, 0)
#endif
#ifdef HALVES
typedef float floats __attribute__((vector_size(4 * HALVES)));
typedef int16_t halves __attribute__((vector_size(2 * HALVES)));
INLINE void widen_vector(float* to, const uint16_t* from, int64_t n) {
  halves h = {};
  __builtin_memcpy(&h, from, 2 * n);
  floats f = WIDENED(h);
  __builtin_memcpy(to, &f, 4 * n);
}
INLINE void narrow_vector(uint16_t* to, const float* from, int64_t n) {
  floats f = {};
  __builtin_memcpy(&f, from, 4 * n);
  halves h = NARROWED(f);
  __builtin_memcpy(to, &h, 2 * n);
}
static void widen_halves(float* to, const uint16_t* from, int64_t n) {
  int64_t i = 0;
  for (; i + HALVES <= n; i += HALVES) widen_vector(to + i, from + i, HALVES);
  if (i < n && n >= HALVES) { // some once more: copies of any length are calls
    widen_vector(to + n - HALVES, from + n - HALVES, HALVES);
  } else if (i < n) {
    widen_vector(to, from, n);
  }
}
static void narrow_halves(uint16_t* to, const float* from, int64_t n) {
  int64_t i = 0;
  for (; i + HALVES <= n; i += HALVES) narrow_vector(to + i, from + i, HALVES);
  if (i < n && n >= HALVES) { // some once more: copies of any length are calls
    narrow_vector(to + n - HALVES, from + n - HALVES, HALVES);
  } else if (i < n) {
    narrow_vector(to, from, n);
  }
}
#else
static void widen_halves(float* to, const uint16_t* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = float_from_half(from[i]);
}
static void narrow_halves(uint16_t* to, const float* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = half_from_float(from[i]);
}
#endif
"""


_PREAMBLE = "\n".join([_TYPES, _ARITHMETIC, EXPONENTIALS])
_HALF_WORDS = ("half", "halves", "bfloat16", "upper_bits")
_LOG_WORDS = ("single_log", "wide_logf")


def with_preamble(kernels: Sequence[str]) -> str:
    """A C++ file: what the texts of ``emit_kernel`` need before them, and the texts. Includes no header."""
    wanted = (
        (_HALF_WORDS, _HALVES),
        (("tile_product",), TILE_PRODUCT),
        (("transpose_block",), TRANSPOSE),
    )
    parts = [part for words, part in wanted if any(word in text for text in kernels for word in words)]
    logarithms = [LOGARITHMS] if any(word in text for text in kernels for word in _LOG_WORDS) else []
    return "\n".join([_PREAMBLE, *logarithms, math_functions(kernels), *parts, *kernels])
