"""Dual tensors that the program makes itself: ``with forward_ad.dual_level():``.

    d = make_dual(x, t)
    p, change = unpack_dual(d.sin())        ->      change, p = pushed(sin, x, t)

In the trace a dual tensor is its primal, and the level knows what its change is. Each operation on one is a region of
its own, which gives the changes of its results too (``pushed``); compilers make plain operators of them. Anything else
that would use a dual tensor in the graph, as a region or an autograd engine, ends the graph, and so does what ends it
inside of the level for other reasons: the program enters the level itself then, and runs in Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.autograd import forward_ad

from dynamo_capture.foundation.break_kinds import TRANSFORM
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.graph.region_body import Body
from dynamo_capture.semantics.modes.modes import Block, switches
from dynamo_capture.semantics.regions.tracing import trace_body
from dynamo_capture.semantics.regions.transforms.body import TransformBody, open_transform
from dynamo_capture.semantics.registry import handles
from dynamo_capture.semantics.tensors.operations import Operation
from dynamo_capture.values import NONE, Const, TensorMeta, TensorValue, TupleValue, Value, one_tensor
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import items_of, leaves_of, mapped_leaves
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES
from fx_interface.regions import moving, pushed
from fx_interface.tensor_spec import is_differentiable


class DualLevel(Block):
    """The level that the program has entered. ``changes``: dual tensors and their changes, by the tensors' ids."""

    __slots__ = ("changes", "tx", "writes")
    python_class = forward_ad.dual_level

    def __init__(self, tx: Context) -> None:
        super().__init__()
        self.tx = tx
        self.changes: dict[int, tuple[TensorValue, TensorValue]] = {}
        self.around = self.inside = switches()
        self.writes = len(tx.output.overwritten)
        tx.tensors.duals = self
        tx.blocks.append(self)

    def set(self, tensor: TensorValue, change: TensorValue) -> None:
        """The tensor is dual from here on."""
        self.changes[id(tensor)] = tensor, change
        self.tx.output.duals.add(tensor.node)

    def of(self, tensor: Value) -> TensorValue | None:
        """The change of a tensor; None if it is not dual."""
        found = self.changes.get(id(tensor))
        return None if found is None else found[1]

    def check_not_written(self) -> None:
        """A graph break where something has been written to that a dual tensor, or its change, shows."""
        written = {id(one) for one in self.tx.output.overwritten[self.writes :]}
        if any(id(one.memory) in written for pair in self.changes.values() for one in pair):
            raise GraphBreak(TRANSFORM, "a dual tensor is written to")

    def undo(self) -> None:
        self.changes.clear()
        self.tx.output.duals.clear()
        self.tx.tensors.duals = None

    def leave(self, tx: Context, raised: Value) -> Value:
        raise GraphBreak(TRANSFORM, "the graph would end in a level of dual tensors")

    @contextmanager
    def usable(self) -> Iterator[None]:
        """In this block nodes of dual tensors may be used."""
        output = self.tx.output
        kept, output.duals = output.duals, set()
        try:
            yield
        finally:
            output.duals |= kept


@handles(forward_ad.enter_dual_level)
def enter_dual_level(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    code = tx.frames[0].code
    refused = tx.tensors.duals is not None or isinstance(tx.output, Body) or tx.levels or tx.tensors.modes
    if args or kwargs or refused or id(code) in tx.policy.functions.without_levels:
        raise GraphBreak(TRANSFORM, "a level of dual tensors is entered")
    DualLevel(tx)
    return Const(0)


@handles(forward_ad.exit_dual_level)
def exit_dual_level(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    level = _level(tx, kwargs)
    if args or level is not tx.blocks[-1]:
        raise GraphBreak(TRANSFORM, "a level of dual tensors is left in an unusual order")
    level.check_not_written()
    level.undo()
    tx.blocks.remove(level)
    return NONE


@handles(forward_ad.make_dual)
def make_dual(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    level = _level(tx, kwargs)
    given = {**dict(zip(("tensor", "tangent"), args, strict=False)), **kwargs}
    tensor, change = (tx.force(given.get(name, NONE)) for name in ("tensor", "tangent"))
    if not _may_be_dual(level, tensor) or not _may_be_dual(level, change):
        raise GraphBreak(TRANSFORM, "a dual tensor of an unusual kind is made")
    assert isinstance(tensor, TensorValue)
    assert isinstance(change, TensorValue)
    if tensor.meta.spec != change.meta.spec or not tensor.meta.spec.is_contiguous:
        raise GraphBreak(TRANSFORM, "a dual tensor is made whose change has another form")
    made = _view(tx, tensor)
    level.set(made, change)
    return made


@handles(forward_ad.unpack_dual)
def unpack_dual(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    level = _level(tx, kwargs)
    tensor = tx.force(args[0] if args else kwargs.get("tensor", NONE))
    if type(tensor) is not TensorValue or tensor.meta.cls not in PLAIN_CLASSES:
        raise GraphBreak(TRANSFORM, "a dual tensor of an unusual kind is taken apart")
    with level.usable():
        primal = _view(tx, tensor, is_plain=True)
    change = level.of(tensor)
    return TupleValue([primal, NONE if change is None else change], forward_ad.UnpackedDualTensor)


def _level(tx: Context, kwargs: dict[str, Value]) -> DualLevel:
    """The level that is open, and that a call of these keywords is about."""
    level = tx.tensors.duals
    named = kwargs.get("level", NONE)
    if level is None or tx.constant(named) not in (None, 0):
        raise GraphBreak(TRANSFORM, "a level of dual tensors that was entered elsewhere")
    found: DualLevel = level
    return found


def _may_be_dual(level: DualLevel, value: Value) -> bool:
    if type(value) is not TensorValue or value.meta.cls not in PLAIN_CLASSES or level.of(value) is not None:
        return False
    return is_differentiable(value.meta.spec.dtype) and not value.is_replaced


def _view(tx: Context, tensor: TensorValue, is_plain: bool = False) -> TensorValue:
    call = Operation("call_method", "view_as", torch.Tensor.view_as, [tensor, tensor], {})
    made = tx.tensors.plain(call) if is_plain else tensor.call_method(tx, "view_as", [tensor], {})
    return one_tensor(made)


def by_derivative(tx: Context, call: Operation) -> Value | None:
    """An operation on dual tensors, with the changes of its results."""
    level = tx.tensors.duals
    if level is None or not level.changes:
        return None
    values = [*call.args, *call.kwargs.values()]
    leaves = [item for value in values for item in items_of(tx, value) if level.of(item) is not None]
    duals: dict[int, TensorValue] = {id(leaf): leaf for leaf in leaves if isinstance(leaf, TensorValue)}
    if not duals:
        return None
    if not torch._C._is_fwd_grad_enabled():
        raise GraphBreak(TRANSFORM, "an operation on dual tensors that is not to be differentiated")
    with level.usable():
        return _pushed(tx, level, call, list(duals.values()))


def _pushed(tx: Context, level: DualLevel, call: Operation, duals: list[TensorValue]) -> Value:
    body = TransformBody(tx.output, f"an operation on dual tensors ({call.name})")
    body.own_rule = "jvp"
    stands = {id(dual): _parameter(body, dual) for dual in duals}
    back = {id(stand): dual for stand, dual in zip(stands.values(), duals, strict=True)}

    def inside(value: Value) -> Value:
        value = tx.force(value)
        return stands.get(id(value), value) if isinstance(value, TensorValue) else value.mapped(tx, inside)

    args, kwargs = (
        [inside(arg) for arg in call.args],
        {name: inside(arg) for name, arg in call.kwargs.items()},
    )
    run = lambda: tx.force(tx.tensors.operation(call.op, call.target, call.function, args, kwargs))  # noqa: E731
    result = trace_body(tx, body, run, pure=True, passed=[*call.args, *call.kwargs.values()])
    made: dict[int, TensorValue] = {}
    for item in items_of(tx, result):
        if isinstance(item, TensorValue) and item.node.graph is body.graph and id(item) not in back:
            made[id(item)] = item
    if not made:
        return mapped_leaves(tx, result, lambda leaf: back.get(id(leaf), leaf))
    if any(item.memory is not item for item in made.values()):
        return _viewed(tx, level, call, duals)
    changes = [level.changes[id(dual)][1] for dual in duals]
    options, moves = {"wrt": len(duals), "results": len(made)}, list[bool]()
    found = open_transform(
        tx,
        pushed,
        body,
        [*duals, *changes],
        list(made.values()),
        options,
        lambda ask: moves.extend(ask(moving)),
    )
    for number, change, value, does in zip(made, found, found[len(made) :], moves, strict=False):
        back[number] = value
        if does:
            level.set(value, change)
    return mapped_leaves(tx, result, lambda leaf: back.get(id(leaf), leaf))


def _viewed(tx: Context, level: DualLevel, call: Operation, duals: list[TensorValue]) -> Value:
    """A view of a dual tensor, whose change is the same view of its change."""
    if len(duals) > 1:
        raise GraphBreak(TRANSFORM, "a view of one dual tensor by another one")
    result = tx.tensors.plain(Operation(call.op, call.target, call.function, call.args, call.kwargs))
    if call.name == "detach":
        return result
    (dual,) = duals
    change = level.changes[id(dual)][1]

    def of_change(value: Value) -> Value:
        value = tx.force(value)
        return change if value is dual else value.mapped(tx, of_change)

    args, kwargs = [of_change(v) for v in call.args], {k: of_change(v) for k, v in call.kwargs.items()}
    changes = tx.tensors.operation(call.op, call.target, call.function, args, kwargs)
    for one, other in zip(leaves_of(tx, result), leaves_of(tx, changes), strict=True):
        level.set(one, other)
    return result


def _parameter(body: TransformBody, dual: TensorValue) -> TensorValue:
    requires_grad = dual.meta.requires_grad
    return body.argument("primal", TensorMeta.of(dual.meta.spec, requires_grad, not requires_grad))
