"""Scaling up and down, with corners aligned or not, by sizes or by factors."""

from __future__ import annotations

import pytest
import torch

from fx_interface.tensor_spec import SPEC_KEY
from primtorch_decomps import decompose
from primtorch_decomps.testing import aten_graph, check_spec, check_values

ATEN = torch.ops.aten
LINEAR = {
    1: ATEN.upsample_linear1d.default,
    2: ATEN.upsample_bilinear2d.default,
    3: ATEN.upsample_trilinear3d.default,
}


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("size", [1, 3, 4, 9])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_linear(rank: int, size: int, align: bool) -> None:
    x = torch.randn(2, 3, *(4, 5, 3)[:rank])
    args = (x, [size] * rank, align)
    check_spec(LINEAR[rank], args, {})
    check_values(LINEAR[rank], args, {})


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_cubic(align: bool, dtype: torch.dtype) -> None:
    x = torch.randn(2, 3, 5, 4).to(dtype)
    for size in ([7, 9], [3, 2], [5, 4]):
        check_spec(ATEN.upsample_bicubic2d.default, (x, size, align), {})
        check_values(ATEN.upsample_bicubic2d.default, (x, size, align), {})


def test_given_factors_and_channels_last() -> None:
    x = torch.randn(1, 2, 6, 6).to(memory_format=torch.channels_last)
    args = (x, [9, 9], False, 1.5, 1.6)
    check_spec(ATEN.upsample_bilinear2d.default, args, {})
    check_values(ATEN.upsample_bilinear2d.default, args, {})


def test_what_is_made_between_dimensions_has_channels_last_too() -> None:
    x = torch.randn(1, 3, 6, 5).to(memory_format=torch.channels_last)
    check_values(LINEAR[2], (x, [9, 5], False), {})
    check_values(LINEAR[2], (x, [6, 5], False), {})
    module, _ = aten_graph(LINEAR[2], (x, [9, 8], False), {})
    made = [
        node.meta[SPEC_KEY] for node in decompose(module).graph.nodes if node.meta.get(SPEC_KEY) is not None
    ]
    assert {spec.sizes for spec in made if len(spec.sizes) == 4 and 8 in spec.sizes} >= {
        (1, 6, 8, 3),
        (1, 9, 8, 3),
    }
