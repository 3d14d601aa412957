"""Specs of patches: images taken apart into columns and put together again, and the gradient of windows."""

from __future__ import annotations

from collections.abc import Sequence

from fx_interface.symbols import IntLike, Relation, ShapeEnv, floordiv, product
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule

_Pair = Sequence[int]


def _row_major(sizes: Sequence[IntLike], like: TensorSpec) -> TensorSpec:
    return TensorSpec(tuple(sizes), contiguous_strides(sizes), like.dtype, like.device)


def _places(
    size: Sequence[IntLike], kernel: _Pair, dilation: _Pair, padding: _Pair, stride: _Pair, env: ShapeEnv
) -> IntLike:
    """How often the window fits: at each place of a grid, at least once along each side."""
    total: IntLike = 1
    for side in range(2):
        room = size[side] + 2 * padding[side] - dilation[side] * (kernel[side] - 1) - 1
        if not env.expect(Relation("<=", 0, room)):
            raise RuleMismatchError("a window that does not fit")
        total = total * (floordiv(room, stride[side]) + 1)
    return total


@spec_rule("aten.im2col.default")
def taken_apart(
    x: TensorSpec, kernel: _Pair, dilation: _Pair, padding: _Pair, stride: _Pair, *, env: ShapeEnv
) -> TensorSpec:
    """[N, C, H, W] -> [N, C * kernel, places]."""
    if x.rank not in (3, 4) or not env.expect(Relation("<", 0, product(x.sizes))):
        raise RuleMismatchError("patches of another rank, or of nothing")
    *batch, channels, height, width = x.sizes
    count = _places((height, width), kernel, dilation, padding, stride, env)
    return _row_major((*batch, channels * kernel[0] * kernel[1], count), x)


@spec_rule("aten.col2im.default")
def put_together(
    x: TensorSpec,
    output_size: Sequence[IntLike],
    kernel: _Pair,
    dilation: _Pair,
    padding: _Pair,
    stride: _Pair,
    *,
    env: ShapeEnv,
) -> TensorSpec:
    """[N, C * kernel, places] -> [N, C, *output_size]."""
    if x.rank not in (2, 3) or not env.expect(Relation("<", 0, product(x.sizes))):
        raise RuleMismatchError("patches of another rank, or of nothing")
    *batch, columns, count = x.sizes
    area = kernel[0] * kernel[1]
    found = _places(output_size, kernel, dilation, padding, stride, env)
    if not env.expect(Relation("==", found, count)) or not env.expect(Relation("==", columns % area, 0)):
        raise RuleMismatchError("columns that make no image of this size")
    return _row_major((*batch, columns // area, *output_size), x)


@spec_rule("aten.unfold_backward.default")
def windows_backward(
    grad: TensorSpec, input_sizes: Sequence[IntLike], dim: int, size: int, step: int, *, env: ShapeEnv
) -> TensorSpec:
    """The gradient of ``unfold``: overlapping windows add up."""
    return _row_major(input_sizes, grad)
