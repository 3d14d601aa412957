"""Gradients that are sparse tensors (``F.embedding(sparse=True)``): torch makes them, behind the backward graph.

A sparse tensor has no strided memory, so no node of a graph gives one. The call that makes it, of tensors that the
graph computes, and the calls that add it to other gradients are recorded here, and stay apart from the graph: the
runtime makes them of the graph's results, in the order in which torch's engine does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch._ops import OpOverload

from aot_autograd.functionalization.calls import values_of
from aot_autograd.plan import FromCall, GradientBehind, GraphPart, TorchCall
from aot_autograd.recording.trace import Handler, Trace, TracedTensor, TraceMode
from aot_autograd.recording.values import Value
from fx_interface.errors import UnsupportedProgramError
from fx_interface.tensor_spec import TensorSpec, contiguous_strides

aten = torch.ops.aten

_BAGS: Final = aten._embedding_bag_backward.default
_PARTS: Final = aten._sparse_coo_tensor_with_dims_and_tensors.default
_MAKERS: Final[Mapping[OpOverload, Callable[[tuple[Any, ...]], tuple[Any, Any] | None]]] = {
    # the sizes of what is made, and a tensor of its dtype; None where it is a plain tensor
    _PARTS: lambda args: (tuple(args[2]), args[4]),
    _BAGS: lambda args: ((args[6], args[0].shape[1]), args[0]) if args[9] else None,
}
_FOLLOWING: Final = frozenset(
    {
        aten.add.Tensor,
        aten.mul.Tensor,
        aten.mul.Scalar,
        aten.div.Tensor,
        aten.div.Scalar,
        aten.neg.default,
    }
)
"""What torch's engine and its formulas call with a sparse gradient, and torch has kernels for."""
_LOOKUP: Final = "EmbeddingBackward0"


def behind_the_graph(
    trace: Trace,
    handler: Handler,
    node: Any,
    op: OpOverload,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> TracedTensor | None:
    """What stands for the sparse gradient that ``op`` gives in the backward of ``node``, or for what torch needs to
    make one; None for all other operators. UnsupportedProgramError AOT130 where no kernel is known for one."""
    if op is aten.index.Tensor:
        return _unpicked(trace, handler, node, args)
    maker = _MAKERS.get(op)
    form = None if maker is None else maker(args)
    if form is not None:
        sizes, like = form
        sizes = tuple([trace.expression(n) if isinstance(n, torch.SymInt) else n for n in sizes])
        spec = TensorSpec(sizes, contiguous_strides(sizes), like.value.spec.dtype, like.value.spec.device)
        padding = _padding(node) if op is _PARTS else None
        return _noted(
            trace, op, _without(trace, args, padding) if padding is not None else args, kwargs, spec
        )
    if not trace.behind:
        return None
    sparse = [arg for arg in args if type(arg) is TracedTensor and arg.value.number in trace.behind]
    if not sparse:
        return None
    if op not in _FOLLOWING:
        raise UnsupportedProgramError(
            "AOT130", f"{op} is asked of a gradient that is a sparse tensor", where=trace.recorder.where
        )
    return _noted(trace, op, args, kwargs, sparse[0].value.spec)


def parts_behind(value: Value, behind: set[int]) -> list[Value]:
    """The graph's values that a gradient is made of, each once. ``behind``: as in a trace."""
    found: dict[int, Value] = {}
    for call in _calls_behind(value, behind):
        found |= {part.number: part for part in call.operands[::-1] if part.number not in behind}
    return list(found.values())


def gradient_behind(
    index: int,
    value: Value,
    behind: set[int],
    places: Mapping[int, int],
    under: Mapping[int, frozenset[int]],
) -> GradientBehind:
    """What makes the gradient of input ``index``. ``places``: where the graph's values are found, by number, as in
    ``gradient_from`` of a plan; ``under``: the tangents that they are computed from."""
    calls = _calls_behind(value, behind)
    numbers = {call.number: position for position, call in enumerate(calls)}

    def argument(arg: Any) -> Any:
        if isinstance(arg, Value):
            if arg.number in numbers:
                return FromCall(numbers[arg.number])
            return GraphPart(places[arg.number], tuple(sorted(under.get(arg.number, ()))))
        if isinstance(arg, list | tuple):
            return [argument(part) for part in arg]
        return arg

    made = []
    for call in calls:
        kwargs = tuple([(name, argument(arg)) for name, arg in call.kwargs.items()])
        made.append(TorchCall(call.op.name(), tuple([argument(arg) for arg in call.args]), kwargs))
    return GradientBehind(index, tuple(made))


def _calls_behind(value: Value, behind: set[int]) -> list[Value]:
    """The calls that make a gradient, in recorded order."""
    found: dict[int, Value] = {}
    pending = [value]
    while pending:
        call = pending.pop()
        if call.number in behind and call.number not in found:
            found[call.number] = call
            pending += call.operands
    return [found[number] for number in sorted(found)]


def _noted(
    trace: Trace, op: OpOverload, args: Any, kwargs: Mapping[str, Any], spec: TensorSpec
) -> TracedTensor:
    kept = {name: values_of(trace, arg) for name, arg in kwargs.items()}
    value = trace.recorder.call_of_form(op, [values_of(trace, arg) for arg in args], kept, spec)
    trace.behind.add(value.number)
    return trace.fresh(value)


def _padding(node: Any) -> int | None:
    """The row of the table that a lookup with a sparse gradient gives none; None where there is none."""
    if node is None or node.name() != _LOOKUP or not node._saved_sparse:
        return None
    padding: int = node._saved_padding_idx
    return None if padding in (-1, (1 << 64) - 1) else padding


def _unpicked(trace: Trace, handler: Handler, node: Any, args: tuple[Any, ...]) -> TracedTensor | None:
    """Where torch leaves out what was looked up at the padding, so that only data tell how much there is: all of it, in
    rows. What is left out then is behind the graph."""
    if _padding(node) is None:
        return None
    source, (mask,) = args
    if not mask.dim():  # torch refuses to index what has no dimensions
        return None
    with TraceMode(trace, handler):
        rows: TracedTensor = source.reshape(mask.numel(), *source.shape[mask.dim() :])
    return rows


def _without(trace: Trace, args: tuple[Any, ...], padding: int) -> list[Any]:
    """The arguments that a sparse tensor is made of, without what stands at the padding."""
    sparse, dense, sizes, places, stored = args
    row = _noted(trace, aten.select.int, (places, 0, 0), {}, stored.value.spec)
    is_kept = _noted(trace, aten.ne.Scalar, (row, padding), {}, stored.value.spec)
    places = _noted(trace, aten.index.Tensor, (places, [None, is_kept]), {}, stored.value.spec)
    stored = _noted(trace, aten.index.Tensor, (stored, [is_kept]), {}, stored.value.spec)
    return [sparse, dense, sizes, places, stored]
