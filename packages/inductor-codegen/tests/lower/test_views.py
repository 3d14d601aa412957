"""Views: the index map and the layout of each view agree with torch."""

from __future__ import annotations

from itertools import product as points

import pytest
import torch

from fx_interface.symbols import ShapeEnv
from inductor_codegen.ir.index import Index
from inductor_codegen.lower.views import Broadcast, Flip, Layout, Permute, Slice, View, reshape

ENV = ShapeEnv()

CASES: list[tuple[View, tuple[int, ...], torch.Tensor]] = []


def case(view: View, operand: torch.Tensor, result: torch.Tensor) -> None:
    CASES.append((view, tuple(operand.shape), result))


X = torch.arange(24).reshape(2, 3, 4)
case(Permute((2, 0, 1), (4, 2, 3)), X, X.permute(2, 0, 1))
case(Broadcast((2, 3, 4), (1, 2, 3), (5, 2, 3, 4)), X, X.expand(5, 2, 3, 4))
case(Broadcast((2, 1), (0, 2), (2, 3, 4)), X[:, 0, :1], X[:, 0, :1].reshape(2, 1, 1).expand(2, 3, 4))
case(Slice((0, 1, 0), (1, 1, 2), (2, 2, 2)), X, X[:, 1:3, ::2])
case(Flip((0, 2), (2, 3, 4)), X, X.flip(0, 2))
case(reshape((2, 3, 4), (6, 4)), X, X.reshape(6, 4))
case(reshape((2, 3, 4), (2, 2, 6)), X, X.reshape(2, 2, 6))
case(reshape((2, 3, 4), (4, 3, 2)), X, X.reshape(4, 3, 2))
case(reshape((2, 3, 4), (24,)), X, X.reshape(24))
case(reshape((2, 3, 4), (1, 2, 1, 12)), X, X.reshape(1, 2, 1, 12))


@pytest.mark.parametrize(("view", "sizes", "result"), CASES)
def test_map_gives_the_operands_element(view: View, sizes: tuple[int, ...], result: torch.Tensor) -> None:
    operand = X.reshape(-1)[: torch.Size(sizes).numel()].reshape(sizes)
    if sizes == (2, 1):
        operand = X[:, 0, :1]
    for point in points(*map(range, result.shape)):
        mapped = [index.as_constant for index in view.map(tuple(map(Index, point)), ENV)]
        assert operand[tuple(mapped)] == result[point]  # type: ignore[arg-type]


@pytest.mark.parametrize(("view", "sizes", "result"), CASES)
def test_restride_agrees_with_map(view: View, sizes: tuple[int, ...], result: torch.Tensor) -> None:
    operand = torch.empty(sizes)
    layout = view.restride(Layout(sizes, operand.stride(), 0))
    if layout is None:
        assert isinstance(view, Flip)
        return
    for point in points(*map(range, result.shape)):
        mapped = view.map(tuple(map(Index, point)), ENV)
        address = sum(int(i.const) * s for i, s in zip(mapped, operand.stride(), strict=True))  # type: ignore[call-overload]
        assert layout.address(tuple(map(Index, point))).as_constant == address


def test_reshape_of_transposed_memory_has_no_strides() -> None:
    assert reshape((3, 2), (6,)).restride(Layout((3, 2), (1, 3), 0)) is None
    assert reshape((3, 2, 4), (3, 8)).restride(Layout((3, 2, 4), (1, 12, 3), 0)) == Layout((3, 8), (1, 3), 0)


def test_dimensions_of_one_element_go_on_in_row_major_order() -> None:
    heads = reshape((2, 1, 64), (2, 1, 4, 16)).restride(Layout((2, 1, 64), (192, 192, 1), 0))
    assert heads == Layout(
        (2, 1, 4, 16), (192, 64, 16, 1), 0
    )  # transposed, kernels of attention check the 64


def test_symbolic_reshape_is_cut_into_segments() -> None:
    env = ShapeEnv()
    s, t = env.create_symbol(5, low=2), env.create_symbol(7, low=2)
    split = reshape((s, t, 32), (s * t, 4, 8))
    assert [(list(x.operand), list(x.result)) for x in split.segments] == [([0, 1], [0]), ([2], [1, 2])]
    same = reshape((s * t, 4, 8), (s, t, 32))
    assert [(list(x.operand), list(x.result)) for x in same.segments] == [([0], [0, 1]), ([1, 2], [2])]
