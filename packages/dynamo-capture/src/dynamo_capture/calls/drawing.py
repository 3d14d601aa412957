"""The ``random`` module: floats are drawn by the replacement code, in order, before the graph runs.

    x * random.uniform(0, 1)    ->    .drawn0 = random.uniform(0, 1); graph(x, .drawn0)

The trace draws from a twin in the generator's state, so that the generator itself moves on as often as in eager. A
number that decides something ends the graph: it has been drawn then, and the rest gets it as an argument. Integers,
choices and shuffles, and changes of a generator's state, run in Python.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynamo_capture.calls.registry import handles
from dynamo_capture.errors import GraphBreak
from dynamo_capture.values import ObjectValue, Value
from dynamo_capture.values.floating import DrawnFloat
from fx_interface.source import LocalSource, Source

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace

_FLOATS = (
    "random", "uniform", "gauss", "normalvariate", "expovariate", "betavariate", "triangular", "lognormvariate",
    "vonmisesvariate", "gammavariate", "paretovariate", "weibullvariate",
)  # fmt: skip
MODULE_GENERATOR: random.Random = random.random.__self__  # type: ignore[attr-defined]
"""The hidden generator behind the functions of ``random``."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One number: into which variable, by which method of the generator at ``source`` (None: the module's own)."""

    variable: str
    source: Source | None
    method: str
    arguments: tuple[Any, ...]

    @property
    def function(self) -> Any:
        """The method of the module's generator."""
        return getattr(MODULE_GENERATOR, self.method)


class Draws:
    """What one trace draws."""

    def __init__(self) -> None:
        self.log: list[Draw] = []
        self._twins: dict[int, random.Random] = {}

    def draw(
        self, tx: Trace, real: random.Random, source: Source | None, method: str, args: list[Value]
    ) -> Value:
        """The next number of the generator ``real``."""
        twin = self._twins.get(id(real))
        if twin is None:
            twin = self._twins[id(real)] = random.Random()
            twin.setstate(real.getstate())
        constants = tuple(tx.constant(value) for value in args)
        made = Draw(f".drawn{len(self.log)}", source, method, constants)
        number = tx.fold(lambda: getattr(twin, method)(*constants))
        if type(number) is not float:
            raise GraphBreak("CAP209", f"random.{method}() gives a {type(number).__name__}")
        self.log.append(made)
        return DrawnFloat(tx, number, LocalSource(made.variable))


def _method_of_generator(name: str) -> Any:
    def draw(tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
        receiver = args[0]
        if not isinstance(receiver, ObjectValue) or kwargs or type(receiver.real) is not random.Random:
            raise GraphBreak("CAP209", f"a random generator of the class {receiver.python_type().__name__}")
        tx.attributes.guard_type(receiver)
        source = None if receiver.real is MODULE_GENERATOR else receiver.source
        if source is None and receiver.real is not MODULE_GENERATOR:
            raise GraphBreak("CAP209", "a random generator that cannot be read again")
        return tx.draws.draw(tx, receiver.real, source, name, args[1:])

    return draw


for _name in _FLOATS:
    handles(getattr(random.Random, _name))(_method_of_generator(_name))


@handles(random.random)
def draw_from_module(tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return tx.draws.draw(tx, MODULE_GENERATOR, None, "random", args)


def _in_python(name: str) -> Any:
    def refuse(tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise GraphBreak("CAP209", f"random.{name}() is called")

    return refuse


for _name in (
    "randint", "randrange", "choice", "choices", "shuffle", "sample", "seed", "getrandbits", "randbytes", "getstate",
    "setstate", "binomialvariate",
):  # fmt: skip
    if hasattr(random.Random, _name):
        handles(getattr(random.Random, _name))(_in_python(_name))
