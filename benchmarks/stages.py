"""What single stages of compiling a transformer cost: capture, and the joint trace; ours and stock's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.fx import GraphModule

from benchmarks.models import WORKLOADS, loss_of

Inputs = dict[str, Any]


def transformer(layers: int) -> tuple[nn.Module, Inputs]:
    """BERT with so many layers and a masked-language-model head, called once eagerly; random weights."""
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=1000,
        hidden_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=256,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model: nn.Module = BertForMaskedLM(config)
    inputs = WORKLOADS["bert"].inputs(32)
    loss_of(model(**inputs)).backward()  # type: ignore[no-untyped-call]
    return model, inputs


def _as_captured(graph_module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    return graph_module.forward


def fxstack_capture(model: nn.Module, inputs: Inputs) -> float:
    """Seconds of a first call with a backend that runs the graph as it is, less a second call."""
    import dynamo_capture
    from primtorch_decomps import LIBRARY

    optimize = dynamo_capture.optimize(_as_captured, fullgraph=True, operators=LIBRARY)
    return _first_less_second(optimize(model), inputs)


def stock_capture(model: nn.Module, inputs: Inputs) -> float:
    """The same of stock ``torch.compile``."""
    return _first_less_second(torch.compile(model, backend=_as_captured, fullgraph=True), inputs)


def _first_less_second(compiled: Callable[..., Any], inputs: Inputs) -> float:
    times = []
    for _ in range(2):
        started = time.perf_counter()
        compiled(**inputs)
        times.append(time.perf_counter() - started)
    return times[0] - times[1]


def fxstack_joint(model: nn.Module, inputs: Inputs) -> float:
    """Seconds from a captured graph to its forward and backward graphs of ATen operators."""
    import dynamo_capture
    from aot_autograd import trace_joint
    from primtorch_decomps import LIBRARY

    seconds: list[float] = []

    def backend(graph_module: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        started = time.perf_counter()
        traced = trace_joint(graph_module, examples, operators=LIBRARY)
        seconds.append(time.perf_counter() - started)
        assert traced.backward is not None
        return graph_module.forward

    dynamo_capture.optimize(backend, fullgraph=True, operators=LIBRARY)(model)(**inputs)
    return sum(seconds)


def stock_joint(model: nn.Module, inputs: Inputs) -> float:
    """The same of stock: from its captured graph until the forward graph is handed to a compiler."""
    from torch._dynamo.backends.common import aot_autograd

    stamps: list[float] = []

    def compiler(graph_module: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        stamps.append(time.perf_counter())
        return graph_module.forward

    traced = aot_autograd(fw_compiler=compiler, bw_compiler=compiler)

    def backend(graph_module: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        stamps.append(time.perf_counter())
        made: Callable[..., Any] = traced(graph_module, examples)
        return made

    torch.compile(model, backend=backend, fullgraph=True)(**inputs)
    return stamps[1] - stamps[0]
