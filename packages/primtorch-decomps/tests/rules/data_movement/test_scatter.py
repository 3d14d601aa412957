"""Specs of operators that write by index, sort, accumulate or make fresh tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of
from primtorch_decomps import LIBRARY
from primtorch_decomps.testing import check_open_spec, check_operator, check_spec

X = torch.randn(4, 5)
INDEX = torch.randint(0, 4, (2, 5))
PLACES = torch.randint(0, 4, (5, 5))
"""More of them than are written by a choice at each point."""
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    (
        "embedding_dense_backward.default",
        (torch.randn(2, 3, 6), torch.randint(0, 7, (2, 3)), 7, -1, False),
        {},
    ),
    ("index_put.default", (X, [torch.tensor([0, 2])], torch.randn(2, 5)), {}),
    ("scatter.src", (X, 0, PLACES, torch.randn(5, 5)), {}),
    ("scatter.value", (X, 0, PLACES, 1.5), {}),
    ("scatter_add.default", (X, 0, PLACES, torch.randn(5, 5)), {}),
    ("index_add.default", (X, 0, torch.tensor([0, 2]), torch.randn(2, 5)), {}),
    ("cumsum.default", (X, 1), {}),
    ("cumsum.default", (torch.ones(3, dtype=torch.bool), 0), {}),
    ("topk.default", (X, 2), {}),
    ("sort.default", (X, 0), {}),
    ("sort.stable", (X.t(),), {"stable": True}),
    ("as_strided.default", (X, [2, 2], [5, 2], 1), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), CASES)
def test_specs(name: str, args: Any, kwargs: Any) -> None:
    check_operator(f"aten.{name}", *args, library_call=True, **kwargs)


ROWS = torch.tensor([0, 2])
SOURCE = torch.randn(2, 5)
CHANGED: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "index_put.default": (([ROWS], SOURCE), {}),
    "scatter.src": ((0, INDEX, SOURCE), {}),
    "scatter.value": ((0, INDEX, 2.0), {}),
    "scatter.reduce": ((0, INDEX, SOURCE), {"reduce": "add"}),
    "scatter_add.default": ((0, INDEX, SOURCE), {}),
    "scatter_reduce.two": ((0, INDEX, SOURCE, "sum"), {}),
    "index_add.default": ((0, ROWS, SOURCE), {}),
    "index_copy.default": ((0, ROWS, SOURCE), {}),
    "index_fill.int_Scalar": ((0, ROWS, 2.0), {}),
    "masked_scatter.default": ((torch.rand(4, 5) > 0.5, torch.randn(20)), {}),
}


@pytest.mark.parametrize("name", CHANGED)
def test_layout_follows_the_tensor_that_is_changed(name: str) -> None:
    for x in (X.contiguous(), torch.randn(5, 4).t(), torch.randn(8, 5)[::2]):
        packet, overload = name.split(".")
        args, kwargs = CHANGED[name]
        check_spec(getattr(getattr(torch.ops.aten, packet), overload), (x, *args), kwargs)


def test_random_and_empty_tensors() -> None:
    for x in (torch.rand(4, 5), torch.rand(5, 4).t()):
        for name in ("rand_like", "randn_like", "empty_like", "bernoulli"):
            check_spec(getattr(torch.ops.aten, name).default, (x,), {})
        check_spec(torch.ops.aten.native_dropout.default, (x, 0.5, True), {})
        check_spec(torch.ops.aten.new_empty.default, (x, [3, 2]), {"dtype": torch.int32})
    check_spec(torch.ops.aten.rand.default, ([2, 3],), {"device": torch.device("cpu")})
    check_spec(torch.ops.aten.empty.memory_format, ([1, 2, 3, 4],), {"memory_format": torch.channels_last})
    check_spec(torch.ops.aten.empty_strided.default, ([2, 3], [1, 2]), {})


def test_rules_draw_no_random_numbers() -> None:
    before = torch.get_rng_state()
    x = spec_of(X)
    for op, args in [
        (torch.ops.aten.rand_like.default, (x,)),
        (torch.ops.aten.native_dropout.default, (x, 0.5, True)),
        (torch.ops.aten.randint.default, (5, [3])),
    ]:
        LIBRARY.infer(op, args, {}, ShapeEnv())
    assert torch.equal(torch.get_rng_state(), before)


def test_windows_of_memory_and_masks_of_any_size() -> None:
    x = torch.rand(4, 6)
    for layout in (x, x.t(), x[:, ::2], x[:1].expand(4, 6)):
        check_open_spec("aten.as_strided_scatter.default", layout, torch.rand(2, 3), [2, 3], [1, 2])
    check_open_spec("aten.masked_scatter_backward.default", x, x > 0.5, [3, 5])


def test_elements_put_at_places_of_any_size() -> None:
    for x in (torch.rand(4, 5).t(), torch.rand(4, 10)[:, ::2], torch.rand(4, 1).expand(4, 5)):
        places = torch.tensor([0, 1])
        check_open_spec("aten.put.default", x, places, torch.rand(2))
        check_open_spec("aten.index_fill.int_Tensor", x, 0, places, torch.tensor(1.0))
