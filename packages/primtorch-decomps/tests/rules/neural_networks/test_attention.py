"""Specs of fused attention in the layouts that models give it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from primtorch_decomps.testing import check_open_spec, check_operator

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


def _projections(width: int) -> list[torch.Tensor]:
    return [
        torch.randn(3 * width, width),
        torch.randn(3 * width),
        torch.randn(width, width),
        torch.randn(width),
    ]


@pytest.mark.parametrize("options", [(), (None, False), (None, True, False)])
def test_attention_in_one_call_of_any_size(options: tuple[Any, ...]) -> None:
    for x in (torch.randn(3, 5, 8), torch.randn(5, 3, 8).transpose(0, 1)):
        check_open_spec(
            "aten._native_multi_head_attention.default", x, x, x, 8, 2, *_projections(8), *options
        )


def test_an_encoder_layer_in_one_call_of_any_size() -> None:
    norms = [torch.randn(8) for _ in range(4)]
    wide = [torch.randn(16, 8), torch.randn(16), torch.randn(8, 16), torch.randn(8)]
    for x in (torch.randn(3, 5, 8), torch.randn(5, 3, 8).transpose(0, 1)):
        parts = (8, 2, *_projections(8), True, False, 1e-5, *norms, *wide)
        check_open_spec("aten._transformer_encoder_layer_fwd.default", x, *parts)
