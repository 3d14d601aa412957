// amax: amax
// sub: sub
// exp: exp
// sum_1: sum
// div: div
extern "C" int32_t kernel_e5e66d7508333204(const int64_t* given, int64_t share, int64_t shares) {
  const float* const in0 = (const float*)given[0];
  float* const out0 = (float*)given[1];
  const int64_t s0 = given[2];
  const int64_t n0 = 40 * s0;
  if (!shares) return n0 >= 32768;
  const int64_t pieces = s0;
  const int64_t first = pieces * share / shares, last = pieces * (share + 1) / shares;
  for (int64_t i0 = first; i0 < last; ++i0) {
    alignas(64) float kept0[40];
    float a0 = -__builtin_inff();
    int32_t a0_nan = 0;
    #pragma omp simd reduction(max:a0) reduction(|:a0_nan) simdlen(SHORT_VECTOR_BYTES / 4)
    for (int64_t i1 = 0; i1 < 40; ++i1) {
      const float t1 = in0[40 * i0 + i1];
      a0 = t1 > a0 ? t1 : a0;
      a0_nan |= t1 != t1;
    }
    const float total0 = (a0_nan ? __builtin_nanf("") : a0);
    float a1 = 0;
    #pragma omp simd reduction(+:a1) simdlen(SHORT_VECTOR_BYTES / 4)
    for (int64_t i1 = 0; i1 < 40; ++i1) {
      const float t2 = in0[40 * i0 + i1];
      const float t3 = t2 - total0;
      const float t4 = single_exp(t3);
      kept0[i1] = t4;
      a1 += t4;
    }
    const float total1 = a1;
    const float t5 = 1 / total1;
    #pragma omp simd
    for (int64_t i1 = 0; i1 < 40; ++i1) {
      const float t6 = kept0[i1] * t5;
      out0[40 * i0 + i1] = t6;
    }
  }
  return 0;
}
