"""Tensors from nothing, and constants in the likeness of others."""

from __future__ import annotations

import pytest
import torch

from fx_interface.symbols import ShapeEnv
from primtorch_decomps import LIBRARY
from primtorch_decomps.testing import check_operator

CPU = torch.device("cpu")
X = torch.randn(2, 3, 4, 5)


def test_constants() -> None:
    for value in (2, 1.5, True):
        check_operator("aten.full.default", [2, 3], value, device=CPU)
    check_operator("aten.full.default", [2, 3], 7, dtype=torch.bfloat16, device=CPU)
    check_operator("aten.zeros.default", [2, 0], dtype=torch.int64, device=CPU)
    check_operator("aten.ones.default", [], device=CPU)
    check_operator("aten.scalar_tensor.default", float("-inf"), dtype=torch.float32, device=CPU)


@pytest.mark.parametrize(
    "layout", [X, X.permute(2, 0, 1, 3), X[:, ::2], X.to(memory_format=torch.channels_last)]
)
def test_likenesses(layout: torch.Tensor) -> None:
    check_operator("aten.zeros_like.default", layout)
    check_operator("aten.ones_like.default", layout, dtype=torch.int32)
    check_operator("aten.full_like.default", layout, 2.5, memory_format=torch.contiguous_format)
    check_operator("aten.new_zeros.default", layout, [3, 2])
    check_operator("aten.new_ones.default", layout, [3], dtype=torch.bool)
    check_operator("aten.new_full.default", layout, [3], 4)
    check_operator("aten.fill.Scalar", layout, 3)
    check_operator("aten.fill.Tensor", layout, torch.tensor(3))


def test_ranges() -> None:
    check_operator("aten.arange.default", 5, device=CPU)
    check_operator("aten.arange.start", 2, 7, device=CPU)
    check_operator("aten.arange.start_step", 7, 0, -2, device=CPU)
    check_operator("aten.arange.start_step", 0.0, 1.0, 0.1, device=CPU)
    check_operator("aten.arange.start_step", 1, 10, 3, dtype=torch.float32, device=CPU)
    check_operator("aten.arange.default", 0, device=CPU)
    check_operator("aten.arange.default", 2.5, device=CPU)


def test_identity() -> None:
    check_operator("aten.eye.default", 3, device=CPU)
    check_operator("aten.eye.m", 2, 3, dtype=torch.int64, device=CPU)


def test_a_range_that_runs_the_wrong_way_raises_what_eager_raises() -> None:
    with pytest.raises(RuntimeError, match="inconsistent"):
        torch.ops.aten.arange.start_step(0, 5, -1)
    with pytest.raises(RuntimeError, match="inconsistent"):
        LIBRARY.infer(torch.ops.aten.arange.start_step, (0, 5, -1), {}, ShapeEnv())


def test_a_range_whose_step_varies_counts_by_its_sign() -> None:
    for start, end, step in ((2, -3, -1), (7, 0, -2), (-3, 9, 4)):
        env = ShapeEnv()
        given = [env.create_symbol(n, low=None) for n in (start, end, step)]
        spec = LIBRARY.infer(torch.ops.aten.arange.start_step, given, {}, env)
        assert env.hint(spec.sizes[0]) == len(range(start, end, step))
