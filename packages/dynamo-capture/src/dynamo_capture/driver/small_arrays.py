"""Graphs of small arrays of numpy, which Python runs sooner as they are written.

    def f(a, b):                # arrays of 8 numbers: numpy takes 1 us, a graph 5
        return a * 2 + b

A graph of arrays alone costs some microseconds a call, and each call of numpy in it more: the arrays are seen as
tensors, and what comes out as arrays. Where the operations that it would fuse do not make up for that, the frame runs
as it is written, under the guards that do not ask for the form of the arrays, as long as they stay small.

    def g(a):                   # a graph that ends where content decides, too
        best = np.argmax(a)
        return best if a[best] > 0 else None

What such a frame would do behind the break may be worth a graph: it is left to Python where it has nothing of torch, be
it in its arguments or among the names that its code uses.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Iterator
from typing import Final

from torch.fx import Node

from dynamo_capture.driver.backend_call import BackendCall
from dynamo_capture.guard_kinds.array_sizes import FewElements
from dynamo_capture.hook.frame_hook import FrameView
from dynamo_capture.runtime.calls import numpy_calls
from dynamo_capture.semantics.calls.arrays.without_torch import has_no_torch, names_no_torch
from dynamo_capture.session.session import Session
from dynamo_capture.sources.sources import ArrayTensorSource
from dynamo_capture.trace import Trace
from fx_guards import GuardRecord
from fx_interface.source import Source
from fx_interface.tensor_spec import SPEC_KEY, TensorSpec

_log = logging.getLogger("dynamo_capture")

_GRAPH: Final = 5e-6
"""Seconds that a call of a graph of arrays takes before and behind its kernels."""
_CALL: Final = 20e-6
"""Seconds that a call of numpy takes in a graph, beyond what it takes in Python."""
_OPERATION: Final = 0.5e-6
"""Seconds that numpy takes for an operation on few numbers."""
_NUMBER: Final = 0.1e-6
"""The same for an operation on single numbers of numpy, or taking one out of an array."""
_ELEMENT: Final = 0.15e-9
"""Seconds that a fused operation spares for each element."""
_GROWTH: Final = 4
"""An array may have as many times the elements that it had when the frame was weighed."""


def is_left(session: Session, view: FrameView, tx: Trace, backend: BackendCall, ends: bool) -> bool:
    """Whether a frame with a graph of arrays is left to Python, which takes less time; said in the report.
    ``ends``: it was traced to its end, not to a break."""
    if session.fullgraph or tx.levels or _gain(tx) >= _GRAPH:
        return False
    if not ends and (tx.output.mutates or not is_without_torch(view)):
        return False
    reason = "it computes with small arrays of numpy, which takes longer in a graph"
    _log.info("%s runs as it is written: %s", view.code.co_qualname, reason)
    if (view.code, reason) not in session.report.eager:
        session.report.left(view.code, reason)
    backend.guards = _guards_of_left(tx)
    return True


def _guards_of_left(tx: Trace) -> list[GuardRecord]:
    """What has to hold for a frame that is left to Python: all that its trace depended on but the arrays' form."""
    kept = [one for one in tx.guards.records if not any(map(_is_of_array, one.sources))]
    few = [
        FewElements(item.source.parent, _GROWTH * max(1, item.example.numel()))
        for item in tx.output.inputs
        if isinstance(item.source, ArrayTensorSource)
    ]
    return [*kept, *few]


def _is_of_array(source: Source) -> bool:
    found: Source | None = source
    while found is not None:
        if isinstance(found, ArrayTensorSource):
            return True
        found = found.base
    return False


def _gain(tx: Trace) -> float:
    """Seconds that a graph spares, without what its call takes."""
    call, gain = numpy_calls.operator(), 0.0
    for node in _calls(tx):
        gain += -_CALL if node.target is call else _spared(tx, node)
    return gain


def _spared(tx: Trace, node: Node) -> float:
    made = _dimensions(node)
    if made is None:  # a number that Python computes
        return 0.0
    if made == 0 and (node.target is operator.getitem or not any(map(_dimensions, node.all_input_nodes))):
        return _NUMBER
    return _OPERATION + _ELEMENT * _elements(tx, node)


def _dimensions(node: Node) -> int | None:
    """How many dimensions a tensor has; None of what is none."""
    spec = node.meta.get(SPEC_KEY)
    return len(spec.sizes) if isinstance(spec, TensorSpec) else None


def _calls(tx: Trace) -> Iterator[Node]:
    return (node for node in tx.output.graph.nodes if node.op.startswith("call"))


def _elements(tx: Trace, node: Node) -> int:
    spec = node.meta.get(SPEC_KEY)
    if not isinstance(spec, TensorSpec) or any(tx.env.is_from_data(size) for size in spec.sizes):
        return 0
    found = 1
    for size in spec.sizes:
        found *= tx.env.hint(size)
    return found


def is_without_torch(view: FrameView) -> bool:
    """Whether neither the arguments and free variables of a frame nor what its code names are tensors, modules or
    functions of torch: it computes with arrays and numbers, or calls what is a frame of its own."""
    values = [*view.locals.values(), *_closed_over(view)]
    return names_no_torch(view.code, view.globals) and all(map(has_no_torch, values))


def _closed_over(view: FrameView) -> Iterator[object]:
    """What free variables of a frame hold."""
    for cell in view.closure or ():
        try:
            yield cell.cell_contents
        except ValueError:  # empty yet
            continue
