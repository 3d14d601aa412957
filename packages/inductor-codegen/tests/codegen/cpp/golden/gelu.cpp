// add: add
// mul: mul
// erf: erf
// add_1: add
// mul_1: mul
extern "C" int32_t kernel_18551d159661abef(const int64_t* given, int64_t share, int64_t shares) {
  const float* const in0 = (const float*)given[0];
  const float* const in1 = (const float*)given[1];
  float* const out0 = (float*)given[2];
  for (int64_t begin = 0; begin < 160; begin += 4096) {
    const int64_t end = 160 - begin < 4096 ? 160 : begin + 4096;
    #pragma omp simd simdlen(VECTOR_BYTES / 4)
    for (int64_t i0 = begin; i0 < end; ++i0) {
      const float t1 = in0[i0];
      const float t2 = in1[i0];
      const float t3 = t1 + t2;
      const float t4 = t3 * 0.7071067811865476f;
      const float t5 = wide_erff(t4);
      const float t6 = t5 + 1.0f;
      const float t7 = t6 * t4;
      out0[i0] = t7;
    }
  }
  return 0;
}
