"""Circular borders are eager's, in values, layout and gradients; what eager refuses is refused in its words."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from fx_interface.composites import COMPOSITES

pad = COMPOSITES[functional.pad]

CASES = [
    ((3, 7), (2, 1)),
    ((2, 3, 5), (5, 0)),
    ((2, 3, 5), (0, 0)),
    ((2, 3, 4, 5), (1, 2, 3, 0)),
    ((3, 4, 5), (1, 2, 4, 4)),
    ((2, 2, 3, 4, 5), (1, 2, 0, 1, 2, 2)),
    ((0, 3, 5), (2, 2)),
]


@pytest.mark.parametrize(("sizes", "widths"), CASES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_circular_borders(sizes: tuple[int, ...], widths: tuple[int, ...], dtype: torch.dtype) -> None:
    whole = torch.arange(float(torch.Size(sizes).numel())).reshape(sizes).to(dtype)
    inputs = [whole, whole.transpose(0, 1).contiguous().transpose(0, 1)]
    if len(sizes) == 4:
        inputs.append(whole.to(memory_format=torch.channels_last))
    for x in inputs:
        want, found = functional.pad(x, widths, "circular"), pad(x, widths, "circular")
        assert torch.equal(found, want)
        assert found.stride() == want.stride()
        assert found is not x
        assert found.data_ptr() != x.data_ptr() or not x.numel()


@pytest.mark.parametrize(("sizes", "widths"), CASES, ids=str)
def test_gradients(sizes: tuple[int, ...], widths: tuple[int, ...]) -> None:
    x = torch.randn(sizes, dtype=torch.float64, requires_grad=True)
    want, found = functional.pad(x, widths, "circular"), pad(x, widths, mode="circular")
    grad = torch.randn_like(want)
    for one, other in zip(*(torch.autograd.grad(result, x, grad) for result in (want, found)), strict=True):
        torch.testing.assert_close(other, one)


@pytest.mark.parametrize(
    ("sizes", "widths", "mode"),
    [
        ((2, 3, 5), (6, 0), "circular"),
        ((5,), (1, 1), "circular"),
        ((2, 3, 5), (1, 1, 1), "circular"),
        ((2, 3, 5), (-1, 2), "circular"),
        ((2, 3, 5), (1, 2), "reflect"),
        ((2, 3, 5), (1, 2), "constant"),
    ],
    ids=str,
)
def test_other_calls_are_torchs(sizes: tuple[int, ...], widths: tuple[int, ...], mode: str) -> None:
    x = torch.randn(sizes)

    def outcome(function: object) -> str:
        try:
            return repr(function(x, widths, mode))  # type: ignore[operator]
        except Exception as error:
            return repr(error)

    assert outcome(pad) == outcome(functional.pad)
