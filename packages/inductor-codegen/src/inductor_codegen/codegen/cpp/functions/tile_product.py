"""The product of small matrices that kernels of attention are made of, as C++."""

from __future__ import annotations

TILE_PRODUCT = """\
typedef float vector_of_float __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef double vector_of_double __attribute__((vector_size(VECTOR_BYTES), may_alias));
template <typename T> struct VectorOf;
template <> struct VectorOf<float> { typedef vector_of_float type; };
template <> struct VectorOf<double> { typedef vector_of_double type; };
#if defined(__GNUC__) && !defined(__clang__) && defined(__AVX512F__)
INLINE vector_of_float plus_product(vector_of_float a, vector_of_float b, vector_of_float c) {
  return __builtin_ia32_vfmaddps512_mask(a, b, c, (uint16_t)-1, 4);
}
INLINE vector_of_double plus_product(vector_of_double a, vector_of_double b, vector_of_double c) {
  return __builtin_ia32_vfmaddpd512_mask(a, b, c, (uint8_t)-1, 4);
}
#elif defined(__GNUC__) && !defined(__clang__) && defined(__FMA__)
INLINE vector_of_float plus_product(vector_of_float a, vector_of_float b, vector_of_float c) {
  return __builtin_ia32_vfmaddps256(a, b, c);
}
INLINE vector_of_double plus_product(vector_of_double a, vector_of_double b, vector_of_double c) {
  return __builtin_ia32_vfmaddpd256(a, b, c);
}
#else
template <typename V> INLINE V plus_product(V a, V b, V c) { return a * b + c; }
#endif
// c[m][0..64) = (or +=) the sum over k of a[m * row + k * step] * b[k][0..64); rows are a multiple of four.
template <typename T, bool adds> static __attribute__((noinline)) void tile_product(
    T* c, const T* a, int64_t rows, int64_t row, int64_t step, const T* b, int64_t depth) {
  typedef typename VectorOf<T>::type V;
  constexpr int64_t lanes = sizeof(V) / sizeof(T);
  for (int64_t n = 0; n < 64; n += 4 * lanes) {
#if VECTOR_BYTES == 64
    for (int64_t m = 0; m < rows; m += 4) {
#else
    for (int64_t m = 0; m < rows; m += 2) {
#endif
#define ROW(r) \\
      V* const c##r = (V*)(c + (m + r) * 64 + n); \\
      const T* a##r = a + (m + r) * row; \\
      V s##r##0 = adds ? c##r[0] : V{}, s##r##1 = adds ? c##r[1] : V{}; \\
      V s##r##2 = adds ? c##r[2] : V{}, s##r##3 = adds ? c##r[3] : V{};
#define STEP(r) { \\
        const V x = *a##r - V{}; \\
        a##r += step; \\
        s##r##0 = plus_product(x, b0, s##r##0); s##r##1 = plus_product(x, b1, s##r##1); \\
        s##r##2 = plus_product(x, b2, s##r##2); s##r##3 = plus_product(x, b3, s##r##3); \\
      }
#define KEEP(r) c##r[0] = s##r##0; c##r[1] = s##r##1; c##r[2] = s##r##2; c##r[3] = s##r##3;
      ROW(0) ROW(1)
#if VECTOR_BYTES == 64
      ROW(2) ROW(3)
#endif
      const T* from = b + n;
      for (int64_t k = 0; k < depth; ++k, from += 64) {
        const V b0 = ((const V*)from)[0], b1 = ((const V*)from)[1], b2 = ((const V*)from)[2], b3 = ((const V*)from)[3];
        STEP(0) STEP(1)
#if VECTOR_BYTES == 64
        STEP(2) STEP(3)
#endif
      }
      KEEP(0) KEEP(1)
#if VECTOR_BYTES == 64
      KEEP(2) KEEP(3)
#endif
#undef ROW
#undef STEP
#undef KEEP
    }
  }
}
// Add to what other threads add to as well, if there are any.
template <typename T, typename V> INLINE void add_at(T* where, V value, int64_t threads) {
  if (threads < 2) { *where += value; return; }
#pragma omp atomic
  *where += value;
}
"""
