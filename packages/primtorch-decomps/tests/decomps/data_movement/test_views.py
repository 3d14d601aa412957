"""Views: values, and the exact strides that eager gives them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from primtorch_decomps.testing import check_operator, check_spec

BASE = torch.randn(4, 3, 6)
LAYOUTS = {
    "row_major": BASE,
    "permuted": BASE.permute(2, 0, 1),
    "strided": BASE[::2, :, 1::2],
    "ones": torch.randn(1, 3, 1),
    "expanded": torch.randn(1, 3, 1).expand(4, 3, 2),
    "empty": torch.randn(2, 0, 3),
}
CASES: list[tuple[str, tuple[Any, ...]]] = [
    ("permute.default", ([2, 0, 1],)),
    ("transpose.int", (0, -1)),
    ("unsqueeze.default", (0,)),
    ("unsqueeze.default", (-1,)),
    ("squeeze.default", ()),
    ("squeeze.dim", (0,)),
    ("squeeze.dims", ([0, 2],)),
    ("slice.Tensor", (1, 1, 3)),
    ("slice.Tensor", (2, -2, 9223372036854775807)),
    ("slice.Tensor", (0, 0, 100, 2)),
    ("slice.Tensor", (0, 3, 1)),
    ("alias.default", ()),
    ("detach.default", ()),
    ("split.Tensor", (2, 0)),
    ("chunk.default", (2, 2)),
    ("unbind.int", (0,)),
    ("diagonal.default", (0, 0, 2)),
    ("diagonal.default", (-1, 2, 0)),
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "args"), CASES)
def test_views(name: str, args: Any, layout: str) -> None:
    x = LAYOUTS[layout]
    check_operator(f"aten.{name}", x, *args)


@pytest.mark.parametrize(
    ("layout", "sizes"),
    [
        ("row_major", [12, 6]),
        ("row_major", [-1]),
        ("row_major", [2, 2, 3, 3, 2]),
        ("permuted", [2, 3, 2, 2, 3]),
        ("permuted", [6, 4, 1, 3]),
        ("strided", [2, 3, 1, 3]),
        ("ones", [3]),
        ("ones", [1, 1, 3, 1, 1]),
        ("expanded", [2, 2, 3, 2]),
        ("empty", [0]),
        ("empty", [5, 0]),
    ],
)
def test_view_and_reshape(layout: str, sizes: list[int]) -> None:
    check_operator("aten.view.default", LAYOUTS[layout], sizes)
    check_operator("aten.reshape.default", LAYOUTS[layout], sizes)


def test_scalars() -> None:
    x = torch.randn(())
    check_operator("aten.view.default", x, [1, 1])
    check_operator("aten.expand.default", x, [2, 3])
    check_operator("aten.expand.default", x, [1, 1])
    check_operator("aten.unsqueeze.default", x, 0)
    check_operator("aten.permute.default", x, [])
    check_operator("aten.t.default", x)
    check_operator("aten.squeeze.dim", x, 0)


def test_expand_and_select() -> None:
    check_operator("aten.expand.default", torch.randn(3, 1), [2, -1, 4])
    check_operator("aten.expand.default", torch.randn(3, 1), [1, 3, 1])
    check_operator("aten.select.int", BASE, 1, -1)
    check_operator("aten.select.int", BASE.t() if BASE.dim() == 2 else BASE.transpose(0, 1), 0, 2)
    check_operator("aten.t.default", torch.randn(2, 3))
    check_operator("aten.split_with_sizes.default", BASE, [1, 0, 2], 1)
    check_operator("aten.unfold.default", BASE, 2, 3, 2)
    check_operator("aten._unsafe_view.default", BASE, [12, 6])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("view", torch.randn(3, 4).t(), [12]), "view size is not compatible"),
        (("view", torch.randn(3, 4), [5, 2]), "invalid for input"),
        (("permute", torch.randn(3, 4), [0, 0]), "dim"),
        (("expand", torch.randn(3, 4), [5, 4]), "expand"),
    ],
)
def test_bad_arguments_raise_what_eager_raises(call: tuple[Any, ...], message: str) -> None:
    from fx_interface.symbols import ShapeEnv
    from fx_interface.tensor_spec import spec_of
    from primtorch_decomps import LIBRARY

    name, x, sizes = call
    op = getattr(torch.ops.aten, name).default
    with pytest.raises(RuntimeError, match=message):
        LIBRARY.infer(op, (spec_of(x), sizes), {}, ShapeEnv())
    with pytest.raises(RuntimeError, match=message):
        check_spec(op, (x, sizes), {})
