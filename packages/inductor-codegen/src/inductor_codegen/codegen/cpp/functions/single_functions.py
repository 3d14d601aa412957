"""C++ text of functions of one float without branches or calls, so that loops that use them are vectorised.

Each reduces its argument and evaluates a polynomial, fitted to float64 values for the least relative error (iterated
weighted least squares at Chebyshev's points). Distances from float64 over all magnitudes, in units in the last place
(with fused multiply-adds; ``tests/codegen/cpp/functions/test_single_functions.py`` holds the bounds):

    exp 1.0    tanh 1.5    erf 1.7    log 0.9    log10 1.6    log1p 0.95

glibc's vector forms are up to 2.4 (tanh) to 3.9 (log) units off, torch's own kernels 0.5 to 0.9.
"""

from __future__ import annotations

EXPONENTIALS = """\
INLINE double double_of_bits(int64_t bits) { double f; __builtin_memcpy(&f, &bits, 8); return f; }
INLINE float float_of_bits(uint32_t bits) { float f; __builtin_memcpy(&f, &bits, 4); return f; }
INLINE uint32_t bits_of_float(float f) { uint32_t bits; __builtin_memcpy(&bits, &f, 4); return bits; }
#ifdef __FMA__
#define MULTIPLY_ADD(a, b, c) __builtin_fmaf(a, b, c)
#define MULTIPLY_ADD_DOUBLE(a, b, c) __builtin_fma(a, b, c)
#else
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#define MULTIPLY_ADD_DOUBLE(a, b, c) ((a) * (b) + (c))
#endif
// 12582912 is 1.5 * 2^23: adding it leaves the nearest integer n to x / ln 2 in the low bits; r = x - n ln 2.
INLINE float shifted_exponent(float x) { return MULTIPLY_ADD(x, 1.44269504f, 12582912.0f); }
INLINE float reduced(float x, float n) { return MULTIPLY_ADD(n, 2.12194440e-4f, MULTIPLY_ADD(n, -0.693359375f, x)); }
INLINE float power_of_two(float shifted, uint32_t bias) {
  return float_of_bits((bits_of_float(shifted) - 0x4b400000u + bias) << 23);
}
INLINE float single_exp(float x) {
  x = 89.0f < x ? 89.0f : x;
  x = -87.4f > x ? -87.4f : x;
  float shifted = shifted_exponent(x);
  float r = reduced(x, shifted - 12582912.0f);
  float p = 2.790107624605298e-3f;  // twice e^r, times half of 2^n, which has an exponent at both ends
  p = MULTIPLY_ADD(p, r, 1.6737835481762886e-2f);
  p = MULTIPLY_ADD(p, r, 8.333241194486618e-2f);
  p = MULTIPLY_ADD(p, r, 3.33330363035202e-1f);
  p = MULTIPLY_ADD(p, r, 1.0f);
  p = MULTIPLY_ADD(p, r, 2.0f);
  p = MULTIPLY_ADD(p, r, 2.0f);
  return p * power_of_two(shifted, 126u);
}
// tanh and erf: an odd polynomial near 0, elsewhere 1 less something small, in which 2^y has the digits that count.
INLINE float single_tanh(float x) {
  float a = __builtin_fabsf(x), z = x * x;
  float p = -0.00570497848f;  // (tanh(a) - a) / a^3 for a < 0.625
  p = MULTIPLY_ADD(p, z, 0.0206390787f);
  p = MULTIPLY_ADD(p, z, -0.0537397116f);
  p = MULTIPLY_ADD(p, z, 0.133314416f);
  p = MULTIPLY_ADD(p, z, -0.333332807f);
  float near = MULTIPLY_ADD(p * z, a, a);
  float t = 10.0f < a ? 10.0f : a;  // e^2t = 2^(n + r)
  float shifted = MULTIPLY_ADD(t, 2.88539004f, 12582912.0f);
  float r = MULTIPLY_ADD(t, 2.88539004f, -(shifted - 12582912.0f));
  float q = 0.000153533605f;  // 2^r
  q = MULTIPLY_ADD(q, r, 0.0013398875f);
  q = MULTIPLY_ADD(q, r, 0.00961843692f);
  q = MULTIPLY_ADD(q, r, 0.0555033237f);
  q = MULTIPLY_ADD(q, r, 0.240226477f);
  q = MULTIPLY_ADD(q, r, 0.693147182f);
  q = MULTIPLY_ADD(q, r, 1.0f);
  float far = 1.0f - 2.0f / (q * power_of_two(shifted, 127u) + 1.0f);
  return __builtin_copysignf(a < 0.625f ? near : far, x);
}
INLINE float single_erf(float x) {
  float a = __builtin_fabsf(x), z = x * x;
  float p = -0.000620325271f;  // erf(a) / a - 1 for a < 0.875
  p = MULTIPLY_ADD(p, z, 0.00503218081f);
  p = MULTIPLY_ADD(p, z, -0.0267914627f);
  p = MULTIPLY_ADD(p, z, 0.112824552f);
  p = MULTIPLY_ADD(p, z, -0.376125515f);
  p = MULTIPLY_ADD(p, z, 0.128379151f);
  float near = MULTIPLY_ADD(p, a, a);
  float t = 4.0f < a ? 4.0f : a;
  float g = 0.000310505304f;  // log2(erfc(t)) / t for 0.875 <= t <= 4
  g = MULTIPLY_ADD(g, t, -0.00465287967f);
  g = MULTIPLY_ADD(g, t, 0.0330700353f);
  g = MULTIPLY_ADD(g, t, -0.151933283f);
  g = MULTIPLY_ADD(g, t, -0.917092979f);
  g = MULTIPLY_ADD(g, t, -1.62811816f);
  float y = g * t, shifted = y + 12582912.0f, r = y - (shifted - 12582912.0f);
  float q = 0.00132647238f;  // 2^r, to 22 bits
  q = MULTIPLY_ADD(q, r, 0.00967151299f);
  q = MULTIPLY_ADD(q, r, 0.0555073358f);
  q = MULTIPLY_ADD(q, r, 0.240222424f);
  q = MULTIPLY_ADD(q, r, 0.693147004f);
  q = MULTIPLY_ADD(q, r, 1.0f);
  float far = 1.0f - q * power_of_two(shifted, 127u);
  return __builtin_copysignf(a < 0.875f ? near : far, x);
}
"""

LOGARITHMS = """\
// x = 2^k m with 2/3 <= m < 4/3; log(m) = f + low for f = m - 1. Denormal numbers are scaled first.
struct Logarithm { float k, f, low; };
INLINE Logarithm logarithm(float x) {
  bool tiny = x < 1.17549435e-38f;
  uint32_t bits = bits_of_float(tiny ? x * 8388608.0f : x);
  int32_t k = (int32_t)(bits - 0x3f2aaaabu) >> 23;
  float f = float_of_bits(bits - ((uint32_t)k << 23)) - 1.0f;
  float p = -0.131916463f;
  p = MULTIPLY_ADD(p, f, 0.139624506f);
  p = MULTIPLY_ADD(p, f, -0.121151261f);
  p = MULTIPLY_ADD(p, f, 0.140109196f);
  p = MULTIPLY_ADD(p, f, -0.166854665f);
  p = MULTIPLY_ADD(p, f, 0.200100437f);
  p = MULTIPLY_ADD(p, f, -0.249996886f);
  p = MULTIPLY_ADD(p, f, 0.333332241f);
  return {(float)k - (tiny ? 23.0f : 0.0f), f, f * f * MULTIPLY_ADD(p, f, -0.5f)};
}
INLINE float where_defined(float x, float log) {
  log = x > 3.40282347e38f ? x : log;
  log = x < 0.0f ? __builtin_nanf("") : log;
  log = x == 0.0f ? -__builtin_inff() : log;
  return x != x ? x : log;
}
INLINE float single_log(float x) {
  Logarithm l = logarithm(x);
  float rest = l.f + MULTIPLY_ADD(l.k, -2.12194440e-4f, l.low);
  return where_defined(x, MULTIPLY_ADD(l.k, 0.693359375f, rest));
}
INLINE float single_log10(float x) {
  Logarithm l = logarithm(x);
  float s = l.f + l.low, lost = (l.f - s) + l.low;
  float rest = MULTIPLY_ADD(s, 7.00731903e-4f, MULTIPLY_ADD(lost, 0.43429448f, l.k * -1.05533602e-6f));
  return where_defined(x, MULTIPLY_ADD(l.k, 0.301031051f, MULTIPLY_ADD(s, 0.43359375f, rest)));
}
INLINE float single_log1p(float x) {
  float u = 1.0f + x, lost = u > 1.70141183e38f ? 0.0f : x - (u - 1.0f);
  Logarithm l = logarithm(u);
  float rest = l.f + MULTIPLY_ADD(l.k, -2.12194440e-4f, l.low + lost / u);
  float r = where_defined(u, MULTIPLY_ADD(l.k, 0.693359375f, rest));
  return u == 1.0f ? x : r;
}
"""
