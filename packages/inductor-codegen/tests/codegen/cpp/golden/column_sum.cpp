// mul: mul
// sum_1: sum
// mul_1: mul
extern "C" int32_t kernel_1b23f36b45e75d44(const int64_t* given, int64_t share, int64_t shares) {
  const float* const in0 = (const float*)given[0];
  float* const out0 = (float*)given[1];
   {
    const int64_t block = 0, width = 300;
    float a0[300];
    __builtin_memset(a0, 0, sizeof(*a0) * width);
    for (int64_t turn = 0; turn + 3 < 70; turn += 4) {
      #pragma omp simd
      for (int64_t lane = 0; lane < width; ++lane) {
        const int64_t i0 = block + lane;
        float u0_0, u0_1, u0_2, u0_3;
         {
          const int64_t i1 = turn;
          const float t1 = in0[300 * i1 + i0];
          const float t2 = t1 * t1;
          u0_0 = t2;
        }
         {
          const int64_t i1 = turn + 1;
          const float t3 = in0[300 * i1 + i0];
          const float t4 = t3 * t3;
          u0_1 = t4;
        }
         {
          const int64_t i1 = turn + 2;
          const float t5 = in0[300 * i1 + i0];
          const float t6 = t5 * t5;
          u0_2 = t6;
        }
         {
          const int64_t i1 = turn + 3;
          const float t7 = in0[300 * i1 + i0];
          const float t8 = t7 * t7;
          u0_3 = t8;
        }
        a0[lane] += (u0_0 + u0_1) + (u0_2 + u0_3);
      }
    }
    for (int64_t i1 = 68; i1 < 70; ++i1) {
      #pragma omp simd
      for (int64_t lane = 0; lane < width; ++lane) {
        const int64_t i0 = block + lane;
        const float t9 = in0[300 * i1 + i0];
        const float t10 = t9 * t9;
        a0[lane] += t10;
      }
    }
    #pragma omp simd
    for (int64_t lane = 0; lane < width; ++lane) {
      const int64_t i0 = block + lane;
      const float t11 = a0[lane] * 0.5f;
      out0[i0] = t11;
    }
  }
  return 0;
}
