"""Specs of fused attention on a CUDA device; and on none, that symbolic lengths stay symbolic."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import SymSpec, TensorSpec, contiguous_strides
from primtorch_decomps import LIBRARY
from primtorch_decomps.testing import specs_of

ATEN = torch.ops.aten
BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 40, 64


def tensors(layout: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    made = []
    for length in (QUERIES, KEYS, KEYS):
        if layout == "heads_first":
            x = torch.randn(BATCH, HEADS, length, WIDTH, device="cuda", dtype=torch.bfloat16)
        else:
            x = torch.randn(BATCH, length, HEADS, WIDTH, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
        made.append(x)
    return made[0], made[1], made[2]


def check(op: Any, *args: Any) -> tuple[Any, ...]:
    """The real results, which must have the inferred sizes, strides and dtypes."""
    expected = op(*args)
    found = LIBRARY.infer(op, specs_of(args), {}, ShapeEnv())
    assert len(found) == len(expected)
    for place, (real, spec) in enumerate(zip(expected, found, strict=True)):
        if isinstance(real, torch.Tensor):
            facts = (tuple(real.shape), real.stride(), real.dtype, real.device.type)
            assert facts == (spec.sizes, spec.strides, spec.dtype, spec.device.type), (op, place)
        else:
            assert (SymSpec(real) if isinstance(real, int) else real) == spec, (op, place)
    return tuple(expected)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("layout", ["heads_first", "heads_inside"])
def test_on_the_device(layout: str) -> None:
    q, k, v = tensors(layout)
    r = check(ATEN._scaled_dot_product_flash_attention.default, q, k, v, 0.0, False, False)
    args = (torch.randn_like(r[0]), q, k, v, r[0], r[1], r[2], r[3], r[4], r[5], 0.0, False, r[6], r[7])
    check(ATEN._scaled_dot_product_flash_attention_backward.default, *args)
    check(ATEN._scaled_dot_product_efficient_attention.default, q, k, v, None, False, 0.0, False)
    r = check(ATEN._scaled_dot_product_efficient_attention.default, q, k, v, None, True, 0.0, False)
    args = (torch.randn_like(r[0]), q, k, v, None, r[0], r[1], r[2], r[3], 0.0, [True, True, True, False])
    check(ATEN._scaled_dot_product_efficient_attention_backward.default, *args)
    r = check(ATEN._scaled_dot_product_cudnn_attention.default, q, k, v, None, True, 0.0, False, False)
    args = (torch.randn_like(r[0]), q, k, v, r[0], r[1], r[6], r[7], None, r[2], r[3], r[4], r[5], 0.0, False)
    check(ATEN._scaled_dot_product_cudnn_attention_backward.default, *args)


def test_symbolic_lengths() -> None:
    env = ShapeEnv()
    length = env.create_symbol(40)
    sizes = (2, 3, length, 64)
    x = TensorSpec(sizes, contiguous_strides(sizes), torch.bfloat16, torch.device("cuda", 0))
    flash = LIBRARY.infer(ATEN._scaled_dot_product_flash_attention.default, (x, x, x), {}, env)
    assert flash[0].sizes == sizes
    assert flash[4] == SymSpec(length)
    args = (x, x, x, None, True)
    efficient = LIBRARY.infer(ATEN._scaled_dot_product_efficient_attention.default, args, {}, env)
    assert efficient[1].sizes == (2, 3, (length + 31) // 32 * 32)
    cudnn = LIBRARY.infer(ATEN._scaled_dot_product_cudnn_attention.default, args, {}, env)
    assert cudnn[1].sizes == (2, 3, length, 1)
    assert env.guards == []
