// index_1: gather
extern "C" int32_t kernel_e9b09b586ff4902d(const int64_t* given, int64_t share, int64_t shares) {
  const int64_t* const in0 = (const int64_t*)given[0];
  const float* const in1 = (const float*)given[1];
  float* const out0 = (float*)given[2];
  int32_t bad = 0;
  for (int64_t i0 = 0; i0 < 5; ++i0) {
    const int64_t t1 = in0[i0];
    const int64_t t2 = wrap_index(t1, 9L, bad);
    #pragma omp simd reduction(|:bad)
    for (int64_t i1 = 0; i1 < 8; ++i1) {
      const float t3 = in1[8 * t2 + i1];
      out0[8 * i0 + i1] = t3;
    }
  }
  return bad;
}

// neg: neg
// cat: cat
extern "C" int32_t kernel_7b2e4084afb5dbe4(const int64_t* given, int64_t share, int64_t shares) {
  const float* const in0 = (const float*)given[0];
  float* const out0 = (float*)given[1];
  for (int64_t i0 = 0; i0 < 5; ++i0) {
     {
      #pragma omp simd
      for (int64_t i1 = 0; i1 < 8; ++i1) {
        const float t1 = in0[8 * i0 + i1];
        const float t2 = -t1;
        out0[16 * i0 + i1] = t2;
      }
    }
     {
      #pragma omp simd
      for (int64_t i1 = 8; i1 < 16; ++i1) {
        const float t3 = in0[8 * i0 + i1 + (-8)];
        out0[16 * i0 + i1] = t3;
      }
    }
  }
  return 0;
}
