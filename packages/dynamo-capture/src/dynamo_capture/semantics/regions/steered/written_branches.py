"""A branch that data steer, and that does nothing but write to tensors, is done in any case and taken back.

    if mask.any():               before = x.clone()
        x[mask] = v        ->    x[mask] = v
                                 x.copy_(where(mask.any(), x, before))

So the graph goes on, nothing waits for the answer, and the copies are fused with what is around them. The branch is
tried on a sub-graph first, which is thrown away: it may not raise, draw, or change anything but tensors, it may cost
little, and autograd may not follow it (a gradient of what has not been done may be no number).

Tensors that existed before count what is written to them. When the graph has run, their counts are set to those of the
program. What autograd saves compares counts: where it saves anything in this graph, the graph ends at the branch.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import torch
from torch.fx import Node

from dynamo_capture.foundation.errors import CapturedAnew, GraphBreak, NotConstant, UserRaise, forget_frames
from dynamo_capture.graph.graph_builder import GraphOutput, WrittenTensor, is_given
from dynamo_capture.graph.region_body import Body
from dynamo_capture.runtime.write_counts import TakenBack
from dynamo_capture.semantics.regions.steered.trials import Trial, is_noticed, is_traced, may_try
from dynamo_capture.semantics.tensors.content.choices import is_open
from dynamo_capture.semantics.tensors.content.conditions import as_tensor
from dynamo_capture.values import Const, TensorValue, TupleValue, Value, one_tensor
from dynamo_capture.values.base import Context
from dynamo_capture.values.numbers.condition import DataCondition
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES
from fx_interface.errors import UnbackedSymbolError
from fx_interface.graph import BORN_KEY, EXPECTED_KEY
from fx_interface.tensor_spec import SPEC_KEY, TensorSpec

_MOST_NODES: Final = 16
_COSTLY: Final = frozenset(
    {
        "matmul",
        "mm",
        "bmm",
        "addmm",
        "baddbmm",
        "linear",
        "einsum",
        "bilinear",
        "dot",
        "mv",
        "cdist",
        "conv1d",
        "conv2d",
        "conv3d",
        "scaled_dot_product_attention",
        "sort",
        "topk",
    }
)
"""Operations that are not done for nothing."""
_POINTWISE: Final = frozenset({operator.iadd, operator.isub, operator.imul, operator.itruediv})
_COUNTED: Final = _POINTWISE | {operator.setitem}
"""What counts as one write, beside methods and functions whose names end with an underscore."""


T = TypeVar("T", covariant=True)


class Side(Protocol[T]):
    """What is done where the answer is ``holds``. ``run`` does it, leaves the frame as it was, and says what is left
    behind."""

    holds: bool

    def run(self) -> T: ...


class _Writing(Trial):
    """The branch as a sub-graph. ``roots``: the tensors of its surroundings that it writes to, by their nodes;
    ``counts``: how often. ``uncounted``: whether something is written to otherwise."""

    def __init__(self, parent: GraphOutput) -> None:
        super().__init__(parent)
        self.roots: dict[Node, TensorValue] = {}
        self.counts: Counter[Node] = Counter()
        self.uncounted = False
        self._writes = False

    def write(self, written: Sequence[WrittenTensor], lasting: Sequence[WrittenTensor] = ()) -> None:
        leaves = self.leaves
        GraphOutput.write(self, written, lasting)
        self.leaves = leaves or not written
        for tensor in written:
            root = tensor.memory
            if root.node.graph is not self.graph:
                assert isinstance(tensor, TensorValue)
                assert isinstance(root, TensorValue)
                self.roots[root.node] = root
                self.counts[root.node] += 1
                self._writes = True
                if tensor.root is not root.root:  # as ``x.data``, which has a count of its own
                    self.uncounted = True

    def call(self, *args: Any, **options: Any) -> Node:
        node = super().call(*args, **options)
        if self._writes and not (_name(node).endswith("_") or node.target in _COUNTED):
            self.uncounted = True
        self._writes = False
        return node


def may_be_written(tx: Context, condition: Value) -> bool:
    """Whether a branch on this value may be such a one: data alone answer it, in a graph that nothing transforms."""
    if isinstance(tx.output, Body) or not may_try(tx):
        return False
    if isinstance(condition, DataCondition):
        return True
    return (
        is_open(condition)
        and isinstance(condition, TensorValue)
        and tx.tensors.followed.of(condition) is None
    )


def done_and_taken_back(
    tx: Context, condition: Value, sides: Sequence[Side[T]], fits: Callable[[list[T]], bool]
) -> tuple[TensorValue, list[T]] | None:
    """Do what each side does where ``condition`` is what it ``holds``: the answer as a tensor, and what they leave
    behind. None: one is of another kind, or what they leave behind where they are tried does not fit, and the graph has
    to end."""
    place, functions = tx.where(), tx.policy.functions
    if place in functions.not_done:
        return None
    tried = [_tried(tx, side, place) for side in sides]
    found = [one for one in tried if one is not None]
    if len(found) < len(tried) or not fits([left for _, left in found]):
        return None
    bodies = [body for body, _ in found]
    answer = _answer(tx, condition)
    if not _are_on(answer.meta.spec.device, bodies):
        return None
    if any(_may_be_written_to(condition, answer, body) for body in bodies):
        answer = one_tensor(answer.call_method(tx, "clone", [], {}))
    try:
        left = [_done(tx, answer, side, body, place) for side, body in zip(sides, bodies, strict=True)]
    except (GraphBreak, NotConstant, UnbackedSymbolError, UserRaise) as error:  # what was tried did not
        forget_frames(error)
        functions.not_done.add(place)
        raise CapturedAnew from None
    return answer, left


def _tried(tx: Context, side: Side[T], place: Any) -> tuple[_Writing, T] | None:
    """A side as a sub-graph, and what it leaves behind; None where it cannot be done and taken back."""
    body, left = _Writing(tx.output), list[T]()
    if not is_traced(tx, body, lambda: left.append(side.run())) or not _is_harmless(body, bool(left[0])):
        return None
    given = [root for root in body.roots.values() if is_given(root)]
    is_left = place in tx.policy.functions.not_taken_back
    if given and (body.uncounted or is_left or not all(map(_counts, given))):
        return None
    return body, left[0]


def _done(tx: Context, answer: TensorValue, side: Side[T], body: _Writing, place: Any) -> T:
    """Do a side, and take back what it has written where the answer is another one."""
    before = [one_tensor(root.call_method(tx, "clone", [], {})) for root in body.roots.values()]
    left = side.run()
    for root, earlier in zip(body.roots.values(), before, strict=True):
        pair = [root, earlier] if side.holds else [earlier, root]
        root.call_method(tx, "copy_", [tx.tensors.call_function(torch.where, [answer, *pair], {})], {})
    given = {node: root for node, root in body.roots.items() if is_given(root)}
    if given:
        counts = tuple([body.counts[node] for node in given])
        tx.effects.deferred(TakenBack(side.holds, counts), [answer, *given.values()], {}, is_note=True)
        tx.output.closing.append(partial(_check_saves_nothing, tx, place))
    return left


def _are_on(device: torch.device, bodies: Sequence[_Writing]) -> bool:
    """Whether all tensors that sides write to or compute are on one device."""
    specs = [node.meta.get(SPEC_KEY) for body in bodies for node in (*body.roots, *_calls(body))]
    return all(spec.device == device for spec in specs if isinstance(spec, TensorSpec))


def _answer(tx: Context, condition: Value) -> TensorValue:
    """The truth of a value as a tensor without dimensions."""
    if isinstance(condition, DataCondition):
        return as_tensor(tx, condition)
    assert isinstance(condition, TensorValue)
    answer: Value = condition
    if condition.meta.spec.dtype is not torch.bool:
        answer = condition.call_method(tx, "to", [Const(torch.bool)], {})
    if condition.meta.spec.sizes:
        answer = answer.call_method(tx, "reshape", [TupleValue([])], {})
    return one_tensor(answer)


def _may_be_written_to(condition: Value, answer: TensorValue, body: _Writing) -> bool:
    """Whether the answer is a tensor of the program that is written to before it has been read for the last time: by
    the branch, as in ``if first: first.fill_(False)``, or, where counts of writes are set when the graph has run,
    behind it."""
    if not isinstance(condition, TensorValue) or condition.meta.spec.dtype is not torch.bool:
        return False
    return any(root is answer.memory or is_given(root) for root in body.roots.values())


def _counts(root: TensorValue) -> bool:
    """Whether what is written to an existing tensor is counted for it alone, and can be counted back."""
    is_kept = root.source is not None and root.real is not None and not root.is_replaced
    return is_kept and not root.meta.is_inference and root.meta.cls in PLAIN_CLASSES


def _check_saves_nothing(tx: Context, place: Any) -> None:
    """Captures the frame anew where autograd may have saved a tensor whose count of writes is set back."""
    if tx.output.saving:
        tx.policy.functions.not_taken_back.add(place)
        raise CapturedAnew


def _is_harmless(body: _Writing, gives: bool) -> bool:
    """Whether nobody can tell that it has been done, and taken back. ``gives``: something is left behind."""
    made = [root for root in body.roots.values() if not is_given(root)]
    if is_noticed(body, made) or not all(map(_takes_any_content, body.failing)):
        return False
    calls = _calls(body)
    kept = body.roots if body.roots and not gives else [*body.roots, *body.lifted]
    most = max(map(_numel, kept), default=1)
    is_cheap = are_cheap(calls, _MOST_NODES * max(len(body.roots), 1))
    return is_cheap and not any(_numel(node) > 2 * most for node in calls)


def costs_little(body: Body) -> bool:
    """Whether what is in a sub-graph may be done for nothing: few operations, none of them costly or of a size that
    data tell."""
    return are_cheap(_calls(body), _MOST_NODES)


def are_cheap(calls: Sequence[Node], most: int) -> bool:
    """Whether operations are ``most`` at most, and none of them costly or of a size that data tell."""
    return len(calls) <= most and not any(
        _name(node) in _COSTLY or BORN_KEY in node.meta or EXPECTED_KEY in node.meta for node in calls
    )


def _calls(body: Body) -> list[Node]:
    return [node for node in body.graph.nodes if node.op.startswith("call")]


def _takes_any_content(node: Node) -> bool:
    """Whether a write that may fail does so because of forms alone, as where memory overlaps, and not of what is in
    tensors: ``x[mask] = value`` takes a value that no number of elements has to fit."""
    if node.target is not operator.setitem:
        return node.target in _POINTWISE
    tensor, key, value = node.args
    if not any(isinstance(part, Node) for part in (key if isinstance(key, tuple) else (key,))):
        return True
    written, chosen, given = (
        one.meta.get(SPEC_KEY) if isinstance(one, Node) else None for one in (tensor, key, value)
    )
    if (
        not isinstance(written, TensorSpec)
        or not isinstance(chosen, TensorSpec)
        or chosen.dtype is not torch.bool
    ):
        return False
    if not isinstance(value, Node):
        return True
    return isinstance(given, TensorSpec) and given.rank <= written.rank - chosen.rank


def _numel(node: Node) -> float:
    """How many elements a node has; without symbols in them: those of now are not known here."""
    spec: Any = node.meta.get(SPEC_KEY)
    sizes = spec.sizes if isinstance(spec, TensorSpec) else ()
    return math.prod(size for size in sizes if isinstance(size, int))


def _name(node: Node) -> str:
    return str(getattr(node.target, "__name__", node.target))
