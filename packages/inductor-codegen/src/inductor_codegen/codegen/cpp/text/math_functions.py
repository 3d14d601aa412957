"""Functions of the C library that give one number one result, whatever the vector that computes it.

glibc's libmvec has forms of a function for 2 to 16 numbers at once. Each form, and libm's own function, rounds in its
own way, and gcc chooses by the place of an element in its loop: equal numbers of a row would have different results.
Kernels call ``wide_log`` and the like, whose shorter forms, and scalar form, have the longest one compute the number in
every lane (in a lane without one, a zero would take the slow path of a pole). With other compilers than gcc, and on
other processors than x86-64, a function is the library's.

``wide_tanhf``, ``wide_erff`` and ``wide_logf`` are those of ``vector_functions.py`` where there is AVX-512, elsewhere
those of ``single_functions.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from inductor_codegen.codegen.cpp.functions.vector_functions import TABLES, VECTOR_FUNCTIONS
from inductor_codegen.codegen.cpp.text.operations import MATH_FUNCTIONS, WIDE

_BINARY = frozenset({"pow", "atan2", "fmod"})
_OWN = {"fmod": "remainders", "fmodf": "remainders", "lgamma": "log_gammas", "lgammaf": "log_gammas"}
"""Functions that libmvec lacks and that are written here, for vectors of any length."""
_CALLS = {"lgammaf": ("log",), "lgamma": ("log",)}
"""Functions that such a function calls."""
_HIDDEN = ', visibility("hidden")'
_CALL = re.compile(rf"\b{WIDE}(\w+)\(")
_GCC_X86 = "#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)"
_LEVELS = (
    ("#if defined(__AVX512F__)", "e", 64, (("d", 32), ("b", 16))),
    ("#elif defined(__AVX2__)", "d", 32, (("b", 16),)),
    ("#elif defined(__AVX__)", "c", 32, (("b", 16),)),
    ("#else", "b", 16, ()),
)
"""For each level of vector instructions: its letter in mangled names, its bytes, and those of the shorter vectors."""
_FORMS = """\
typedef float float_16 __attribute__((vector_size(16))); typedef double double_16 __attribute__((vector_size(16)));
typedef float float_32 __attribute__((vector_size(32))); typedef double double_32 __attribute__((vector_size(32)));
typedef float float_64 __attribute__((vector_size(64))); typedef double double_64 __attribute__((vector_size(64)));
template <typename W, typename V> INLINE W repeated(V v) {
#if __GNUC__ >= 12  // in registers: what is stored in halves is slow to load as a whole
  if constexpr (sizeof(W) == 64 && sizeof(V) == 32) {
    float_32 half = (float_32)v;
    return (W)__builtin_shufflevector(half, half, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7);
  }
#endif
  W w;
  for (unsigned i = 0; i < sizeof(W); i += sizeof(V)) __builtin_memcpy((char*)&w + i, &v, sizeof(V));
  return w;
}
template <typename V, typename W> INLINE V first(W w) { V v; __builtin_memcpy(&v, &w, sizeof(V)); return v; }
#define SHORTER(V, W, symbol, widest) \\
  static __attribute__((used)) V shorter_##symbol(V a) asm(#symbol); \\
  V shorter_##symbol(V a) { return first<V>(widest(repeated<W>(a))); }
#define SHORTER_OF_TWO(V, W, symbol, widest) \\
  static __attribute__((used)) V shorter_##symbol(V a, V b) asm(#symbol); \\
  V shorter_##symbol(V a, V b) { return first<V>(widest(repeated<W>(a), repeated<W>(b))); }
"""


_REMAINDERS = """\
// What is left of a after the multiples of b, exactly. Where they are few, x / y rounded down is their number or one
// more, and x - n y has no rounding. In the other lanes, those of 0, inf and NaN too, it is libm's.
extern "C" { float fmodf(float, float) noexcept; double fmod(double, double) noexcept; }
INLINE float libm_fmod(float a, float b) { return fmodf(a, b); }
INLINE double libm_fmod(double a, double b) { return fmod(a, b); }
#ifdef __FMA__
INLINE float less_multiples(float a, float b) { return __builtin_fmaf(-__builtin_truncf(a / b), b, a); }
INLINE double less_multiples(double a, double b) { return __builtin_fma(-__builtin_trunc(a / b), b, a); }
INLINE bool is_few(float x, float y) { return (x < y * 0x1p22f) & (y < 0x1p100f); }
INLINE bool is_few(double x, double y) { return (x < y * 0x1p51) & (y < 0x1p1000); }
#else
template <typename T> INLINE T less_multiples(T a, T b) { return a; }
template <typename T> INLINE bool is_few(T x, T y) { return false; }
#endif
INLINE float magnitude(float a) { return __builtin_fabsf(a); }
INLINE double magnitude(double a) { return __builtin_fabs(a); }
template <typename V, typename T, int N> INLINE V remainders(V a, V b) {
  T as[N], bs[N], rs[N];
  __builtin_memcpy(as, &a, sizeof(V));
  __builtin_memcpy(bs, &b, sizeof(V));
  int many = 0;
#pragma omp simd reduction(|:many)
  for (int i = 0; i < N; ++i) {
    T x = magnitude(as[i]), y = magnitude(bs[i]);
    T r = less_multiples(x, y);
    rs[i] = with_sign(r < 0 ? r + y : r, as[i]);
    many |= !is_few(x, y);
  }
  if (__builtin_expect(many, 0)) {
    for (int i = 0; i < N; ++i)
      if (!is_few(magnitude(as[i]), magnitude(bs[i]))) rs[i] = libm_fmod(as[i], bs[i]);
  }
  V r;
  __builtin_memcpy(&r, rs, sizeof(V));
  return r;
}
"""

_LOG_GAMMAS = """\
// The logarithm of the gamma function's magnitude, of float computed in double. For z = |x| it is
//   z < 1: that of z + 1, less log(z);   z < 3: (z - 1) (z - 2) times a polynomial of z - 2;   else Stirling's series,
// and for x < 0 by reflection log(pi / (z |sin(pi z)|)) less that. The polynomials interpolate at Chebyshev's points,
// within 4e-12 of the function: near 1 and 2 results have all bits, near the zeros of x < 0 all but a few.
extern "C" { float lgammaf(float) noexcept; double lgamma(double) noexcept; }
INLINE double log_gamma_factor(double t) {  // log(gamma(t + 2)) / (t (t + 1)) for -1 <= t <= 1
  double p = 3.0199822392397963e-07;
  p = MULTIPLY_ADD_DOUBLE(p, t, -6.311841502060992e-07);
  p = MULTIPLY_ADD_DOUBLE(p, t, -1.125116807763734e-07);
  p = MULTIPLY_ADD_DOUBLE(p, t, 2.2282632009795341e-07);
  p = MULTIPLY_ADD_DOUBLE(p, t, 2.431132451976893e-06);
  p = MULTIPLY_ADD_DOUBLE(p, t, -5.1452834569738116e-06);
  p = MULTIPLY_ADD_DOUBLE(p, t, 7.79314705910929e-06);
  p = MULTIPLY_ADD_DOUBLE(p, t, -1.67680045234243e-05);
  p = MULTIPLY_ADD_DOUBLE(p, t, 3.834377597013234e-05);
  p = MULTIPLY_ADD_DOUBLE(p, t, -8.34593649784985e-05);
  p = MULTIPLY_ADD_DOUBLE(p, t, 0.00018251128658110577);
  p = MULTIPLY_ADD_DOUBLE(p, t, -0.0004056212785176813);
  p = MULTIPLY_ADD_DOUBLE(p, t, 0.000915382173612637);
  p = MULTIPLY_ADD_DOUBLE(p, t, -0.002108141769692309);
  p = MULTIPLY_ADD_DOUBLE(p, t, 0.004998640863527372);
  p = MULTIPLY_ADD_DOUBLE(p, t, -0.012384191566215685);
  p = MULTIPLY_ADD_DOUBLE(p, t, 0.032965000626194785);
  p = MULTIPLY_ADD_DOUBLE(p, t, -0.10031730168484691);
  return MULTIPLY_ADD_DOUBLE(p, t, 0.42278433509846713);
}
INLINE double log_gamma_rest(double w) {  // what Stirling's formula lacks, times z, for w = 1 / z^2 and z >= 3
  double p = 0.0017901800692895539;
  p = MULTIPLY_ADD_DOUBLE(p, w, -0.0014233123861739818);
  p = MULTIPLY_ADD_DOUBLE(p, w, 0.000810120660174383);
  p = MULTIPLY_ADD_DOUBLE(p, w, -0.0005941137380865464);
  p = MULTIPLY_ADD_DOUBLE(p, w, 0.0007936309810201604);
  p = MULTIPLY_ADD_DOUBLE(p, w, -0.002777777643542962);
  return MULTIPLY_ADD_DOUBLE(p, w, 0.08333333333318188);
}
INLINE double sine_of_pi_times(double r) {  // for 0 <= r <= 0.5
  double w = r * r, p = -2.113362735205297e-05;
  p = MULTIPLY_ADD_DOUBLE(p, w, 0.0004659870158043378);
  p = MULTIPLY_ADD_DOUBLE(p, w, -0.0073703643265304155);
  p = MULTIPLY_ADD_DOUBLE(p, w, 0.08214587881631043);
  p = MULTIPLY_ADD_DOUBLE(p, w, -0.599264528825224);
  p = MULTIPLY_ADD_DOUBLE(p, w, 2.5501640398618677);
  p = MULTIPLY_ADD_DOUBLE(p, w, -5.1677127800497855);
  return r * MULTIPLY_ADD_DOUBLE(p, w, 3.1415926535897927);
}
INLINE double log_gamma_of_magnitude(double z) {
  double l = wide_log(z), below = z < 1 ? z + 1 : z, t = below - 2;
  double near = t * (t + 1) * log_gamma_factor(t) + 0.0;  // of 1 it is 0, not -0
  double v = 1 / z;
  double far = MULTIPLY_ADD_DOUBLE(z - 0.5, l - 1, 0.41893853320467274) + v * log_gamma_rest(v * v);
  near = z < 1 ? near - l : near;
  return z < 3 ? near : far;
}
INLINE double log_of_reflection(double z) {
  double r = __builtin_fabs(z - __builtin_nearbyint(z));
  return z < 0x1p23 ? 3.141592653589793 / (z * sine_of_pi_times(r)) : __builtin_inf();
}
template <typename V, typename T, int N> INLINE V log_gammas(V a) {
  T as[N], rs[N];
  __builtin_memcpy(as, &a, sizeof(V));
  if (sizeof(T) == 8) {
    for (int i = 0; i < N; ++i) rs[i] = lgamma(as[i]);
  } else {
    double of_magnitude[N];
    int negative = 0;
#pragma omp simd reduction(|:negative)
    for (int i = 0; i < N; ++i) {
      of_magnitude[i] = log_gamma_of_magnitude(__builtin_fabsf(as[i]));
      negative |= as[i] < 0;
    }
    if (negative) {
#pragma omp simd
      for (int i = 0; i < N; ++i) {
        double p = as[i] < 0 ? log_of_reflection(__builtin_fabsf(as[i])) : 1;
        double l = wide_log(p), reflected = l == __builtin_inf() ? l : l - of_magnitude[i];
        of_magnitude[i] = as[i] < 0 ? reflected : of_magnitude[i];
      }
    }
#pragma omp simd
    for (int i = 0; i < N; ++i) rs[i] = of_magnitude[i];
  }
  V r;
  __builtin_memcpy(&r, rs, sizeof(V));
  return r;
}
"""

_TEXTS = {"remainders": _REMAINDERS, "log_gammas": _LOG_GAMMAS}


def math_functions(kernels: Iterable[str]) -> str:
    """Declarations and definitions of the functions that the texts of kernels call."""
    called = {name for text in kernels for name in _CALL.findall(text)}
    if not called:
        return ""
    names = sorted(
        called.union(*(_CALLS.get(name, ()) for name in called)), key=lambda name: (name in _OWN, name)
    )
    return "\n".join(
        [
            _GCC_X86,
            _FORMS,
            *_by_vectors([name for name in names if name in VECTOR_FUNCTIONS]),
            *(
                line
                for name in names
                if name not in _OWN and name not in VECTOR_FUNCTIONS
                for line in _definitions(name)
            ),
            *dict.fromkeys(_TEXTS[_OWN[name]] for name in names if name in _OWN),
            *(line for name in names if name in _OWN for line in _definitions(name)),
            "#else",
            *(f"#define {WIDE}{name} {_elsewhere(name)}" for name in names),
            'extern "C" {',
            *(_declaration(name, name) for name in names if name not in VECTOR_FUNCTIONS),
            "}",
            "#endif",
            "",
        ]
    )


def _kind(name: str) -> tuple[str, bool]:
    """The type of a function's numbers, and whether it takes two."""
    single = name not in MATH_FUNCTIONS
    return ("float" if single else "double"), (name[:-1] if single else name) in _BINARY


def _declaration(name: str, symbol: str, attributes: str = "") -> str:
    kind, binary = _kind(name)
    parameters = f"{kind}, {kind}" if binary else kind
    return f'__attribute__((simd("notinbranch"), const{attributes})) {kind} {symbol}({parameters}) noexcept;'


def _elsewhere(name: str) -> str:
    """What a function is where there are no forms of our own."""
    return f"single_{VECTOR_FUNCTIONS[name][0]}" if name in VECTOR_FUNCTIONS else name


def _by_vectors(names: Sequence[str]) -> Iterator[str]:
    """The functions that AVX-512 has instructions for."""
    if not names:
        return
    condition, isa, size, others = _LEVELS[0]
    yield condition
    yield TABLES
    for name in names:
        stem, text = VECTOR_FUNCTIONS[name]
        yield text
        yield f'extern "C" {_declaration(name, WIDE + name, _HIDDEN)}'
        widest, symbol = f"vectors_{name}", f"_ZGV{isa}N{size // 4}v_{WIDE}{name}"
        yield f'static __attribute__((used)) float_{size} {widest}(float_{size} a) asm("{symbol}");'
        yield f"float_{size} {widest}(float_{size} a) {{ return {stem}_of_vector(a); }}"
        for other, short in others:
            yield f"SHORTER(float_{short}, float_{size}, _ZGV{other}N{short // 4}v_{WIDE}{name}, {widest})"
        yield f"SHORTER(float, float_{size}, {WIDE}{name}, {widest})"
    yield "#else"
    yield from (f"#define {WIDE}{name} {_elsewhere(name)}" for name in names)
    yield "#endif"


def _definitions(name: str) -> Iterator[str]:
    kind, binary = _kind(name)
    letters = "vv" if binary else "v"
    itemsize = 4 if kind == "float" else 8
    shorter = "SHORTER_OF_TWO" if binary else "SHORTER"

    longest = WIDE + name if name in _OWN else name

    def symbol(isa: str, size: int, function: str) -> str:
        return f"_ZGV{isa}N{size // itemsize}{letters}_{function}"

    declaration = _declaration(name, WIDE + name, _HIDDEN)
    yield f'extern "C" {declaration}'
    for condition, isa, size, others in _LEVELS:
        vector, widest = f"{kind}_{size}", symbol(isa, size, longest)
        parameters, arguments = (f"{vector} a, {vector} b", "a, b") if binary else (f"{vector} a", "a")
        yield condition
        if name in _OWN:
            symbol_of_widest, widest = widest, f"own{widest}"  # static: every file of a library has its own
            yield f'static __attribute__((used)) {vector} {widest}({parameters}) asm("{symbol_of_widest}");'
            yield f"{vector} {widest}({parameters}) {{"
            yield f"  return {_OWN[name]}<{vector}, {kind}, {size // itemsize}>({arguments});"
            yield "}"
        else:
            yield f'extern "C" {vector} {widest}({parameters}) noexcept;'
            yield f'asm(".set {symbol(isa, size, WIDE + name)}, {widest}");'
        for other, short in others:
            yield f"{shorter}({kind}_{short}, {vector}, {symbol(other, short, WIDE + name)}, {widest})"
        yield f"{shorter}({kind}, {vector}, {WIDE}{name}, {widest})"
    yield "#endif"
