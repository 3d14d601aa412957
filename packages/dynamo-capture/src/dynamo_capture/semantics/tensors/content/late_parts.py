"""Numbers and parts of tensors of which there may be now more and now fewer, and what needs not to know how many.

    images = torch.cat(torch.split(features, counts.tolist()))     ->  features.clone()
    images = torch.cat(list(features))                             ->  features.flatten(0, 1).clone()

What asks for the items fixes how many there are, as a loop's rounds are, or leaves to Python the function that goes
through them (``frames.left_functions``).
"""

from __future__ import annotations

from typing import Any, Protocol

import torch

from dynamo_capture.foundation.break_kinds import CONTENT_DECIDES
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.frames.left_functions import leave_loop, part_around
from dynamo_capture.semantics.modes.modes import InferenceMode, set_grad
from dynamo_capture.semantics.tensors.content import contents, data_numbers
from dynamo_capture.values import NONE, Const, SequenceValue, TensorValue, Value, one_tensor
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.late_sequences import Items, NumberList, PartsList, PartsTuple
from dynamo_capture.values.special_methods import rely_on
from fx_interface.symbols import Expr, Relation


class Call(Protocol):
    """An operation that may become a node."""

    args: list[Value]
    kwargs: dict[str, Value]

    @property
    def name(self) -> str:
        """The name of the function or method."""


def numbers_of(tx: Context, tensor: TensorValue) -> Value | None:
    """``tensor.tolist()``, unread; None where it is no list of integers."""
    if not data_numbers.holds_integers(tensor) or not tensor.meta.spec.sizes:
        return None
    made = NumberList(tensor, lambda: _numbers(tx, tensor))
    tx.tensors.state.unread.append(made)
    return made


def _numbers(tx: Context, tensor: TensorValue) -> list[Value]:
    if tensor.content is not None:
        found = contents.read(tx, tensor, "tolist")
        assert isinstance(found, SequenceValue)
        return found.items
    tx.tensors.state.asked.append(tensor.node)
    rows = tensor.meta.spec.sizes[0]
    if isinstance(rows, Expr) and not tx.env.is_from_data(rows):
        leave_loop(tx, "the numbers of a tensor, of which there are now more and now fewer")
    numbers = data_numbers.list_of(tx, tensor)
    if numbers is None:
        leaves = None if tensor.meta.spec.is_static else part_around(tx)
        raise GraphBreak(CONTENT_DECIDES, "`tolist()` reads the tensor's content", leaves=leaves)
    return numbers.items


def rows_of(tx: Context, tensor: TensorValue) -> Value | None:
    """``list(tensor)``, unread, where there are as many rows as vary; None for other tensors."""
    size = tensor.meta.spec.sizes[0] if tensor.meta.spec.sizes else None
    if not isinstance(size, Expr) or tx.tensors.modes or tx.tensors.overriding([tensor]):
        return None
    rely_on(tx, "__iter__")
    tx.tensors.check_special(tensor, "__iter__")
    rows = tensor.call_method(tx, "unbind", [], {})
    return PartsList(rows) if isinstance(rows, PartsTuple) and rows.is_unread else None


def settle_before_write(tx: Context, written: list[TensorValue]) -> None:
    """Lists are of what the tensors hold now, before some are written to."""
    state = tx.tensors.state
    memories = {id(tensor.memory) for tensor in written}
    for made in state.unread:
        if made.is_unread and id(made.tensor.memory) in memories:
            made.unpack(tx)
    state.unread = [made for made in state.unread if made.is_unread]


def rewritten(tx: Context, call: Call) -> Value | None:
    """``split`` by an unread list, ``unbind`` of a dimension whose size varies, and what joins such parts."""
    rewrite = _REWRITES.get(call.name)
    if rewrite is None or (rewrite in (_split, _unbind) and torch.is_inference_mode_enabled() and tx.blocks):
        return None  # the mode may be left before the parts are asked for
    return rewrite(tx, call)


def _split(tx: Context, call: Call) -> Value | None:
    given = _given(
        call, ("tensor", "split_size_or_sections", "dim"), {"split_size": 1, "split_sizes": 1, "self": 0}
    )
    if given is None or len(given) < 2:
        return None
    whole, sizes = given[0], given[1]
    dim = 0 if len(given) < 3 else given[2].known_as(int)
    if (
        not isinstance(whole, TensorValue)
        or not isinstance(sizes, NumberList)
        or not sizes.is_unread
        or dim is None
    ):
        return None
    rank = whole.meta.spec.rank
    if sizes.tensor.meta.spec.rank != 1 or not -rank <= dim < rank or whole.meta.cls is not torch.Tensor:
        return None
    if not _add_up(tx, sizes.tensor, whole.meta.spec.sizes[dim]):
        return None
    return PartsTuple(whole, sizes, dim % rank, _as_here(tx, lambda: _items(call, tx)))


def _items(call: Call, tx: Context) -> list[Value]:
    sizes = (
        call.args[1]
        if len(call.args) > 1
        else next(v for v in call.kwargs.values() if isinstance(v, NumberList))
    )
    assert isinstance(sizes, NumberList)
    sizes.unpack(tx)
    made = tx.tensors.plain(call)
    assert isinstance(made, SequenceValue)
    return made.items


def _add_up(tx: Context, sizes: TensorValue, size: Any) -> bool:
    """State what ``split`` asks of sizes: none is negative, and together they are the whole. False where that is not
    so, or nothing that can be stated."""
    if isinstance(sizes.content, torch.Tensor):
        contents.rely(tx, sizes)
        known = sizes.content.tolist()
        return min(known, default=-1) >= 0 and tx.decide(Relation("==", sum(known), size))
    asked = len(tx.tensors.state.asked)
    total = data_numbers.take_out(tx, one_tensor(sizes.call_method(tx, "sum", [], {})))
    least = data_numbers.take_out(tx, one_tensor(sizes.call_method(tx, "min", [], {})))
    del tx.tensors.state.asked[asked:]  # nothing that a program would have been given
    if total is None or least is None:
        return False
    data_numbers.assume(tx, Relation("==", total.expr, size))
    data_numbers.assume(tx, Relation("<=", 0, least.expr))
    return True


def _unbind(tx: Context, call: Call) -> Value | None:
    given = _given(call, ("input", "dim"), {"self": 0})
    if given is None or not isinstance(given[0], TensorValue):
        return None
    whole, spec = given[0], given[0].meta.spec
    dim = 0 if len(given) < 2 else given[1].known_as(int)
    if dim is None or not -spec.rank <= dim < spec.rank or whole.meta.cls is not torch.Tensor:
        return None
    size = tx.env.simplify(spec.sizes[dim])
    if not isinstance(size, Expr) or tx.env.is_from_data(size):
        return None

    def items() -> list[Value]:
        tx.env.specialize(size)
        made = tx.tensors.plain(call)
        assert isinstance(made, SequenceValue)
        return made.items

    return PartsTuple(whole, None, dim % spec.rank, _as_here(tx, items))


def _as_here(tx: Context, make: Items) -> Items:
    """``make``, which is called later, with gradients and inference mode on or off as here."""
    enabled, inferring = torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    def items() -> list[Value]:
        block = InferenceMode(inferring) if torch.is_inference_mode_enabled() is not inferring else None
        if block is not None:
            block.enter(tx)
        now = torch.is_grad_enabled()
        try:
            with tx.tensors.modes.without(
                len(tx.tensors.modes.active)
            ):  # none is asked: the program does nothing here
                return _with_gradients(tx, enabled, now, make)
        finally:
            if block is not None:
                block.leave(tx, NONE)

    return items


def _with_gradients(tx: Context, enabled: bool, now: bool, make: Items) -> list[Value]:
    if enabled is now:
        return make()
    set_grad(tx, enabled)
    try:
        return make()
    finally:
        set_grad(tx, now)


def _cat(tx: Context, call: Call) -> Value | None:
    parts, dim = _parts(call)
    if parts is None or dim is None:
        return None
    whole, rank = parts.whole, parts.whole.meta.spec.rank
    if parts.sizes is not None:
        return _copied(tx, whole) if dim % rank == parts.dim else None
    if rank < 2 or parts.dim != 0 or dim % (rank - 1) != 0:
        return None
    return _copied(tx, one_tensor(whole.call_method(tx, "flatten", [Const(0), Const(1)], {})))


def _stack(tx: Context, call: Call) -> Value | None:
    parts, dim = _parts(call)
    if (
        parts is None
        or parts.sizes is not None
        or dim is None
        or dim % parts.whole.meta.spec.rank != parts.dim
    ):
        return None
    return _copied(tx, parts.whole)


def _copied(tx: Context, tensor: TensorValue) -> Value:
    """A new tensor, in the order of memory that ``cat`` and ``stack`` give."""
    return tensor.call_method(tx, "clone", [], {"memory_format": Const(torch.contiguous_format)})


def _parts(call: Call) -> tuple[PartsTuple | None, int | None]:
    """The unread parts that are put together, and the dimension."""
    given = _given(call, ("tensors", "dim"), {"axis": 1})
    parts = None if given is None else given[0]
    if isinstance(parts, PartsList):
        parts = parts.origin
    if given is None or not isinstance(parts, PartsTuple) or not given[0].is_unread:  # type: ignore[attr-defined]
        return None, None
    if parts.whole.meta.requires_grad and torch.is_grad_enabled() and not parts.with_gradients:
        return None, None  # the whole has a history, and its parts have none
    return parts, 0 if len(given) < 2 else given[1].known_as(int)


def _given(call: Call, names: tuple[str, ...], others: dict[str, int]) -> list[Value] | None:
    """The arguments in the order of ``names``, of which ``others`` are older; None where some are missing between."""
    found = dict(enumerate(call.args))
    for name, value in call.kwargs.items():
        place = names.index(name) if name in names else others.get(name)
        if place is None or place in found:
            return None
        found[place] = value
    return [found[place] for place in range(len(found))] if found and max(found) == len(found) - 1 else None


_REWRITES = {
    "split": _split,
    "unbind": _unbind,
    "cat": _cat,
    "concat": _cat,
    "concatenate": _cat,
    "stack": _stack,
}
