"""Layouts agree with those that torch computes, for random shapes, permutations and broadcasts."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec, spec_of
from primtorch_decomps.strides import (
    format_strides,
    is_channels_last,
    is_contiguous,
    is_dense,
    is_inside,
    is_strided_channels_last,
    pointwise_strides,
    preserved_strides,
    view_strides,
)

CPU = torch.device("cpu")
SIZE = st.sampled_from([0, 1, 1, 2, 3, 4])


@st.composite
def tensors(draw: st.DrawFn, rank: int | None = None) -> torch.Tensor:
    """A tensor of random shape, dimension order, gaps and stretched dimensions."""
    count = draw(st.integers(0, 4)) if rank is None else rank
    sizes = [draw(SIZE) for _ in range(count)]
    steps = [draw(st.sampled_from([1, 1, 1, 2])) for _ in sizes]
    order = draw(st.permutations(range(count)))
    base = torch.zeros([sizes[d] * steps[d] for d in order])
    inverse = [list(order).index(d) for d in range(count)]
    x = base.permute(inverse)
    x = x[tuple(slice(None, None, step) for step in steps)]
    stretched = [draw(st.booleans()) and n == 1 for n in sizes]
    return x.expand([3 if wide else n for wide, n in zip(stretched, x.shape, strict=True)])


@settings(max_examples=400, deadline=None)
@given(st.lists(st.integers(0, 4).flatmap(lambda r: tensors(r)), min_size=2, max_size=3))
def test_pointwise(operands: list[torch.Tensor]) -> None:
    try:
        shape = torch.broadcast_shapes(*(x.shape for x in operands))
    except RuntimeError:
        return
    for x, y in itertools.pairwise(operands):
        if torch.broadcast_shapes(x.shape, y.shape) != shape:
            continue
        found = pointwise_strides([spec_of(x), spec_of(y)], tuple(shape), ShapeEnv())
        assert found == (x + y).stride(), (x.shape, x.stride(), y.shape, y.stride())


@settings(max_examples=300, deadline=None)
@given(tensors())
def test_one_tensor(x: torch.Tensor) -> None:
    env, sizes, strides = ShapeEnv(), tuple(x.shape), x.stride()
    assert is_contiguous(sizes, strides) == x.is_contiguous()
    assert pointwise_strides([spec_of(x)], sizes, env) == x.neg().stride()
    assert pointwise_strides([spec_of(x)], sizes, env, numbers=True) == (x + 1.5).stride()
    assert preserved_strides(sizes, strides, env) == torch.empty_like(x).stride()
    assert format_strides(sizes, strides, torch.contiguous_format, env) == torch.zeros(sizes).stride()
    if x.numel():
        covered = torch.zeros(x.numel() * 16)
        covered.as_strided(sizes, strides).fill_(1)
        assert is_dense(sizes, strides, env) == bool(covered[: x.numel()].all())


@settings(max_examples=200, deadline=None)
@given(tensors(4))
def test_channels_last(x: torch.Tensor) -> None:
    sizes, strides = tuple(x.shape), x.stride()
    if x.numel():
        assert is_channels_last(sizes, strides) == x.is_contiguous(memory_format=torch.channels_last)
        suggested = torch.constant_pad_nd(x, [1, 1])  # its result is laid out as the input suggests
        if is_strided_channels_last(sizes, strides, ShapeEnv()):
            assert suggested.is_contiguous(memory_format=torch.channels_last)
        else:
            assert suggested.is_contiguous()
    if x.dim() == 4:
        copy = torch.empty_like(x, memory_format=torch.channels_last)
        assert format_strides(sizes, strides, torch.channels_last, ShapeEnv()) == copy.stride()


@settings(max_examples=300, deadline=None)
@given(tensors(), st.data())
def test_view(x: torch.Tensor, data: st.DataObject) -> None:
    factors = [n for n in x.shape if n > 1]
    target: list[int] = []
    for n in factors if x.numel() else [0, 2]:
        if target and data.draw(st.booleans()):
            target[-1] *= n
        else:
            target.append(n)
    if data.draw(st.booleans()):
        target.insert(data.draw(st.integers(0, len(target))), 1)
    found = view_strides(tuple(x.shape), x.stride(), tuple(target), ShapeEnv())
    try:
        expected = x.view(target).stride()
    except RuntimeError:
        assert found is None
    else:
        assert found == expected


def test_views_of_sizes_from_data_keep_apart_what_cannot_be_one_run() -> None:
    env = ShapeEnv()
    count, columns = env.create_symbol(None, low=0), env.create_symbol(12, low=2)
    before = len(env.guards)
    for width in (12, columns):
        sizes = (2, count, width)
        strides = (count * width, 1, count)
        assert view_strides(sizes, strides, sizes, env) == strides
        assert is_inside(count, count * width, env)
        assert not is_inside(count * width, count, env)
    assert len(env.guards) == before


@pytest.mark.parametrize("traced", [(1, 10), (10, 1), (2, 2)])
def test_the_order_of_symbolic_strides_is_relied_on(traced) -> None:
    """Equal strides are no order: sizes tell the dimensions apart then."""
    env = ShapeEnv()
    strides = tuple(env.create_symbol(hint, low=1) for hint in traced)
    found = pointwise_strides([TensorSpec((3, 2), strides, torch.float32, CPU)], (3, 2), env)
    assert found == torch.zeros(40).as_strided((3, 2), traced).neg().stride()
    for other in ((1, 10), (10, 1), (2, 2), (3, 4)):
        holds = all(guard.relation.holds(dict(zip(env.symbols, other, strict=True))) for guard in env.guards)
        assert not holds or torch.zeros(40).as_strided((3, 2), other).neg().stride() == found
