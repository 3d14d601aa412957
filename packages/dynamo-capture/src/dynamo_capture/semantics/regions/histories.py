"""The nodes that stand for a tensor where a region is differentiated with respect to it."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from dynamo_capture.foundation.break_kinds import DISPATCH_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.runtime.subclass_parts import Parts
from dynamo_capture.sources.sources import GradientPartsSource, HistorySource
from dynamo_capture.values import TensorValue
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.wrapper import WrapperValue
from fx_interface.signature import InputKind
from fx_interface.source import ItemSource, Source
from fx_interface.tensor_spec import TensorSpec, with_grad


def history_of(tx: Context, value: TensorValue) -> Node | None:
    """A tensor's own node. One that dispatches in Python has none: if it requires grad, an input of its form, without
    content, takes its gradients where they are plain tensors."""
    if type(value) is not WrapperValue:
        return value.node
    if not value.meta.requires_grad:
        return None
    if value.history is None:
        source = HistorySource(_existing(tx, value))
        spec = value.meta.spec
        value.history = _input(tx, value, spec, source, source.step(value.real))
    return value.history


def parts_of_history(tx: Context, value: TensorValue, parts: Parts) -> list[Node]:
    """Inputs without content that take a gradient which is a wrapper, in parts: one for each plain tensor in it."""
    source = GradientPartsSource(_existing(tx, value), parts)
    example = source.step(value.real)
    return [
        _input(tx, value, _spec(tensor), ItemSource(source, i), tensor) for i, tensor in enumerate(example)
    ]


def _existing(tx: Context, value: TensorValue) -> Source:
    """Where a tensor is read that was there before the graph, with gradients on."""
    if value.source is None or not tx.entry.get(torch._C._set_grad_enabled):
        raise GraphBreak(
            DISPATCH_IN_PYTHON, f"a gradient of {value.describe()} is computed where there was none"
        )
    return value.source


def _spec(tensor: torch.Tensor) -> TensorSpec:
    return TensorSpec(tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype, tensor.device)


def _input(tx: Context, value: TensorValue, spec: TensorSpec, source: Source, example: Any) -> Node:
    form = TensorSpec(spec.sizes, (0,) * len(spec.sizes), spec.dtype, spec.device)
    name = f"history_{value.meta.cls.__name__}"
    return tx.output.placeholder(name, InputKind.USER, with_grad(form, True), source, example)
