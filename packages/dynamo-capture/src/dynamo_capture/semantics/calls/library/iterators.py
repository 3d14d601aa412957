"""Calls of ``itertools``: what is looked at when an iterator is made, in CPython's order, and the values that it is."""

from __future__ import annotations

import itertools
import operator
import sys
from typing import Any

from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON
from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.registry import handles
from dynamo_capture.values import (
    NONE,
    Const,
    IteratorValue,
    ObjectIterator,
    SequenceIterator,
    TupleValue,
    Value,
    is_none,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.iteration.arrangements import (
    ArrangedIterator,
    GroupIterator,
    LongestIterator,
    SharedItems,
    TeeIterator,
)
from dynamo_capture.values.iteration.library import (
    AccumulateIterator,
    ChainIterator,
    CompressIterator,
    CountIterator,
    CycleIterator,
    DropIterator,
    PairIterator,
    RejectIterator,
    RepeatIterator,
    SliceIterator,
    StarMapIterator,
    TakeIterator,
)

Args = list[Value]
Kwargs = dict[str, Value]

_OUTSIDE = "argument for islice() must be None or an integer: 0 <= x <= sys.maxsize."
_INDICES = "Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize."


def _number(tx: Context, value: Value) -> int:
    """What C takes for a count."""
    if isinstance(value, Const) and not value.varies:
        known = value.value
        return tx.fold(lambda: operator.index(known))
    if value.varies:
        return tx.integer(value)
    raise GraphBreak(NOT_IN_PYTHON, f"{value.describe()} is taken for a number of items")


@handles(itertools.chain)
def chain(tx: Context, args: Args, kwargs: Kwargs) -> Value:
    return ChainIterator(SequenceIterator(list(args)))


@handles(itertools.chain.from_iterable)
def chain_from_iterable(tx: Context, args: Args, kwargs: Kwargs) -> Value:
    return ChainIterator(args[0].iterate(tx))


@handles(itertools.islice)
def islice(tx: Context, args: Args, kwargs: Kwargs) -> Value:
    if len(args) == 2:
        start, stop, stride = 0, _stop(tx, args[1]), 1
    else:
        start = _bound(tx, args[1], 0)
        stop, stride = _stop(tx, args[2]), 1
        if start < 0 or (stop is not None and stop < 0):
            raise tx.raises(ValueError, _INDICES)
    if len(args) == 4:
        stride = _bound(tx, args[3], 1)
        if stride < 1:
            raise tx.raises(ValueError, "Step for islice() must be a positive integer or None.")
    if stop is not None and stop < 0:
        raise tx.raises(ValueError, _INDICES)
    return SliceIterator(args[0].iterate(tx), start, stop, stride)


def _stop(tx: Context, value: Value) -> int | None:
    if is_none(value):
        return None
    stop = _bound(tx, value, 0)
    if stop == -1:
        raise tx.raises(ValueError, f"Stop {_OUTSIDE}")
    return stop


def _bound(tx: Context, value: Value, default: int) -> int:
    """A bound; -1 for one that is no index, or too large."""
    if is_none(value):
        return default
    if not has_member(value.python_type(), "__index__"):
        return -1
    number = _number(tx, value)
    return number if -sys.maxsize <= number <= sys.maxsize else -1


@handles(itertools.count)
def count(tx: Context, args: Args, kwargs: Kwargs) -> Value:
    start = args[0] if args else kwargs.get("start", Const(0))
    stride = args[1] if len(args) > 1 else kwargs.get("step", Const(1))
    for value in (start, stride):
        cls = value.python_type()
        if not issubclass(cls, complex) and not any(
            has_member(cls, name) for name in ("__index__", "__int__", "__float__")
        ):
            raise tx.raises(TypeError, "a number is required")
    if _integer(stride) == 1 and issubclass(start.python_type(), int) and not start.varies:
        begun = _integer(start)
        if begun is None:
            raise GraphBreak(NOT_IN_PYTHON, f"count() begins at {start.describe()}")
        # C counts, in steps of one, past what classes of the program define.
        if -sys.maxsize - 1 <= begun <= sys.maxsize:
            start, stride = Const(begun), Const(1)
    return CountIterator(start, stride)


def _integer(value: Value) -> int | None:
    """The plain integer that an instance of ``int`` is, where it is known."""
    known = value.value if isinstance(value, Const) and not value.varies else None
    return int.__int__(known) if isinstance(known, int) else None


@handles(itertools.repeat)
def repeat(tx: Context, args: Args, kwargs: Kwargs) -> Value:
    times = args[1] if len(args) > 1 else kwargs.get("times")
    left = None if times is None else max(_number(tx, times), 0)
    return RepeatIterator(args[0], left)


@handles(itertools.cycle)
def cycle(tx: Context, args: Args, kwargs: Kwargs) -> Value:
    return CycleIterator(args[0].iterate(tx))


@handles(itertools.accumulate)
def accumulate(tx: Context, args: Args, kwargs: Kwargs) -> Value:
    function = args[1] if len(args) > 1 else kwargs.get("func", NONE)
    return AccumulateIterator(args[0].iterate(tx), function, kwargs.get("initial", NONE))


@handles(itertools.takewhile)
def takewhile(tx: Context, args: Args, kwargs: Kwargs) -> Value:
    return TakeIterator(args[0], args[1].iterate(tx))


@handles(itertools.dropwhile)
def dropwhile(tx: Context, args: Args, kwargs: Kwargs) -> Value:
    return DropIterator(args[0], args[1].iterate(tx))


@handles(itertools.filterfalse)
def filterfalse(tx: Context, args: Args, kwargs: Kwargs) -> Value:
    return RejectIterator(args[0], args[1].iterate(tx))


@handles(itertools.starmap)
def starmap(tx: Context, args: Args, kwargs: Kwargs) -> Value:
    return StarMapIterator(args[0], args[1].iterate(tx))


@handles(itertools.compress)
def compress(tx: Context, args: Args, kwargs: Kwargs) -> Value:
    items = args[0].iterate(tx)
    return CompressIterator(items, args[1].iterate(tx))


@handles(itertools.pairwise)
def pairwise(tx: Context, args: Args, kwargs: Kwargs) -> Value:
    return PairIterator(args[0].iterate(tx))


@handles(itertools.product)
def product(tx: Context, args: Args, kwargs: Kwargs) -> Value:
    times = _number(tx, kwargs.get("repeat", Const(1)))
    tx.fold(lambda: itertools.product(repeat=times))
    return ArrangedIterator(itertools.product, _pools(tx, args), (times,))


def _combined(kind: Any) -> None:
    @handles(kind)
    def combine(tx: Context, args: Args, kwargs: Kwargs) -> Value:
        number = _number(tx, args[1])
        (pool,) = _pools(tx, args[:1])
        tx.fold(lambda: kind((), number))
        return ArrangedIterator(kind, [pool], (number,))


_combined(itertools.combinations)
_combined(itertools.combinations_with_replacement)


@handles(itertools.permutations)
def permutations(tx: Context, args: Args, kwargs: Kwargs) -> Value:
    (pool,) = _pools(tx, args[:1])
    if len(args) < 2 or is_none(args[1]):
        return ArrangedIterator(itertools.permutations, [pool], ())
    if not issubclass(args[1].python_type(), int):
        raise tx.raises(TypeError, "Expected int as r")
    number = _number(tx, args[1])
    tx.fold(lambda: itertools.permutations((), number))
    return ArrangedIterator(itertools.permutations, [pool], (number,))


def _pools(tx: Context, args: Args) -> list[list[Value]]:
    return [list(arg.items_for_list(tx)) for arg in args]


@handles(itertools.zip_longest)
def zip_longest(tx: Context, args: Args, kwargs: Kwargs) -> Value:
    return LongestIterator([arg.iterate(tx) for arg in args], kwargs.get("fillvalue", NONE))


@handles(itertools.groupby)
def groupby(tx: Context, args: Args, kwargs: Kwargs) -> Value:
    function = args[1] if len(args) > 1 else kwargs.get("key", NONE)
    return GroupIterator(args[0].iterate(tx), None if is_none(function) else function)


@handles(itertools.tee)
def tee(tx: Context, args: Args, kwargs: Kwargs) -> Value:
    number = _number(tx, args[1]) if len(args) > 1 else 2
    if number < 0:
        raise tx.raises(ValueError, "n must be >= 0")
    if not number:
        return TupleValue([])
    inner = args[0].iterate(tx)
    if isinstance(inner, TeeIterator) and sys.version_info < (3, 13):
        copies = [TeeIterator(inner.shared, inner.position) for _ in range(number - 1)]
        return TupleValue([inner, *copies])
    if _is_copied(inner):
        raise GraphBreak(NOT_IN_PYTHON, f"tee copies {inner.describe()}")
    if isinstance(inner, ObjectIterator):  # which C asks a second time
        inner = inner.value.iterate(tx)
    shared = SharedItems(inner)
    return TupleValue([TeeIterator(shared) for _ in range(number)])


def _is_copied(inner: IteratorValue) -> bool:
    """Whether ``tee`` asks the iterator itself for copies."""
    return has_member(inner.python_type(), "__copy__")
