"""The primitives on ``PrimTensor``: each computes its result's spec and records itself.

One function for each primitive of ``fx_interface.dialects.prims``, of the same name and arguments. Operands of an
arithmetic primitive must already agree in dtype and shape, save that numbers are taken as they are.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import torch

from fx_interface.dialects import prims as p
from fx_interface.dialects.prims import PrimOp
from fx_interface.symbols import IntLike, product
from primtorch_decomps.prims.tensor import PrimTensor, current_trace
from primtorch_decomps.shapes import Sizes
from primtorch_decomps.strides import is_one, view_strides

Operand = Any
"""A ``PrimTensor``, a Python number, or a size."""


def _unary(prim: PrimOp, dtype: torch.dtype | None = None) -> Callable[[PrimTensor], PrimTensor]:
    def call(x: PrimTensor) -> PrimTensor:
        return current_trace().emit(prim, (x,), x.sizes, dtype or x.dtype, x.device)

    call.__name__ = call.__qualname__ = prim.name
    call.__doc__ = prim.schema
    return call


def _binary(prim: PrimOp, dtype: torch.dtype | None = None) -> Callable[[Operand, Operand], PrimTensor]:
    def call(x: Operand, y: Operand) -> PrimTensor:
        model: PrimTensor = x if isinstance(x, PrimTensor) else y
        if isinstance(x, PrimTensor) and isinstance(y, PrimTensor):
            assert (x.dtype, x.rank) == (y.dtype, y.rank), (prim, x, y)
        return current_trace().emit(prim, (x, y), model.sizes, dtype or model.dtype, model.device)

    call.__name__ = call.__qualname__ = prim.name
    call.__doc__ = prim.schema
    return call


neg = _unary(p.neg)
abs = _unary(p.abs)
sign = _unary(p.sign)
exp = _unary(p.exp)
exp2 = _unary(p.exp2)
expm1 = _unary(p.expm1)
log = _unary(p.log)
log2 = _unary(p.log2)
log10 = _unary(p.log10)
log1p = _unary(p.log1p)
sqrt = _unary(p.sqrt)
rsqrt = _unary(p.rsqrt)
reciprocal = _unary(p.reciprocal)
sin = _unary(p.sin)
cos = _unary(p.cos)
tan = _unary(p.tan)
asin = _unary(p.asin)
acos = _unary(p.acos)
atan = _unary(p.atan)
sinh = _unary(p.sinh)
cosh = _unary(p.cosh)
tanh = _unary(p.tanh)
asinh = _unary(p.asinh)
acosh = _unary(p.acosh)
atanh = _unary(p.atanh)
erf = _unary(p.erf)
erfc = _unary(p.erfc)
lgamma = _unary(p.lgamma)
sigmoid = _unary(p.sigmoid)
floor = _unary(p.floor)
ceil = _unary(p.ceil)
trunc = _unary(p.trunc)
round = _unary(p.round)
isnan = _unary(p.isnan, torch.bool)
isinf = _unary(p.isinf, torch.bool)
logical_not = _unary(p.logical_not, torch.bool)
bitwise_not = _unary(p.bitwise_not)
clone = _unary(p.clone)

add = _binary(p.add)
sub = _binary(p.sub)
mul = _binary(p.mul)
div = _binary(p.div)
floor_div = _binary(p.floor_div)
trunc_div = _binary(p.trunc_div)
remainder = _binary(p.remainder)
fmod = _binary(p.fmod)
pow = _binary(p.pow)
atan2 = _binary(p.atan2)
maximum = _binary(p.maximum)
minimum = _binary(p.minimum)
eq = _binary(p.eq, torch.bool)
ne = _binary(p.ne, torch.bool)
lt = _binary(p.lt, torch.bool)
le = _binary(p.le, torch.bool)
gt = _binary(p.gt, torch.bool)
ge = _binary(p.ge, torch.bool)
bitwise_and = _binary(p.bitwise_and)
bitwise_or = _binary(p.bitwise_or)
bitwise_xor = _binary(p.bitwise_xor)
shift_left = _binary(p.shift_left)
shift_right = _binary(p.shift_right)


def where(condition: PrimTensor, x: Operand, y: Operand) -> PrimTensor:
    """``x`` where ``condition`` (bool) holds, else ``y``; one branch at least is a tensor."""
    model: PrimTensor = x if isinstance(x, PrimTensor) else y
    return current_trace().emit(p.where, (condition, x, y), model.sizes, model.dtype, model.device)


def convert_dtype(x: PrimTensor, dtype: torch.dtype) -> PrimTensor:
    """``x`` as ``dtype``; ``x`` itself if it has it already."""
    if x.dtype is dtype:
        return x
    return current_trace().emit(p.convert_dtype, (x, dtype), x.sizes, dtype, x.device)


def broadcast_in_dim(x: PrimTensor, sizes: Sizes, dims: Sequence[int]) -> PrimTensor:
    """Axis i of ``x`` becomes axis ``dims[i]`` of ``sizes``; ``x`` itself if nothing changes."""
    if x.sizes == sizes:
        return x
    strides = _broadcast_strides(x, sizes, dims)
    return current_trace().emit(
        p.broadcast_in_dim, (x, sizes, tuple(dims)), sizes, x.dtype, x.device, strides
    )


def _broadcast_strides(x: PrimTensor, sizes: Sizes, dims: Sequence[int]) -> Sizes:
    """0 where a dimension is stretched; a new dimension of size 1 steps over all that is inside it."""
    strides: list[IntLike] = [0] * len(sizes)
    sources = dict(zip(dims, range(len(dims)), strict=True))
    for dim in range(len(sizes) - 1, -1, -1):
        source = sources.get(dim)
        if source is not None:
            stretched = is_one(x.sizes[source]) and not is_one(sizes[dim])
            strides[dim] = 0 if stretched else x.strides[source]
        elif is_one(sizes[dim]):
            strides[dim] = sizes[dim + 1] * strides[dim + 1] if dim + 1 < len(sizes) else 1
    return tuple(strides)


def reshape(x: PrimTensor, sizes: Sizes) -> PrimTensor:
    """The elements of ``x`` in row-major order as ``sizes``; ``x`` itself if it has them already."""
    if x.sizes == sizes:
        return x
    trace = current_trace()
    strides = None if x._strides is None else view_strides(x.sizes, x.strides, sizes, trace.env)
    return trace.emit(p.reshape, (x, sizes), sizes, x.dtype, x.device, strides)


def permute(x: PrimTensor, dims: Sequence[int]) -> PrimTensor:
    """Axis i of the result is axis ``dims[i]`` of ``x``."""
    dims = tuple(dims)
    if dims == tuple(range(len(dims))):
        return x
    sizes, strides = x.sizes, x.strides
    return current_trace().emit(
        p.permute,
        (x, dims),
        tuple([sizes[d] for d in dims]),
        x.dtype,
        x.device,
        tuple([strides[d] for d in dims]),
    )


def slice(
    x: PrimTensor,
    starts: Sequence[IntLike],
    limits: Sequence[IntLike],
    steps: Sequence[IntLike],
    sizes: Sizes,
) -> PrimTensor:
    """``x[start:limit:step]`` on every axis; ``sizes`` is the result's shape. ``x`` itself if nothing is cut off."""
    whole = x.sizes == sizes and builtins.all(isinstance(s, int) and s == 0 for s in starts)
    if whole and builtins.all(isinstance(s, int) and s == 1 for s in steps):
        return x
    strides = tuple([stride * step for stride, step in zip(x.strides, steps, strict=True)])
    args = (x, tuple(starts), tuple(limits), tuple(steps))
    return current_trace().emit(p.slice_, args, sizes, x.dtype, x.device, strides)


def flip(x: PrimTensor, dims: Sequence[int]) -> PrimTensor:
    """``x`` read backwards along ``dims``."""
    return current_trace().emit(p.flip, (x, tuple(dims)), x.sizes, x.dtype, x.device)


def pad(x: PrimTensor, low: Sequence[IntLike], high: Sequence[IntLike], value: Any) -> PrimTensor:
    """Constant borders of ``low`` and ``high`` elements on every axis, widths >= 0."""
    sizes = tuple([size + before + after for size, before, after in zip(x.sizes, low, high, strict=True)])
    return current_trace().emit(p.pad, (x, tuple(low), tuple(high), value), sizes, x.dtype, x.device)


def cat(tensors: Sequence[PrimTensor], dim: int) -> PrimTensor:
    """Tensors of one dtype joined along ``dim``."""
    first = tensors[0]
    total: IntLike = 0
    for tensor in tensors:
        total = total + tensor.sizes[dim]
    sizes = (*first.sizes[:dim], total, *first.sizes[dim + 1 :])
    return current_trace().emit(p.cat, (tuple(tensors), dim), sizes, first.dtype, first.device)


def index(x: PrimTensor, indices: Sequence[PrimTensor | None], wraps: bool = True) -> PrimTensor:
    """``x[indices]``: integer indices of one shape, None keeps a dimension; negative ones fail unless it ``wraps``."""
    indices = (*indices, *[None] * (x.rank - len(indices)))
    used = [axis for axis, item in enumerate(indices) if item is not None]
    chosen = indices[used[0]]
    assert chosen is not None
    rest = [size for size, item in zip(x.sizes, indices, strict=True) if item is None]
    place = used[0] if used[-1] - used[0] + 1 == len(used) else 0
    sizes = (*rest[:place], *chosen.sizes, *rest[place:])
    args = (x, indices) if wraps else (x, indices, False)
    return current_trace().emit(p.index, args, sizes, x.dtype, x.device)


def gather(x: PrimTensor, dim: int, index: PrimTensor) -> PrimTensor:
    """``x`` picked along ``dim`` by an int64 index of the result's shape."""
    return current_trace().emit(p.gather, (x, dim, index), index.sizes, x.dtype, x.device)


def _reduction(
    prim: PrimOp, dtype: torch.dtype | None = None
) -> Callable[[PrimTensor, Sequence[int]], PrimTensor]:
    def call(x: PrimTensor, dims: Sequence[int]) -> PrimTensor:
        sizes = tuple([size for axis, size in enumerate(x.sizes) if axis not in dims])
        return current_trace().emit(prim, (x, tuple(dims)), sizes, dtype or x.dtype, x.device)

    call.__name__ = call.__qualname__ = prim.name
    call.__doc__ = prim.schema
    return call


sum = _reduction(p.sum)
prod = _reduction(p.prod)
amax = _reduction(p.amax)
amin = _reduction(p.amin)
any = _reduction(p.any, torch.bool)
all = _reduction(p.all, torch.bool)


def _arg_reduction(prim: PrimOp) -> Callable[[PrimTensor, int], PrimTensor]:
    def call(x: PrimTensor, dim: int) -> PrimTensor:
        sizes = x.sizes[:dim] + x.sizes[dim + 1 :]
        return current_trace().emit(prim, (x, dim), sizes, torch.int64, x.device)

    call.__name__ = call.__qualname__ = prim.name
    call.__doc__ = prim.schema
    return call


argmax = _arg_reduction(p.argmax)
argmin = _arg_reduction(p.argmin)


def full(sizes: Sizes, value: Any, dtype: torch.dtype, device: torch.device) -> PrimTensor:
    """A tensor of one value, which may be a size."""
    return current_trace().emit(p.full, (sizes, value, dtype, device), sizes, dtype, device)


def iota(
    length: IntLike, start: IntLike, step: IntLike, dtype: torch.dtype, device: torch.device
) -> PrimTensor:
    """``start + i * step`` for i below ``length``; an integer dtype."""
    return current_trace().emit(p.iota, (length, start, step, dtype, device), (length,), dtype, device)


def numel(x: PrimTensor, dims: Sequence[int]) -> IntLike:
    """The product of the sizes of ``dims``."""
    return product([x.sizes[d] for d in dims])
