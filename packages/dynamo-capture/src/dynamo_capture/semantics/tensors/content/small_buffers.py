"""Small tensors of integers whose content the trace knows: those that belong to an object's state (strides, kernel
sizes, flags kept as buffers), and arguments whose numbers a program has decided on.

Their content is like that of tensors made of constants. Where it decides about something, the trace relies on it, and a
guard compares it.

An argument's numbers are symbols at first. Where one of them ends the graph, the frame is captured again, with the
content of the argument; several contents have a version each, then the graph ends there.

Small tensors of floats that belong to an object's state (tables of coefficients) are read likewise: where the truth of
what follows from them alone ends the graph. They may be what a program trains or counts in, so not before.

    for t, h, w in grid.tolist():         ->  ``grid`` holds [[1, 4, 6]], else another version
        rows = x[: t * h * w].view(t, h // 2, 2, w)
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import torch
from torch.fx import Node

from dynamo_capture.graph.graph_builder import GraphInput, GraphOutput
from dynamo_capture.runtime.second_runs import AssumedBranches
from dynamo_capture.values import TensorValue
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.late_sequences import NumberList
from fx_interface.errors import UserLocation
from fx_interface.signature import InputKind
from fx_interface.source import Source
from fx_interface.tensor_spec import TensorSpec
from fx_interface.torch_internals.function_levels import is_wrapped

MOST_ELEMENTS = 16
MOST_DECISIVE = 1024
"""Elements of an argument that decides: the sizes of many images, which tokens of a prompt are an image's."""
_DTYPES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
_FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


class State:
    """What one trace relies on of its inputs' contents, by their sources. ``asked``: nodes of tensors whose numbers the
    program has taken out, or has tried to; ``doubted``: those whose truth it has asked for in vain; ``unread``:
    lists of numbers that nothing has asked for yet; ``assuming``: lines with branches that the graph states to be
    taken, ``assumed``: what counts where they are not."""

    def __init__(self) -> None:
        self.relied: dict[Source, Any] = {}
        self.asked: list[Node] = []
        self.doubted: list[Node] = []
        self.unread: list[NumberList] = []
        self.assuming: list[UserLocation | None] = []
        self.assumed: AssumedBranches | None = None

    def rely(self, tx: Context, tensor: TensorValue, sizes: bool = True) -> None:
        """What the trace does depends on a tensor's content: on the inputs and ``sizes`` that it follows from."""
        for one in tensor.follows_from:
            if isinstance(one, TensorValue):
                assert isinstance(one.initial, torch.Tensor)
                assert one.source is not None
                self.relied[one.source] = one.initial.tolist()
            elif sizes:
                tx.env.specialize(one)


def decisive(tx: Context) -> list[Source]:
    """The arguments from whose content all follows that the program has asked for, and the state of objects from whose
    content the truth follows that it has asked for."""
    inputs = {item.node: item for item in tx.output.inputs}
    found: dict[Source, None] = {}
    for node in tx.tensors.state.asked:
        origins = _origins(tx.output, node, inputs, _DTYPES, MOST_DECISIVE) or ()
        found.update(dict.fromkeys(one for one in origins if tx.policy.is_argument(one)))
    for node in tx.tensors.state.doubted:
        origins = _origins(tx.output, node, inputs, (*_DTYPES, *_FLOATS), MOST_ELEMENTS) or ()
        if not any(map(tx.policy.is_argument, origins)):
            found.update(dict.fromkeys(origins))
    return list(found)


def may_be_known(tx: Context, tensor: TensorValue) -> bool:
    """Whether a tensor follows from small tensors of objects alone: there may be a version for each content."""
    inputs = {item.node: item for item in tx.output.inputs}
    origins = _origins(tx.output, tensor.node, inputs, (*_DTYPES, *_FLOATS), MOST_ELEMENTS)
    return bool(origins) and not any(map(tx.policy.is_argument, origins or ()))


def _origins(
    output: GraphOutput,
    node: Node,
    inputs: dict[Node, GraphInput],
    dtypes: Collection[torch.dtype],
    most: int,
) -> list[Source] | None:
    """The inputs that a tensor is computed from, if all are tensors of these dtypes with no more elements."""
    if node.graph is not output.graph:
        return None
    found, pending, known = [], [node], {node}
    while pending:
        current = pending.pop()
        item = inputs.get(current)
        if item is not None and item.kind is not InputKind.SYMBOL:
            if item.kind is InputKind.PARAMETER or not _is_readable(item.example, dtypes, most):
                return None
            if not isinstance(item.spec, TensorSpec) or not item.spec.is_static:
                return None  # now more numbers and now fewer: a version would be one call's
            found.append(item.source)
        pending.extend(one for one in current.all_input_nodes if one not in known)
        known.update(current.all_input_nodes)
    return found


def _is_readable(real: Any, dtypes: Collection[torch.dtype], most: int) -> bool:
    return (
        isinstance(real, torch.Tensor)
        and not is_wrapped(real)
        and real.dtype in dtypes
        and not real.requires_grad
        and real.device.type == "cpu"
        and math.prod(real.shape) <= most
        and real.untyped_storage().nbytes() == real.numel() * real.element_size()
    )


def read(tx: Context, tensor: TensorValue, real: torch.Tensor, source: Source) -> None:
    """Take note of the content of an input, if it is one of those; one that differs again and again is not read."""
    is_decisive = tx.policy.is_decisive(source)
    dtypes = (*_DTYPES, *_FLOATS) if is_decisive else _DTYPES
    most = MOST_DECISIVE if is_decisive and tx.policy.is_argument(source) else MOST_ELEMENTS
    if not tensor.meta.spec.is_static or not _is_readable(real, dtypes, most):
        return
    if not tx.policy.is_settled(real, source):
        return
    tensor.content = tensor.initial = real.detach().clone()
    tensor.follows_from = (tensor,)
