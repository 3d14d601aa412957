"""Specs of fused attention in the layouts that models give it."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 7, 8


def _heads_first(length: int) -> torch.Tensor:
    return torch.randn(BATCH, HEADS, length, WIDTH)


def _heads_inside(length: int) -> torch.Tensor:
    return torch.randn(BATCH, length, HEADS, WIDTH).transpose(1, 2)


def _packed(length: int) -> torch.Tensor:
    return torch.randn(BATCH, length, 3 * HEADS, WIDTH)[:, :, HEADS : 2 * HEADS].transpose(1, 2)


def _shared(length: int) -> torch.Tensor:
    return torch.randn(BATCH, 1, length, WIDTH).expand(BATCH, HEADS, length, WIDTH)


LAYOUTS = {"heads_first": _heads_first, "heads_inside": _heads_inside, "packed": _packed}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("keys", [*LAYOUTS, "shared"])
@pytest.mark.parametrize("queries", LAYOUTS)
def test_flash_for_cpu(queries: str, keys: str, dtype: torch.dtype) -> None:
    if torch.get_default_device().type != "cpu":
        pytest.skip("a kernel for CPUs")
    q = LAYOUTS[queries](QUERIES).to(dtype)
    k, v = ({**LAYOUTS, "shared": _shared}[keys](KEYS).to(dtype) for _ in range(2))
    name = "aten._scaled_dot_product_flash_attention_for_cpu"
    for mask in (None, torch.randn(QUERIES, KEYS).to(dtype)):
        check_operator(f"{name}.default", q, k, v, attn_mask=mask, library_call=True)
        out, sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(
            q, k, v, attn_mask=mask
        )
        args = (torch.randn_like(out), q, k, v, out, sums, 0.0, False)
        check_operator(f"{name}_backward.default", *args, attn_mask=mask, library_call=True)
