"""What a graph computed is dropped in a later one: the runtime's own weak references to it end no graph."""

from __future__ import annotations

import weakref

import pytest
import torch
from torch import Tensor

import fxstack


def _two_results(x: Tensor, w: Tensor) -> Tensor:
    first = x @ w
    second = first * 2  # a result that another is computed from is watched
    print("between")
    first = first + second  # the only name of a result of the first graph is given away
    second = second * 2
    print("behind")
    first = first * second
    second = first.sin()
    return first.sum() + second.sum()


def _kept_by_the_program(x: Tensor, w: Tensor) -> tuple[Tensor, bool]:
    first = x @ w
    second = first * 2  # a result that another is computed from is watched
    reference = weakref.ref(first)
    print("between")
    first = second * 2
    return first.sum(), reference() is None


def test_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    x, w = torch.randn(4, 4), torch.randn(4, 4, requires_grad=True)
    expected = _two_results(x, w)
    expected_gradient = torch.autograd.grad(expected, w)[0]
    with fxstack.recording() as record:
        compiled = fxstack.compile(_two_results)
        for _ in range(3):
            found = compiled(x, w)
            gradient = torch.autograd.grad(found, w)[0]
            torch.testing.assert_close(found, expected)
            torch.testing.assert_close(gradient, expected_gradient)
    data = record.data()
    assert sum(one["role"] == "captured" for one in data["graphs"]) == 3
    assert {one["code"] for one in data["breaks"]} == {"CAP236"}


def test_references_of_the_program_tell(capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    x, w = torch.randn(4, 4), torch.randn(4, 4, requires_grad=True)
    expected = _kept_by_the_program(x, w)
    compiled = fxstack.compile(_kept_by_the_program)
    for _ in range(3):
        found = compiled(x, w)
        torch.testing.assert_close(found[0], expected[0])
        assert found[1] is expected[1] is True
