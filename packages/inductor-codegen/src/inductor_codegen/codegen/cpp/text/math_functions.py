"""Functions of the C library that give one number one result, whatever the vector that computes it.

glibc's libmvec has forms of a function for 2 to 16 numbers at once. Each form, and libm's own function, rounds in its
own way, and gcc chooses by the place of an element in its loop: equal numbers of a row would have different results.
Kernels call ``wide_log`` and the like, whose shorter forms, and scalar form, have the longest one compute the number in
every lane (in a lane without one, a zero would take the slow path of a pole). With other compilers than gcc, and on
other processors than x86-64, a function is the library's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from inductor_codegen.codegen.cpp.text.operations import VECTOR_FUNCTIONS, WIDE

_BINARY = frozenset({"pow", "atan2", "fmod"})
_OWN = frozenset({"fmod", "fmodf"})
"""Functions that libmvec lacks and that are written here."""
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
"""``fmod``, which libmvec lacks, for vectors of any length."""


def math_functions(kernels: Iterable[str]) -> str:
    """Declarations and definitions of the functions that the texts of kernels call."""
    names = sorted({name for text in kernels for name in _CALL.findall(text)})
    if not names:
        return ""
    return "\n".join(
        [
            _GCC_X86,
            _FORMS,
            *([_REMAINDERS] if _OWN.intersection(names) else []),
            *(line for name in names for line in _definitions(name)),
            "#else",
            *(f"#define {WIDE}{name} {name}" for name in names),
            'extern "C" {',
            *(_declaration(name, name) for name in names),
            "}",
            "#endif",
            "",
        ]
    )


def _kind(name: str) -> tuple[str, bool]:
    """The type of a function's numbers, and whether it takes two."""
    single = name not in VECTOR_FUNCTIONS
    return ("float" if single else "double"), (name[:-1] if single else name) in _BINARY


def _declaration(name: str, symbol: str, attributes: str = "") -> str:
    kind, binary = _kind(name)
    parameters = f"{kind}, {kind}" if binary else kind
    return f'__attribute__((simd("notinbranch"), const{attributes})) {kind} {symbol}({parameters}) noexcept;'


def _definitions(name: str) -> Iterator[str]:
    kind, binary = _kind(name)
    letters = "vv" if binary else "v"
    itemsize = 4 if kind == "float" else 8
    shorter = "SHORTER_OF_TWO" if binary else "SHORTER"

    longest = WIDE + name if name in _OWN else name

    def symbol(isa: str, size: int, function: str) -> str:
        return f"_ZGV{isa}N{size // itemsize}{letters}_{function}"

    declaration = _declaration(name, WIDE + name, ', visibility("hidden")')
    yield f'extern "C" {declaration}'
    for condition, isa, size, others in _LEVELS:
        vector, widest = f"{kind}_{size}", symbol(isa, size, longest)
        parameters = f"{vector}, {vector}" if binary else vector
        yield condition
        if name in _OWN:
            symbol_of_widest, widest = widest, f"own{widest}"  # static: every file of a library has its own
            yield f'static __attribute__((used)) {vector} {widest}({parameters}) asm("{symbol_of_widest}");'
            yield f"{vector} {widest}({vector} a, {vector} b) {{"
            yield f"  return remainders<{vector}, {kind}, {size // itemsize}>(a, b);"
            yield "}"
        else:
            yield f'extern "C" {vector} {widest}({parameters}) noexcept;'
            yield f'asm(".set {symbol(isa, size, WIDE + name)}, {widest}");'
        for other, short in others:
            yield f"{shorter}({kind}_{short}, {vector}, {symbol(other, short, WIDE + name)}, {widest})"
        yield f"{shorter}({kind}, {vector}, {WIDE}{name}, {widest})"
    yield "#endif"
