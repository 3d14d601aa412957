"""The node that stands for a tensor where a region is differentiated with respect to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.fx import Node

from dynamo_capture.errors import GraphBreak
from dynamo_capture.output import with_grad
from dynamo_capture.sources import HistorySource
from dynamo_capture.values import TensorValue
from dynamo_capture.values.wrapper import WrapperValue
from fx_interface.signature import InputKind
from fx_interface.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace


def history_of(tx: Trace, value: TensorValue) -> Node | None:
    """A tensor's own node. One that dispatches in Python has none: if it requires grad, an input of its form, without
    content, takes its gradients, which have to be plain tensors."""
    if type(value) is not WrapperValue:
        return value.node
    if not value.meta.requires_grad:
        return None
    if value.history is None:
        if value.source is None or not tx.entry.get(torch._C._set_grad_enabled):
            raise GraphBreak("CAP249", f"a gradient of {value.describe()} is computed where there was none")
        spec = value.meta.spec
        form = TensorSpec(spec.sizes, (0,) * len(spec.sizes), spec.dtype, spec.device)
        source = HistorySource(value.source)
        value.history = tx.output.placeholder(
            f"history_{value.meta.cls.__name__}",
            InputKind.USER,
            with_grad(form, True),
            source,
            source.step(value.real),
        )
    return value.history
