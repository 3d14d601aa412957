"""Joining, padding, rolling, flipping, repeating, triangles."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator

X = torch.randn(3, 4)
IMAGE = torch.randn(2, 3, 4, 5)


def test_cat() -> None:
    check_operator("aten.cat.default", [X, X[:1], X], 0)
    check_operator("aten.cat.default", [X, X.bfloat16(), torch.arange(12).view(3, 4)], -1)
    check_operator("aten.cat.default", [torch.empty(0), X], 0)
    check_operator("aten.cat.default", [X], 1)
    last = IMAGE.to(memory_format=torch.channels_last)
    check_operator("aten.cat.default", [last, last], 1)
    check_operator("aten.cat.default", [last, IMAGE], 1)
    check_operator("aten.cat.default", [X.t(), X.t()], 0)


def test_stack() -> None:
    for dim in (0, 1, -1):
        check_operator("aten.stack.default", [X, X * 2], dim)
    check_operator("aten.stack.default", [X.t(), X.t()])
    last = IMAGE.to(memory_format=torch.channels_last)
    for dim in range(5):
        check_operator("aten.stack.default", [last, last * 2, last], dim)


@pytest.mark.parametrize("pad", [[1, 2], [0, 0], [-1, 1], [1, 0, 0, 2], [-1, -1, -1, 0], [2, -2]], ids=str)
def test_padding(pad: list[int]) -> None:
    check_operator("aten.constant_pad_nd.default", X, pad, 1.5)
    check_operator("aten.constant_pad_nd.default", X > 0, pad, 0)
    check_operator("aten.constant_pad_nd.default", IMAGE.to(memory_format=torch.channels_last), pad)


def test_moving() -> None:
    check_operator("aten.flip.default", X, [0, 1])
    check_operator("aten.flip.default", X.t(), [])
    check_operator("aten.roll.default", X, [1], [0])
    check_operator("aten.roll.default", X, [-3, 5], [0, 1])
    check_operator("aten.roll.default", X, [2])
    check_operator("aten.repeat.default", X, [2, 1, 3])
    check_operator("aten.repeat.default", X, [0, 2])
    check_operator("aten.repeat.default", torch.randn(()), [2, 2])


@pytest.mark.parametrize("diagonal", [-1, 0, 2])
@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles(name: str, diagonal: int) -> None:
    check_operator(f"aten.{name}.default", X, diagonal)
    check_operator(f"aten.{name}.default", IMAGE.transpose(2, 3), diagonal)
    check_operator(f"aten.{name}.default", X > 0, diagonal)
