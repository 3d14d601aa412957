"""The strict table: its operators give eager's bits, run as primitives in torch; others are left out."""

from __future__ import annotations

import torch

from primtorch_decomps import DECOMPOSITIONS, STRICT

aten = torch.ops.aten


def test_operators_with_an_algorithm_are_left_to_torch() -> None:
    left_out = (aten.exp, aten._softmax, aten.native_layer_norm, aten.sqrt, aten.rsqrt, aten.gelu, aten.trace)
    for packet in left_out:
        assert packet.default in DECOMPOSITIONS
        assert packet.default not in STRICT
    assert aten.sum.dim_IntList not in STRICT
    for op in (aten.add.Tensor, aten.relu.default, aten.view.default, aten.cat.default, aten.where.self):
        assert op in STRICT


def test_calls_that_eager_rounds_in_another_way_are_declined() -> None:
    from primtorch_decomps.exact import _has_one_rounding

    single, half = torch.ones(2), torch.ones(2, dtype=torch.bfloat16)
    assert _has_one_rounding((single, single), {})
    assert _has_one_rounding((half, half), {})
    assert _has_one_rounding((single, 1.5), {})
    assert not _has_one_rounding((half, 1.5), {})
    assert not _has_one_rounding((half, single), {})
    assert not _has_one_rounding((single, single), {"alpha": 0.3})
