#include "target.h"

#include <stddef.h>

#if defined(__x86_64__)
static const char *const LEVELS[] = {"x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64", NULL};

const char *const *fxa_cpu_levels(void) {
    __builtin_cpu_init();
#define HAS(feature) __builtin_cpu_supports(feature)
    if (!(HAS("popcnt") && HAS("sse3") && HAS("ssse3") && HAS("sse4.1") && HAS("sse4.2"))) return LEVELS + 3;
    if (!(HAS("avx") && HAS("avx2") && HAS("bmi") && HAS("bmi2") && HAS("fma"))) return LEVELS + 2;
    if (!(HAS("avx512f") && HAS("avx512bw") && HAS("avx512cd") && HAS("avx512dq") && HAS("avx512vl"))) return LEVELS + 1;
#undef HAS
    return LEVELS;
}
#elif defined(__aarch64__)
static const char *const LEVELS[] = {"armv8-a", NULL};

const char *const *fxa_cpu_levels(void) { return LEVELS; }
#else
static const char *const LEVELS[] = {NULL};

const char *const *fxa_cpu_levels(void) { return LEVELS; }
#endif
