"""Picking by index tensors, with the layouts that eager gives, and the gradients of slices."""

from __future__ import annotations

import pytest
import torch

from fx_interface.symbols import Relation, ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps import LIBRARY
from primtorch_decomps.testing import check_operator, specs_of

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


def test_what_is_written_into_a_slice_has_its_size() -> None:
    env = ShapeEnv()
    size, length, end = (env.create_symbol(hint) for hint in (9, 4, 8))
    x, src = (TensorSpec((n,), (1,), torch.float32, torch.device("cpu")) for n in (size, length))
    LIBRARY.infer(torch.ops.aten.slice_scatter.default, (x, src, 0, 0, end, 2), {}, env)
    assert env.known(Relation("==", 2 * length, end)) is None
    assert env.known(Relation("==", length, (end + 1) // 2)) is True


def test_a_slice_of_another_size_is_eagers_to_refuse() -> None:
    with pytest.raises(RuntimeError, match="size"):
        LIBRARY.infer(
            torch.ops.aten.slice_scatter.default,
            specs_of((torch.ones(4), torch.ones(3), 0, 0, 2)),
            {},
            ShapeEnv(),
        )
