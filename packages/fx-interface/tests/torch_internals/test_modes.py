"""Switches of torch that a trace changes are put back, but for what torch settles once in a process."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from fx_interface.torch_internals import modes


def test_switches_are_put_back() -> None:
    before = torch._C._get_cudnn_benchmark()
    with modes.restored():
        torch._C._set_cudnn_benchmark(not before)
    assert torch._C._get_cudnn_benchmark() is before


def test_the_order_of_attention_is_settled_on_a_gpu_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "_settled", [])
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    modes.settle_attention_order()
    assert modes._settled == []


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_order_of_attention_is_kept() -> None:
    torch.zeros(1, device="cuda")
    with modes.restored():
        query = torch.zeros(1, 1, 8, 64, dtype=torch.float16, device="cuda")
        F.scaled_dot_product_attention(query, query, query)
        inside = torch._C._get_sdp_priority_order()
    assert torch._C._get_sdp_priority_order() == inside


@pytest.mark.parametrize("around", [False, True])
def test_autocast_is_put_back_with_the_number_of_its_blocks(around: bool) -> None:
    with torch.autocast("cpu", torch.float16, enabled=around):
        before = modes._autocast_depth(), torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
        put_back = modes.autocast_kept()
        torch.autocast("cpu", torch.bfloat16, cache_enabled=False).__enter__()
        put_back()
        put_back()
        after = modes._autocast_depth(), torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
        assert after == before
        assert torch.is_autocast_cache_enabled()
