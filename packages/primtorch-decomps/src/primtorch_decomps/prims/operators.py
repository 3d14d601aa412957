"""Python's operators on ``PrimTensor``, so that decompositions read as formulas; they broadcast but do not promote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primtorch_decomps.prims import ops
from primtorch_decomps.prims.tensor import PrimTensor, current_trace
from primtorch_decomps.shapes import Sizes, broadcast


def broadcast_to(x: PrimTensor, sizes: Sizes) -> PrimTensor:
    """``x`` with size-1 and missing leading dimensions stretched to ``sizes``."""
    if x.sizes == sizes:
        return x
    offset = len(sizes) - len(x.sizes)
    return ops.broadcast_in_dim(x, sizes, tuple(range(offset, len(sizes))))


def broadcast_all(*tensors: PrimTensor) -> list[PrimTensor]:
    """The tensors at their common shape."""
    sizes = broadcast([t.sizes for t in tensors], current_trace().env)
    return [broadcast_to(t, sizes) for t in tensors]


def keep_dims(x: PrimTensor, dims: tuple[int, ...], rank: int) -> PrimTensor:
    """A reduction's result with its removed ``dims`` back as size 1."""
    sizes = list(x.sizes)
    for dim in sorted(dims):
        sizes.insert(dim, 1)
    assert len(sizes) == rank
    return (
        ops.broadcast_in_dim(x, tuple(sizes), tuple(d for d in range(rank) if d not in dims)) if dims else x
    )


def _operator(
    function: Callable[[Any, Any], PrimTensor], swap: bool = False
) -> Callable[[PrimTensor, Any], PrimTensor]:
    def method(self: PrimTensor, other: Any) -> PrimTensor:
        left: Any = self
        if isinstance(other, PrimTensor) and other.sizes != self.sizes:
            left, other = broadcast_all(self, other)
        return function(other, left) if swap else function(left, other)

    return method


_METHODS: dict[str, Any] = {
    "__add__": _operator(ops.add),
    "__radd__": _operator(ops.add),
    "__sub__": _operator(ops.sub),
    "__rsub__": _operator(ops.sub, swap=True),
    "__mul__": _operator(ops.mul),
    "__rmul__": _operator(ops.mul),
    "__truediv__": _operator(ops.div),
    "__rtruediv__": _operator(ops.div, swap=True),
    "__and__": _operator(ops.bitwise_and),
    "__or__": _operator(ops.bitwise_or),
    "__neg__": ops.neg,
}

for _name, _method in _METHODS.items():
    setattr(PrimTensor, _name, _method)
