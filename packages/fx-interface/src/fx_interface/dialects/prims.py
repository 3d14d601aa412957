"""The ``prims`` dialect: the closed set of primitive operators that a code generator must implement.

A graph in this dialect calls primitives (``PrimOp``) and, as library calls, plain ATen overloads. Primitives are
functional. Operands of an arithmetic primitive have one dtype and one shape, or are Python numbers (or sizes);
broadcasting and conversion are primitives of their own. Each primitive can be called on real tensors: that is its
reference, in one torch expression.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from fx_interface.python_runtime.quick_dataclasses import dataclass


class PrimKind(Enum):
    """How a code generator treats a primitive."""

    POINTWISE = "pointwise"
    VIEW = "view"
    REDUCTION = "reduction"
    INDEXING = "indexing"
    CREATION = "creation"


@dataclass(frozen=True, slots=True, eq=False)
class PrimOp:
    """One primitive. ``schema`` documents it; calling it runs the reference."""

    name: str
    kind: PrimKind
    schema: str
    reference: Callable[..., Any]

    @property
    def __name__(self) -> str:  # torch.fx prints a call target by its __name__
        return self.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.reference(*args, **kwargs)

    def __repr__(self) -> str:
        return f"prims.{self.name}"

    def __reduce__(self) -> tuple[Callable[[str], PrimOp], tuple[str]]:
        return (prim, (self.name,))


PRIMS: dict[str, PrimOp] = {}
"""Every primitive by name."""


def prim(name: str) -> PrimOp:
    """The primitive of that name; KeyError if there is none."""
    return PRIMS[name]


def _prim(name: str, kind: PrimKind, schema: str, reference: Callable[..., Any]) -> PrimOp:
    if name in PRIMS:
        raise ValueError(f"primitive {name!r} is declared twice: {PRIMS[name].schema} and {schema}")
    PRIMS[name] = PrimOp(name, kind, schema, reference)
    return PRIMS[name]


def _unary(name: str, reference: Callable[..., Any]) -> PrimOp:
    return _prim(name, PrimKind.POINTWISE, f"{name}(Tensor x) -> Tensor", reference)


def _binary(name: str, reference: Callable[..., Any], result: str = "Tensor") -> PrimOp:
    return _prim(name, PrimKind.POINTWISE, f"{name}(Tensor|Number x, Tensor|Number y) -> {result}", reference)


neg = _unary("neg", torch.neg)
abs = _unary("abs", torch.abs)
sign = _unary("sign", torch.sign)
exp = _unary("exp", torch.exp)
exp2 = _unary("exp2", torch.exp2)
expm1 = _unary("expm1", torch.expm1)
log = _unary("log", torch.log)
log2 = _unary("log2", torch.log2)
log10 = _unary("log10", torch.log10)
log1p = _unary("log1p", torch.log1p)
sqrt = _unary("sqrt", torch.sqrt)
rsqrt = _unary("rsqrt", torch.rsqrt)
reciprocal = _unary("reciprocal", torch.reciprocal)
sin = _unary("sin", torch.sin)
cos = _unary("cos", torch.cos)
tan = _unary("tan", torch.tan)
asin = _unary("asin", torch.asin)
acos = _unary("acos", torch.acos)
atan = _unary("atan", torch.atan)
sinh = _unary("sinh", torch.sinh)
cosh = _unary("cosh", torch.cosh)
tanh = _unary("tanh", torch.tanh)
asinh = _unary("asinh", torch.asinh)
acosh = _unary("acosh", torch.acosh)
atanh = _unary("atanh", torch.atanh)
erf = _unary("erf", torch.erf)
erfc = _unary("erfc", torch.erfc)
lgamma = _unary("lgamma", torch.lgamma)
sigmoid = _unary("sigmoid", torch.sigmoid)
floor = _unary("floor", torch.floor)
ceil = _unary("ceil", torch.ceil)
trunc = _unary("trunc", torch.trunc)
round = _unary("round", torch.round)
isnan = _unary("isnan", torch.isnan)
isinf = _unary("isinf", torch.isinf)
logical_not = _unary("logical_not", torch.logical_not)
bitwise_not = _unary("bitwise_not", torch.bitwise_not)

add = _binary("add", operator.add)
sub = _binary("sub", operator.sub)
mul = _binary("mul", operator.mul)
div = _binary("div", operator.truediv)
floor_div = _binary("floor_div", lambda x, y: torch.floor_divide(x, y))
trunc_div = _binary("trunc_div", lambda x, y: torch.div(x, y, rounding_mode="trunc"))
remainder = _binary("remainder", torch.remainder)
fmod = _binary("fmod", torch.fmod)
pow = _binary("pow", torch.pow)
atan2 = _binary("atan2", torch.atan2)
maximum = _binary("maximum", lambda x, y: torch.maximum(*_as_tensors(x, y)))
minimum = _binary("minimum", lambda x, y: torch.minimum(*_as_tensors(x, y)))
eq = _binary("eq", operator.eq, "Tensor(bool)")
ne = _binary("ne", operator.ne, "Tensor(bool)")
lt = _binary("lt", operator.lt, "Tensor(bool)")
le = _binary("le", operator.le, "Tensor(bool)")
gt = _binary("gt", operator.gt, "Tensor(bool)")
ge = _binary("ge", operator.ge, "Tensor(bool)")
bitwise_and = _binary("bitwise_and", operator.and_)
bitwise_or = _binary("bitwise_or", operator.or_)
bitwise_xor = _binary("bitwise_xor", operator.xor)
shift_left = _binary("shift_left", operator.lshift)
shift_right = _binary("shift_right", operator.rshift)


def _as_tensors(x: Tensor | float, y: Tensor | float) -> tuple[Tensor, Tensor]:
    model = x if isinstance(x, Tensor) else y
    assert isinstance(model, Tensor)
    return (
        x if isinstance(x, Tensor) else torch.full_like(model, x),
        y if isinstance(y, Tensor) else torch.full_like(model, y),
    )


def _where(condition: Tensor, x: Tensor | float, y: Tensor | float) -> Tensor:
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        raise TypeError("prims.where needs a tensor for one branch at least")
    return torch.where(condition, *_as_tensors(x, y))


where = _prim(
    "where", PrimKind.POINTWISE, "where(Tensor(bool) c, Tensor|Number x, Tensor|Number y) -> Tensor", _where
)
convert_dtype = _prim(
    "convert_dtype",
    PrimKind.POINTWISE,
    "convert_dtype(Tensor x, dtype d) -> Tensor",
    lambda x, dtype: x.to(dtype),
)
clone = _prim("clone", PrimKind.POINTWISE, "clone(Tensor x) -> Tensor", torch.clone)


def _broadcast_in_dim(x: Tensor, sizes: Sequence[int], dims: Sequence[int]) -> Tensor:
    shape = [1] * len(sizes)
    for axis, dim in enumerate(dims):
        shape[dim] = x.shape[axis]
    return x.reshape(shape).expand(list(sizes))


def _slice(x: Tensor, starts: Sequence[int], limits: Sequence[int], steps: Sequence[int]) -> Tensor:
    return x[tuple(slice(*bounds) for bounds in zip(starts, limits, steps, strict=True))]


broadcast_in_dim = _prim(
    "broadcast_in_dim",
    PrimKind.VIEW,
    "broadcast_in_dim(Tensor x, size[] sizes, int[] dims) -> Tensor: axis i of x becomes axis dims[i]",
    _broadcast_in_dim,
)
reshape = _prim(
    "reshape",
    PrimKind.VIEW,
    "reshape(Tensor x, size[] sizes) -> Tensor",
    lambda x, sizes: x.reshape(list(sizes)),
)
permute = _prim(
    "permute", PrimKind.VIEW, "permute(Tensor x, int[] dims) -> Tensor", lambda x, dims: x.permute(list(dims))
)
slice_ = _prim(
    "slice",
    PrimKind.VIEW,
    "slice(Tensor x, size[] starts, size[] limits, size[] steps) -> Tensor: 0 <= start <= limit <= size, step > 0",
    _slice,
)
flip = _prim(
    "flip", PrimKind.VIEW, "flip(Tensor x, int[] dims) -> Tensor", lambda x, dims: x.flip(list(dims))
)


def _pad(x: Tensor, low: Sequence[int], high: Sequence[int], value: float) -> Tensor:
    widths = [n for pair in zip(reversed(low), reversed(high), strict=True) for n in pair]
    return torch.nn.functional.pad(x, widths, value=value)


pad = _prim(
    "pad",
    PrimKind.INDEXING,
    "pad(Tensor x, size[] low, size[] high, Number value) -> Tensor: constant borders, widths >= 0",
    _pad,
)
cat = _prim(
    "cat", PrimKind.INDEXING, "cat(Tensor[] xs, int dim) -> Tensor", lambda xs, dim: torch.cat(list(xs), dim)
)


def _index(x: Tensor, indices: Sequence[Tensor | None], wraps: bool = True) -> Tensor:
    for index in () if wraps else indices:
        if index is not None and bool((index < 0).any()):
            raise IndexError("index out of range in self")
    found: Tensor = torch.ops.aten.index.Tensor(x, list(indices))  # x[i] of a 0-dimensional i would be a view
    return found


index = _prim(
    "index",
    PrimKind.INDEXING,
    "index(Tensor x, Tensor(int)|None[] indices, bool wraps=True) -> Tensor: x[indices], indices of one shape, "
    "negative ones wrap, or are out of range; the index dimensions stand where the first index stood if the indices "
    "are adjacent, else first",
    _index,
)
gather = _prim(
    "gather", PrimKind.INDEXING, "gather(Tensor x, int dim, Tensor(int64) index) -> Tensor", torch.gather
)


def _reduction(name: str, reference: Callable[..., Any], result: str = "Tensor") -> PrimOp:
    return _prim(
        name, PrimKind.REDUCTION, f"{name}(Tensor x, int[] dims) -> {result}: dims are removed", reference
    )


def _reduce_each(function: Callable[[Tensor, int], Tensor]) -> Callable[[Tensor, Sequence[int]], Tensor]:
    def reference(x: Tensor, dims: Sequence[int]) -> Tensor:
        for dim in sorted(dims, reverse=True):
            x = function(x, dim)
        return x

    return reference


def _sum(x: Tensor, dims: Sequence[int]) -> Tensor:
    return torch.sum(x, list(dims), dtype=x.dtype) if dims else x.clone()


sum = _reduction("sum", _sum)
prod = _reduction("prod", _reduce_each(lambda x, dim: torch.prod(x, dim, dtype=x.dtype)))
amax = _reduction("amax", lambda x, dims: torch.amax(x, list(dims)) if dims else x.clone())
amin = _reduction("amin", lambda x, dims: torch.amin(x, list(dims)) if dims else x.clone())
any = _reduction("any", _reduce_each(torch.any), "Tensor(bool)")
all = _reduction("all", _reduce_each(torch.all), "Tensor(bool)")
argmax = _prim(
    "argmax", PrimKind.REDUCTION, "argmax(Tensor x, int dim) -> Tensor(int64): first of equals", torch.argmax
)
argmin = _prim(
    "argmin", PrimKind.REDUCTION, "argmin(Tensor x, int dim) -> Tensor(int64): first of equals", torch.argmin
)

full = _prim(
    "full",
    PrimKind.CREATION,
    "full(size[] sizes, Number|size value, dtype d, device v) -> Tensor",
    lambda sizes, value, dtype, device: torch.full(list(sizes), value, dtype=dtype, device=device),
)
iota = _prim(
    "iota",
    PrimKind.CREATION,
    "iota(size length, size start, size step, dtype d, device v) -> Tensor: start + i * step, integer dtype",
    lambda length, start, step, dtype, device: (
        torch.arange(length, device=device).mul(step).add(start).to(dtype)
    ),
)
