"""C++ text of functions of a float for vectors of 64 bytes, by instructions of AVX-512 that gcc does not choose.

One looks 16 numbers up in a table of 32, others take exponents and mantissas, of zeros, infinities, NaN and denormal
numbers too, as a logarithm wants them. So tanh and erf are polynomials of degree 5 around one of some 30 centers,
without a division or a power of two. From 2^-4 to where the result is 1 there are four intervals to each power of
two; below, the result is x plus x times a small polynomial. A center is a float near the middle of its interval whose
result is nearly a float, too, which makes the first coefficient exact. The others are fitted to float64 values for
the least relative error (iterated weighted least squares at Chebyshev's points).

Distances from float64 over all magnitudes, in units in the last place
(``tests/codegen/cpp/functions/test_single_functions.py`` holds the bounds):

    tanh 0.78    erf 0.94    log 0.84

torch's own kernels: 0.57, 1.0, 0.54.
"""

from __future__ import annotations

TABLES = """\
// Of a table of 32 floats those in places s.
#define LOOK_UP(table, s) __builtin_shuffle(*(const float_64*)table, *(const float_64*)(table + 16), s)
#define FUSED(a, b, c) (float_64)__builtin_ia32_vfmaddps512_mask(a, b - (float_64){}, c - (float_64){}, (uint16_t)-1, 4)
typedef int32_t int_64 __attribute__((vector_size(64)));
// An odd function that ends at 1: a row of centers, of its values there, and of each coefficient.
INLINE float_64 by_table(float_64 x, const float (*table)[32], float last) {
  int_64 bits = (int_64)x, magnitude = bits & 0x7fffffff;
  int_64 s = (magnitude >> 21) - 0x1eb;  // from 2^-4 on, by the exponent and two more bits
  s = s < 0 ? 0 : s;
  s = s > 31 ? 31 : s;
  float_64 a = (float_64)magnitude;
  a = last < a ? last - (float_64){} : a;
  float_64 y = a - LOOK_UP(table[0], s);
  float_64 p = LOOK_UP(table[6], s);
  p = FUSED(p, y, LOOK_UP(table[5], s));
  p = FUSED(p, y, LOOK_UP(table[4], s));
  p = FUSED(p, y, LOOK_UP(table[3], s));
  p = FUSED(p, y, LOOK_UP(table[2], s));
  float_64 at_center = LOOK_UP(table[1], s);
  p = FUSED(p, y, s == 0 ? a : at_center);
  return (float_64)((int_64)p | (bits & (int32_t)0x80000000));
}
"""

TANH = """\
alignas(64) static const float tanh_table[7][32] = {
  {0.0f, 0.07032413f, 0.085925296f, 0.101560496f, 0.11719151f, 0.1405984f, 0.17188764f, 0.20316914f, 0.23441929f,
   0.28121307f, 0.34375155f, 0.40618768f, 0.4688358f, 0.56240565f, 0.6874732f, 0.8123744f, 0.9374493f, 1.1253259f,
   1.3747424f, 1.625279f, 1.8746567f, 2.2495773f, 2.749523f, 3.2493773f, 3.7507064f, 4.500294f, 5.4985805f, 6.498972f,
   7.5014305f, 8.512861f, 0.0f, 0.0f},
  {0.0f, 0.07020843f, 0.08571445f, 0.10121275f, 0.11665794f, 0.13967922f, 0.17021458f, 0.20041908f, 0.23021765f,
   0.27402744f, 0.3308225f, 0.3852309f, 0.43725818f, 0.50976014f, 0.5963563f, 0.670898f, 0.7340481f, 0.8094135f,
   0.8797685f, 0.9253863f, 0.9540144f, 0.97800773f, 0.991852f, 0.9969939f, 0.998896f, 0.99975336f, 0.9999665f,
   0.99999547f, 0.9999994f, 0.99999994f, 1.0f, 1.0f},
  {0.0f, 0.99507076f, 0.992653f, 0.989756f, 0.98639095f, 0.98048973f, 0.971027f, 0.9598322f, 0.94699985f, 0.92490894f,
   0.89055645f, 0.85159713f, 0.8088053f, 0.7401446f, 0.6443592f, 0.5498958f, 0.46117336f, 0.3448498f, 0.2260074f,
   0.14366017f, 0.08985648f, 0.04350087f, 0.016229643f, 0.0060031665f, 0.0022067768f, 0.0004932418f, 6.6996225e-05f,
   9.060128e-06f, 1.2201127e-06f, 1.6139222e-07f, 0.0f, 0.0f},
  {0.0f, -0.06986257f, -0.08508475f, -0.10017571f, -0.115070045f, -0.136954f, -0.16528286f, -0.19236866f,
   -0.21801606f, -0.2534505f, -0.29461613f, -0.32806158f, -0.35365674f, -0.37729612f, -0.38426766f, -0.36892408f,
   -0.33852345f, -0.27912802f, -0.19883533f, -0.13294157f, -0.085724436f, -0.042542975f, -0.01609648f, -0.0059847096f,
   -0.002204179f, -0.0004925037f, -6.691003e-05f, -9.048714e-06f, -1.6566237e-06f, -7.954086e-07f, 0.0f, 0.0f},
  {-0.333333f, -0.32548478f, -0.3222847f, -0.32029745f, -0.31688035f, -0.3079574f, -0.29584724f, -0.28139502f,
   -0.26570678f, -0.23874304f, -0.19930646f, -0.15739049f, -0.11498778f, -0.05439329f, 0.014396854f, 0.06423544f,
   0.094760016f, 0.11098011f, 0.099593244f, 0.07513663f, 0.05183071f, 0.02710865f, 0.010555959f, 0.0039658532f,
   0.0014661826f, 0.00032814115f, 4.4606273e-05f, 6.0325415e-06f, 8.0785316e-07f, 9.356092e-08f, 0.0f, 0.0f},
  {0.0f, 0.05303864f, 0.058955714f, 0.060668048f, 0.067326635f, 0.08813959f, 0.1046816f, 0.12036203f, 0.13355269f,
   0.15003854f, 0.16416687f, 0.17006217f, 0.16812633f, 0.15333097f, 0.119490124f, 0.07993417f, 0.043337524f,
   0.00361658f, -0.021102617f, -0.02512762f, -0.020859016f, -0.012393867f, -0.005152045f, -0.0019802551f,
   -0.0007381953f, -0.00017184945f, -2.3382352e-05f, -3.162828e-06f, 1.3174559e-06f, 2.3711546e-06f, 0.0f, 0.0f},
  {0.13304214f, -16.138083f, -16.58836f, 6.5614495f, 19.195011f, 0.9264802f, 1.0645726f, 0.10594493f, 0.8170434f,
   -0.02452952f, -0.030945344f, -0.06981316f, 0.0030641083f, -0.042027593f, -0.0659381f, -0.06753716f, -0.051686876f,
   -0.0320764f, -0.009533673f, 0.0013636091f, 0.004587144f, 0.00397759f, 0.0019165861f, 0.000771314f, 0.00029291704f,
   6.8591384e-05f, 9.318952e-06f, 1.2618265e-06f, 2.0878242e-07f, 1.2919871e-07f, 0.0f, 0.0f},
};
INLINE float_64 tanh_of_vector(float_64 x) { return by_table(x, tanh_table, 9.02f); }
"""

ERF = """\
alignas(64) static const float erf_table[7][32] = {
  {0.0f, 0.0702955f, 0.08592972f, 0.1015486f, 0.11718829f, 0.14065373f, 0.17183422f, 0.20314561f, 0.2343602f,
   0.28126866f, 0.34380552f, 0.40621355f, 0.46883547f, 0.5625105f, 0.68767214f, 0.81257904f, 0.93744224f, 1.1246538f,
   1.3751392f, 1.6248713f, 1.87466f, 2.2498941f, 2.7501175f, 3.2503858f, 3.7492847f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f,
   0.0f, 0.0f},
  {0.0f, 0.07918952f, 0.096723184f, 0.114192665f, 0.13162999f, 0.1576703f, 0.19200256f, 0.2261107f, 0.25968435f,
   0.30920318f, 0.37318486f, 0.43435204f, 0.4926909f, 0.5736831f, 0.6692057f, 0.7495101f, 0.81507534f, 0.888278f,
   0.9481938f, 0.9784334f, 0.99197865f, 0.9985365f, 0.99989945f, 0.9999957f, 0.9999999f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f,
   1.0f, 1.0f},
  {0.12837917f, 1.122817f, 1.120078f, 1.1168029f, 1.112989f, 1.1062753f, 1.0955486f, 1.0827608f, 1.0680746f,
   1.0425506f, 1.0025834f, 0.95673656f, 0.90572053f, 0.82231164f, 0.70320225f, 0.5830383f, 0.46859533f, 0.31852192f,
   0.17029455f, 0.08050593f, 0.033588618f, 0.007145697f, 0.0005859214f, 2.9122371e-05f, 8.861721e-07f, 0.0f, 0.0f,
   0.0f, 0.0f, 0.0f, 0.0f, 0.0f},
  {0.0f, -0.07892959f, -0.09624821f, -0.113410376f, -0.13042912f, -0.15560156f, -0.18825252f, -0.21995814f,
   -0.25031397f, -0.2932368f, -0.34469357f, -0.38863936f, -0.42463395f, -0.46255884f, -0.48357242f, -0.47376457f,
   -0.43928105f, -0.35822845f, -0.23418102f, -0.13081329f, -0.06296768f, -0.016072398f, -0.0016084884f,
   -9.4182215e-05f, -2.6763391e-06f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f},
  {-0.37612423f, -0.36780855f, -0.36616376f, -0.36157268f, -0.36084613f, -0.35484645f, -0.3441277f, -0.33089435f,
   -0.3176042f, -0.29251257f, -0.2553972f, -0.21372205f, -0.16910982f, -0.10063164f, -0.012706383f, 0.06230076f,
   0.11833787f, 0.1624132f, 0.15792121f, 0.11486834f, 0.06749983f, 0.02173566f, 0.0027561157f, 0.00019460685f,
   7.96516e-06f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f},
  {0.0f, 0.057096522f, 0.055095762f, 0.07286994f, 0.061925128f, 0.07518905f, 0.09077788f, 0.10728605f, 0.119133875f,
   0.13885583f, 0.15850802f, 0.172901f, 0.18122439f, 0.1823022f, 0.16538861f, 0.13251187f, 0.09095031f, 0.028409615f,
   -0.030043153f, -0.04940481f, -0.04218932f, -0.019335443f, -0.0034011798f, -0.0003093591f, -2.5454101e-05f, 0.0f,
   0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f},
  {0.11218268f, -34.574364f, -21.204449f, -38.132236f, 0.54650354f, 2.2277865f, 1.7100399f, -0.6627287f, 2.2782018f,
   0.05766801f, 0.21919534f, 0.08263117f, -0.042030778f, -0.01225735f, -0.04181442f, -0.06158578f, -0.070026584f,
   -0.061148822f, -0.030651027f, -0.0023504063f, 0.011310061f, 0.0105738845f, 0.002832949f, 0.00033456125f,
   2.0410607e-05f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f},
};
INLINE float_64 erf_of_vector(float_64 x) { return by_table(x, erf_table, 4.0f); }
"""

LOG = """\
// x = 2^k m with 2/3 <= m < 4/3. Of 0 and inf, k is -inf and inf; of numbers below 0, m is NaN.
INLINE float_64 log_of_vector(float_64 x) {
  float_64 m = __builtin_ia32_getmantps512_mask(x, 8, (float_64){}, (uint16_t)-1, 4);
  float_64 k = __builtin_ia32_getexpps512_mask(x, (float_64){}, (uint16_t)-1, 4);
  int_64 above = m > 1.33333333f;
  m = above ? m * 0.5f : m;
  k = above ? k + 1.0f : k;
  float_64 f = m - 1.0f, p = -0.131916463f - (float_64){};
  p = FUSED(p, f, 0.139624506f);
  p = FUSED(p, f, -0.121151261f);
  p = FUSED(p, f, 0.140109196f);
  p = FUSED(p, f, -0.166854665f);
  p = FUSED(p, f, 0.200100437f);
  p = FUSED(p, f, -0.249996886f);
  p = FUSED(p, f, 0.333332241f);
  float_64 rest = f + FUSED(k, 1.42860677e-06f, f * f * FUSED(p, f, -0.5f));
  return FUSED(k, 0.693145752f, rest);
}
"""

VECTOR_FUNCTIONS = {"tanhf": ("tanh", TANH), "erff": ("erf", ERF), "logf": ("log", LOG)}
"""By the name of the C library's function: the stem of the names here, and the text."""
