"""Sizes from data between the parts of a program: what a part's results tell of them.

y = x[x > 0]; z = conditional(true, false, p, y)    ->    part 1 gives y, and y.shape[0] is a symbol of all the rest
"""

from __future__ import annotations

from collections.abc import Iterator

from torch.fx import Node

from fx_interface.symbols import Expr, ShapeEnv, Symbol
from fx_interface.tensor_spec import SPEC_KEY, SymSpec, TensorSpec

_TYPICAL = 16
"""The length that examples have where only data tell it."""


def told_by(node: Node) -> dict[int | None, Symbol]:
    """The symbols that a value tells: by the dimension of a tensor that has that size, None for a number that is it."""
    spec = node.meta.get(SPEC_KEY)
    if isinstance(spec, SymSpec):
        atom = spec.expr.as_symbol if isinstance(spec.expr, Expr) else None
        return {} if atom is None else {None: atom}
    if not isinstance(spec, TensorSpec):
        return {}
    sizes = enumerate(spec.sizes)
    return {
        dim: size.as_symbol for dim, size in sizes if isinstance(size, Expr) and size.as_symbol is not None
    }


def symbols_in(node: Node) -> Iterator[Symbol]:
    """The symbols in a value's form."""
    spec = node.meta.get(SPEC_KEY)
    if isinstance(spec, SymSpec):
        found: tuple[int | Expr, ...] = (spec.expr,)
    else:
        found = (*spec.sizes, *spec.strides) if isinstance(spec, TensorSpec) else ()
    for value in found:
        if isinstance(value, Expr):
            yield from value.symbols


def example_number(env: ShapeEnv | None, atom: Symbol) -> int:
    """A value that the symbol may have, for examples."""
    known = None if env is None else env.symbols.get(atom)
    low, high = (None, None) if known is None else (known.range.low, known.range.high)
    return max(_TYPICAL if high is None else min(_TYPICAL, high), 0 if low is None else low)
