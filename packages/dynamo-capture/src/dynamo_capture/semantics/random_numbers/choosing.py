"""Choices, samples and shuffles of Python's generators, and seeds: drawn before the graph runs, like other numbers.

What is chosen from are known numbers, all floats or all integers: then what comes out is a number that the graph takes.
A choice among other objects decides what the program does, and runs in Python.

    order = list(range(4)); random.shuffle(order)    ->    four integers, of which only their bounds are known
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from dynamo_capture.foundation.break_kinds import RANDOM_STATE
from dynamo_capture.foundation.errors import GraphBreak, NotConstant
from dynamo_capture.semantics.random_numbers.drawing import Draw
from dynamo_capture.semantics.random_numbers.python_generator import MODULE_GENERATOR, receiver_of
from dynamo_capture.semantics.registry import handles
from dynamo_capture.values import NONE, Const, ListValue, Value
from dynamo_capture.values.base import Context
from fx_interface.source import Source

_MOST_NUMBERS = 64
"""Longer lists are drawn in Python: each number is an input of the graph."""


def shuffled(items: tuple[Any, ...], generator: random.Random) -> list[Any]:
    """The items in another order."""
    order = list(items)
    generator.shuffle(order)
    return order


def _numbers(tx: Context, value: Value) -> tuple[Any, ...]:
    """The known numbers that are chosen from: floats, or integers."""
    try:
        population = tx.calls.python_object(value)
    except NotConstant:
        raise GraphBreak(RANDOM_STATE, "random numbers choose among values that are not known") from None
    if not isinstance(population, (list, tuple, range)) or not 0 < len(population) <= 10_000:
        raise GraphBreak(RANDOM_STATE, f"random numbers choose from {value.describe()}")
    found = tuple(population)
    if {type(item) for item in found} not in ({int}, {float}):
        raise GraphBreak(RANDOM_STATE, "random numbers choose among objects that are not numbers of one kind")
    return found


def _draw(
    tx: Context,
    receiver: Value,
    method: str | Callable[..., Any],
    population: tuple[Any, ...],
    rest: tuple[Any, ...] = (),
    named: dict[str, Any] | None = None,
) -> Value:
    real, source = receiver_of(tx, receiver)
    bounds = (min(population), max(population)) if type(population[0]) is int else (None, None)
    named = named or {}
    draw = Draw(tx.draws.variable(), source, method, (population, *rest), tuple(named.items()))
    return tx.draws.of_call(tx, real, draw, bounds)


def _few(count: int) -> None:
    if count > _MOST_NUMBERS:
        raise GraphBreak(RANDOM_STATE, f"{count} random numbers are drawn at once")


@handles(random.Random.choice)
def choice(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return _draw(tx, args[0], "choice", _numbers(tx, args[1] if len(args) > 1 else kwargs["seq"]))


@handles(random.Random.shuffle)
def shuffle(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    order = tx.force(args[1] if len(args) > 1 else kwargs["x"])
    if type(order) is not ListValue or order.cls is not list:
        raise GraphBreak(RANDOM_STATE, f"{order.describe()} is shuffled")
    if len(order.items) < 2:
        return NONE  # nothing is drawn
    _few(len(order.items))
    drawn = _draw(tx, args[0], shuffled, _numbers(tx, order))
    assert isinstance(drawn, ListValue)
    order.call_method(tx, "clear", [], {})
    order.call_method(tx, "extend", [drawn], {})
    return NONE


@handles(random.Random.sample)
def sample(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if len(args) != 3 or kwargs:
        raise GraphBreak(RANDOM_STATE, "random.sample() of counted items is called")
    count = tx.constant(args[2])
    population = _numbers(tx, args[1])
    if type(count) is not int or not 0 < count <= len(population):
        raise GraphBreak(RANDOM_STATE, f"random.sample() of {count!r} items is called")
    _few(count)
    return _draw(tx, args[0], "sample", population, (count,))


@handles(random.Random.choices)
def choices(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    named = {name: tx.calls.python_object(value) for name, value in kwargs.items()}
    names = ("weights", "cum_weights", "k")
    for name, value in zip(names, args[2:], strict=False):
        named[name] = tx.calls.python_object(value)
    named = {name: tuple(value) if isinstance(value, list) else value for name, value in named.items()}
    count = named.get("k", 1)
    if type(count) is not int or count < 1:
        raise GraphBreak(RANDOM_STATE, f"random.choices() of {count!r} items is called")
    _few(count)
    return _draw(tx, args[0], "choices", _numbers(tx, args[1]), (), named)


def _bits(tx: Context, value: Value, real: random.Random, source: Source | None) -> Value:
    count = tx.constant(value)
    if type(count) is not int or not 0 <= count < 63:
        raise GraphBreak(RANDOM_STATE, f"random.getrandbits({count!r}) is called")
    draw = Draw(tx.draws.variable(), source, "getrandbits", (count,))
    return tx.draws.of_call(tx, real, draw, (0, 2**count - 1))


@handles(random.Random.getrandbits)
def getrandbits(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return _bits(tx, args[1], *receiver_of(tx, args[0]))


@handles(random.getrandbits)
def getrandbits_of_module(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return _bits(tx, args[0], MODULE_GENERATOR, None)


@handles(random.Random.seed)
def seed(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A generator goes on from a seed: that is done in its place among the draws."""
    value = args[1] if len(args) > 1 else Const(None)
    if len(args) > 2 or kwargs or not tx.is_constant(value):
        raise GraphBreak(RANDOM_STATE, "random.seed() is called with what is not known")
    known = tx.constant(value)
    if type(known) not in (int, str, float, bytes):
        raise GraphBreak(RANDOM_STATE, f"random.seed({known!r}) is called")
    real, source = receiver_of(tx, args[0])
    tx.draws.of_call(tx, real, Draw(tx.draws.variable(), source, "seed", (known,)), (None, None))
    return NONE
