"""Picking by index tensors, with the layouts that eager gives, and the gradients of slices."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator

X = torch.randn(4, 5, 6, 7)
ROW = torch.tensor([1, 0, 2])
COLUMN = torch.tensor([[0], [3]])
LAYOUTS = [X, X.permute(3, 1, 0, 2), X.permute(0, 2, 3, 1), X[:, ::2]]
INDICES = {
    "first": [ROW],
    "second": [None, ROW],
    "broadcast": [ROW, torch.tensor([[0], [2]])],
    "apart": [None, ROW, None, ROW],
    "ends": [ROW, None, None, torch.tensor([[0], [1]])],
    "last": [None, None, torch.tensor([[0], [1]]), ROW],
    "all": [ROW, ROW, ROW, ROW],
    "scalar": [None, torch.tensor(1)],
    "negative": [torch.tensor([-1, -2])],
    "transposed": [None, None, None, (torch.arange(6).view(2, 3).t() % 4)],
    "int32": [ROW.int()],
}


@pytest.mark.parametrize("layout", range(len(LAYOUTS)))
@pytest.mark.parametrize("name", INDICES)
def test_index(name: str, layout: int) -> None:
    check_operator("aten.index.Tensor", LAYOUTS[layout], INDICES[name])


def test_gather_and_index_select() -> None:
    x = torch.randn(3, 4)
    check_operator("aten.gather.default", x, 1, torch.randint(0, 4, (3, 2)))
    check_operator("aten.gather.default", x.t(), -1, torch.randint(0, 3, (2, 3)))
    check_operator("aten.index_select.default", x, 1, torch.tensor([3, 0]))
    check_operator("aten.index_select.default", x, 0, torch.tensor(2))


@pytest.mark.parametrize(
    ("start", "end", "step"), [(0, 4, 1), (1, 3, 1), (-2, 9, 1), (0, 4, 2), (1, 4, 2), (3, 1, 1)]
)
def test_slices_back(start: int, end: int, step: int) -> None:
    x = torch.randn(3, 4, 2)
    grad = torch.randn_like(x[:, start:end:step])
    check_operator("aten.slice_backward.default", grad, [3, 4, 2], 1, start, end, step)
    if grad.numel():
        check_operator("aten.slice_scatter.default", x, grad, 1, start, end, step)


def test_selections_back() -> None:
    grad = torch.randn(3, 2)
    check_operator("aten.select_backward.default", grad, [3, 4, 2], 1, -1)
    check_operator("aten.select_backward.default", grad.t().contiguous().t(), [4, 3, 2], 0, 0)
    check_operator("aten.select_scatter.default", torch.randn(3, 4, 2), grad, 1, 2)
