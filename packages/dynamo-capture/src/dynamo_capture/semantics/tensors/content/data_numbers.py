"""Numbers that come out of tensors while the graph runs: symbols that are born in the graph.

``mask.nonzero()`` has as many rows as the mask has set elements, ``t.item()`` is a Python integer: each is a symbol
without a hint. Its node is made where somebody first asks for the number: ``size`` of the tensor that has it.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import CONTENT_DECIDES, DATA_NUMBER
from dynamo_capture.foundation.errors import DataDependent, GraphBreak
from dynamo_capture.frames.left_functions import note_number_taken
from dynamo_capture.values import (
    Const,
    ListValue,
    SymValue,
    TensorValue,
    TupleValue,
    Value,
    are_tensors,
    one_tensor,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.numbers.condition import DataCondition
from fx_interface.errors import UnsupportedProgramError
from fx_interface.graph import BORN_KEY
from fx_interface.symbols import Expr, IntLike, Relation, Symbol, indicator
from fx_interface.tensor_spec import SymSpec

MOST_NUMBERS = 64
"""``tolist()`` of a longer tensor breaks the graph: each number is a symbol."""

_INTEGERS = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})


def note_births(tx: Context, symbols: frozenset[Symbol], result: Any) -> None:
    """The results of an operation that made ``symbols``: where each is read."""
    if isinstance(result, TensorValue):
        for dim, size in enumerate(result.meta.spec.sizes):
            atom = size.as_symbol if isinstance(size, Expr) else None
            if atom is not None and atom in symbols:
                tx.output.born.setdefault(atom, (result.node, dim))
    elif isinstance(result, (TupleValue, ListValue)):
        for item in result.items:
            note_births(tx, symbols, item)


def holds_integers(tensor: TensorValue) -> bool:
    """Whether it is a plain tensor of integers."""
    return tensor.meta.spec.dtype in _INTEGERS and tensor.meta.cls is torch.Tensor


def is_one_integer(tensor: TensorValue) -> bool:
    """Whether a tensor surely holds one integer."""
    spec = tensor.meta.spec
    return (
        spec.dtype in _INTEGERS
        and all(isinstance(size, int) and size == 1 for size in spec.sizes)
        and tensor.meta.cls is torch.Tensor
    )


def take_out(tx: Context, tensor: TensorValue) -> SymValue | None:
    """``tensor.item()`` of one integer as a node; None where the operators' library knows no such number."""
    if not is_one_integer(tensor) or not tx.inference.follows_data:
        return None
    item = torch.ops.aten._local_scalar_dense.default
    try:
        spec = tx.inference.library.infer(item, [tensor.meta.spec], {}, tx.env)
    except (DataDependent, UnsupportedProgramError):
        return None
    if not isinstance(spec, SymSpec) or not isinstance(spec.expr, Expr):
        return None
    atom = spec.expr.as_symbol
    assert atom is not None
    tx.tensors.state.asked.append(tensor.node)
    note_number_taken(tx)
    argument = tx.output.use(tensor.node)
    node = tx.output.call("call_method", "item", (argument,), {}, spec, tx.where(), pure=True)
    node.meta[BORN_KEY] = atom
    tx.output.symbol_nodes[atom] = node
    number = SymValue(spec.expr)
    tensor.content = number
    return number


def is_taken_as_number(tx: Context, tensor: TensorValue) -> bool:
    """Whether an operation that asked for the integer in a tensor without dimensions can have it as a number:
    ``torch.zeros(n)``, ``x[:n]``, ``x.roll(n)``."""
    return not tensor.meta.spec.sizes and tensor.content is None and take_out(tx, tensor) is not None


def list_of(tx: Context, tensor: TensorValue) -> ListValue | None:
    """``tensor.tolist()`` of a few integers; None for other tensors. From then on their number is known, as that of a
    loop's rounds is."""
    spec = tensor.meta.spec
    if not holds_integers(tensor) or not spec.sizes:
        return None
    if not _is_short(tx, spec.sizes):
        return None
    numbers: list[Value] = []
    for index in range(tx.env.specialize(spec.sizes[0])):
        item = one_tensor(tensor.get_item(tx, Const(index)))
        taken = list_of(tx, item) if item.meta.spec.sizes else take_out(tx, item)
        if taken is None:
            return None
        numbers.append(taken)
    return ListValue(numbers)


def _is_short(tx: Context, sizes: tuple[IntLike, ...]) -> bool:
    """Whether there are few numbers, and few lengths so far where one is left open."""
    if any(tx.env.is_from_data(size) for size in sizes):
        return False
    lengths = [tx.env.hint(size) for size in sizes]
    return math.prod(lengths) <= MOST_NUMBERS and not any(
        isinstance(size, Expr) and tx.policy.has_too_many_values(f"{tx.where()}: length {size}", length)
        for size, length in zip(sizes, lengths, strict=True)
    )


def truth_of(tx: Context, tensor: TensorValue, *, is_new: bool = False) -> DataCondition | None:
    """``bool(tensor)`` as a value to return; None where that is not one integer or bool, or a mode is to be asked.
    ``is_new``: the program has no way to write to the tensor."""
    if tx.tensors.modes or not tx.inference.follows_data:
        return None
    spec = tensor.meta.spec
    if spec.dtype is not torch.bool:
        taken = take_out(tx, tensor)
        if taken is not None:
            tx.tensors.state.asked.pop()  # a truth is no number that a program has been given
        return None if taken is None else DataCondition(Relation("!=", taken.expr, 0))
    if tensor.meta.cls is not torch.Tensor:
        return None
    if not all(isinstance(size, int) and size == 1 for size in spec.sizes):
        return None
    held = tensor if is_new else one_tensor(tx.tensors.call_function(torch.ne, [tensor, Const(False)], {}))
    if spec.sizes:
        held = one_tensor(held.call_method(tx, "reshape", [TupleValue([])], {}))
    return DataCondition(tensor=held, take=partial(_relation, tx, held))


def _relation(tx: Context, flag: TensorValue) -> Relation:
    """What holds where the bool in a tensor of the trace's own is true."""
    return Relation("!=", _as_integer(tx, flag).expr, 0)


def number_of(tx: Context, condition: DataCondition) -> SymValue:
    """``int(condition)`` of a bool that a tensor holds."""
    return _as_integer(tx, condition.tensor)


def _as_integer(tx: Context, flag: TensorValue) -> SymValue:
    taken = take_out(tx, one_tensor(flag.call_method(tx, "to", [Const(torch.int64)], {})))
    if taken is None:
        raise GraphBreak(CONTENT_DECIDES, "the truth of a tensor depends on its content")
    tx.tensors.state.asked.pop()
    return taken


def are_equal(tx: Context, one: Value, other: Value) -> Value | None:
    """``torch.equal(one, other)`` of two tensors of one dtype; None for other arguments."""
    if not isinstance(one, TensorValue) or not isinstance(other, TensorValue) or one is other:
        return None
    if one.is_overridden(tx) or other.is_overridden(tx):
        return None  # who is asked about this one function
    mine, theirs = one.meta.spec, other.meta.spec
    if (mine.dtype, mine.device) != (theirs.dtype, theirs.device):
        return None
    if len(mine.sizes) != len(theirs.sizes) or not all(
        tx.decide(Relation("==", a, b)) for a, b in zip(mine.sizes, theirs.sizes, strict=True)
    ):
        return Const(False)
    alike = tx.tensors.call_function(torch.eq, [one, other], {}).call_method(tx, "all", [], {})
    return truth_of(tx, alike) if isinstance(alike, TensorValue) else None


def are_close(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> DataCondition | None:
    """``torch.allclose``; None where one of the two is no tensor."""
    if len(args) < 2 or not are_tensors(args[:2]):
        return None
    if any(isinstance(arg, TensorValue) and arg.is_overridden(tx) for arg in args[:2]):
        return None
    close = tx.tensors.call_function(torch.isclose, args, kwargs).call_method(tx, "all", [], {})
    return truth_of(tx, close) if isinstance(close, TensorValue) else None


def state(tx: Context, relation: Relation, message: str) -> None:
    """From here on ``relation`` holds: where it does not, the graph raises RuntimeError with ``message``."""
    shown = indicator(Relation(relation.op, tx.env.simplify(relation.lhs), tx.env.simplify(relation.rhs)))
    if isinstance(shown, int):
        raise GraphBreak(DATA_NUMBER, f"{relation} is never true")
    check = torch.ops.aten._assert_scalar.default
    argument = tx.output.size(shown)
    made = tx.output.call("call_function", check, (argument, message), {}, None, tx.where(), pure=False)
    tx.output.fail(made, behind=tx.output.lasts)
    tx.env.learn(relation)


def assume_true(tx: Context, flag: TensorValue) -> bool:
    """``assume`` that a bool of the trace's own is true. False: the graph cannot state it."""
    condition = truth_of(tx, flag, is_new=True)
    if condition is None:
        return False
    for relation in condition.relations:
        assume(tx, relation)
    return True


def assume(tx: Context, relation: Relation) -> None:
    """As ``state``, for what raises another exception: where it does not hold, the frame runs once more as it is."""
    tx.output.assume(f"whether {relation}")
    state(tx, relation, f"{relation} does not hold")
