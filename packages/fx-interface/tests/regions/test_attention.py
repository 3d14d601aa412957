"""Attention with functions for scores and masks, run as it is."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule, Node

from fx_interface.errors import InvalidGraphError
from fx_interface.regions import attention
from fx_interface.regions.attention import BLOCK_TENSORS, POINT_DTYPE, result_specs
from fx_interface.signature import DIALECT_KEY
from fx_interface.tensor_spec import SPEC_KEY, TensorSpec, spec_of
from fx_interface.verifier import verify

NO_BLOCKS = (None,) * BLOCK_TENSORS
OPTIONS: dict[str, Any] = {"scale": 0.5, "block_size": None, "mask_args": (), "with_max": True}


def given(heads: int = 2) -> list[torch.Tensor]:
    sizes = [(2, 4, 5, 3), (2, heads, 7, 3), (2, heads, 7, 6)]
    return [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes]


def biased(s: Any, b: Any, h: Any, q: Any, kv: Any, bias: Any) -> Any:
    return (s + bias[h, kv],)


def earlier(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return (kv < q,)


def test_scores_are_changed_and_masked_and_heads_shared() -> None:
    query, key, value = given()
    bias = torch.randn(4, 7, dtype=torch.float64, requires_grad=True)
    out, sums, largest = attention(
        biased, earlier, query, key, value, *NO_BLOCKS, bias, score_args=(0,), **OPTIONS
    )
    scores = query @ key.repeat_interleave(2, 1).transpose(-2, -1) * 0.5 + bias.unsqueeze(1)
    scores = scores.masked_fill(~torch.ones(5, 7, dtype=torch.bool).tril(-1), -math.inf)
    expected = scores[:, :, 1:].softmax(-1) @ value.repeat_interleave(2, 1)
    torch.testing.assert_close(out[:, :, 1:], expected)
    assert not out[:, :, 0].any()
    torch.testing.assert_close(sums * math.log(2), scores.logsumexp(-1))
    torch.testing.assert_close(largest * math.log(2), scores.amax(-1))
    inputs = [query, key, value, bias]
    weight = torch.randn_like(out)
    found = torch.autograd.grad((out * weight).sum() + sums[:, :, 1:].sum(), inputs)
    loss = (expected * weight[:, :, 1:]).sum() + scores.logsumexp(-1)[:, :, 1:].sum() / math.log(2)
    for one, other in zip(found, torch.autograd.grad(loss, inputs), strict=True):
        torch.testing.assert_close(one, other)


def test_results_are_laid_out_as_queries_are() -> None:
    query, key, value = (tensor.detach().transpose(1, 2).contiguous().transpose(1, 2) for tensor in given())
    results = attention(lambda s, *_: (s,), earlier, query, key, value, *NO_BLOCKS, score_args=(), **OPTIONS)
    specs = result_specs(spec_of(query), spec_of(value), True)
    assert specs is not None
    assert [spec_of(result).strides for result in results] == [spec.strides for spec in specs]
    assert [spec_of(result).sizes for result in results] == [spec.sizes for spec in specs]


def body(working: torch.dtype | None) -> GraphModule:
    graph = Graph()
    places: list[Node] = []
    for dtype in (*([working] if working else []), *[POINT_DTYPE] * 4):
        node = graph.placeholder(f"p{len(places)}")
        node.meta[SPEC_KEY] = TensorSpec((), (), dtype, torch.device("cpu"))
        places.append(node)
    made = graph.call_function(
        torch.neg if working else torch.lt, (places[0],) if working else (places[2], places[3])
    )
    made.meta[SPEC_KEY] = TensorSpec((), (), working or torch.bool, torch.device("cpu"))
    graph.output((made,))
    return GraphModule(torch.nn.Module(), graph)


def whole(**changed: Any) -> GraphModule:
    tensors = [torch.zeros(2, 2, 5, 3) for _ in range(3)]
    graph, root = Graph(), torch.nn.Module()
    root.add_module("score", body(torch.float32))
    root.add_module("mask", body(None))
    places = [graph.placeholder(name) for name in ("query", "key", "value")]
    for node, tensor in zip(places, tensors, strict=True):
        node.meta[SPEC_KEY] = spec_of(tensor)
    bodies = [graph.get_attr(name) for name in ("score", "mask")]
    options = {**OPTIONS, "score_args": (), **changed}
    made = graph.call_function(attention, (*bodies, *places, *NO_BLOCKS), options)
    made.meta[SPEC_KEY] = result_specs(spec_of(tensors[0]), spec_of(tensors[2]), True)
    graph.output((made,))
    module = GraphModule(root, graph)
    module.meta[DIALECT_KEY] = "torch"
    return module


def test_the_verifier_knows_what_a_call_needs() -> None:
    verify(whole())
    for changed in ({"score_args": (0,)}, {"with_max": False}):
        with pytest.raises(InvalidGraphError, match="FXI113"):
            verify(whole(**changed))
