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

_BINARY = frozenset({"pow", "atan2"})
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


def math_functions(kernels: Iterable[str]) -> str:
    """Declarations and definitions of the functions that the texts of kernels call."""
    names = sorted({name for text in kernels for name in _CALL.findall(text)})
    if not names:
        return ""
    return "\n".join(
        [
            _GCC_X86,
            _FORMS,
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

    def symbol(isa: str, size: int, function: str) -> str:
        return f"_ZGV{isa}N{size // itemsize}{letters}_{function}"

    declaration = _declaration(name, WIDE + name, ', visibility("hidden")')
    yield f'extern "C" {declaration}'
    for condition, isa, size, others in _LEVELS:
        vector, widest = f"{kind}_{size}", symbol(isa, size, name)
        parameters = f"{vector}, {vector}" if binary else vector
        yield condition
        yield f'extern "C" {vector} {widest}({parameters}) noexcept;'
        yield f'asm(".set {symbol(isa, size, WIDE + name)}, {widest}");'
        for other, short in others:
            yield f"{shorter}({kind}_{short}, {vector}, {symbol(other, short, WIDE + name)}, {widest})"
        yield f"{shorter}({kind}, {vector}, {WIDE}{name}, {widest})"
    yield "#endif"
