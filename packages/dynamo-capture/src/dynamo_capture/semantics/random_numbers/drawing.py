"""Random numbers of Python's and numpy's generators, and of ``torch.Generator``: drawn before the graph runs, in order.

    x * random.uniform(0, 1)    ->    .drawn0 = random.uniform(0, 1); graph(x, .drawn0)

The trace draws from a twin in the generator's state, so that the generator itself moves on as often as in eager. A
float is a number that the graph takes; so is an integer, of which only its bounds are known, as of numbers from data;
arrays and tensors are inputs. A number that decides something ends the graph: it has been drawn then, and the rest gets
it as an argument. What sets a generator's state as a whole runs in Python.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import torch

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.break_kinds import RANDOM_STATE, REGION_EFFECT
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.graph.region_body import Body
from dynamo_capture.semantics.tensors.content.data_numbers import take_out
from dynamo_capture.sources.sources import ArrayTensorSource, IntegerTensorSource
from dynamo_capture.values import (
    NONE,
    Const,
    ListValue,
    SymValue,
    TensorMeta,
    TensorValue,
    TupleValue,
    Value,
    size_value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.numbers.random_generator import DiceValue
from dynamo_capture.values.tensors.array import ArrayValue
from dynamo_capture.values.tensors.floating import DrawnFloat
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.signature import InputKind
from fx_interface.source import ItemSource, LocalSource, Source
from fx_interface.symbols import Expr, Relation, Symbol
from fx_interface.tensor_spec import TensorSpec, contiguous_strides, spec_of

_OF_NUMPY = frozenset(
    {
        "rand", "randn", "random", "random_sample", "uniform", "normal", "standard_normal", "randint", "integers",
        "permutation", "exponential", "standard_exponential", "beta", "gamma", "poisson", "binomial", "laplace",
    }
)  # fmt: skip
"""Methods of numpy's generators that only draw: they take numbers and shapes, and make new arrays."""

_OF_TORCH = frozenset({torch.rand, torch.randn, torch.randint, torch.randperm, torch.normal})
"""Functions that take a generator and numbers only."""

_FILLING = frozenset(
    {
        "normal_", "uniform_", "random_", "exponential_", "geometric_", "log_normal_", "cauchy_", "bernoulli_",
    }
)  # fmt: skip
"""Methods that fill a tensor with what they draw by numbers."""


@dataclass(frozen=True, slots=True)
class Draw:
    """What is drawn: into which variable, by a method (a name) of the generator at ``source`` (None: the module's own),
    or by a function of torch that is given the generator."""

    variable: str
    source: Source | None
    method: str | Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...] = ()

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """Those of the sizes among the arguments."""
        pending: list[Any] = [*self.arguments, *(value for _, value in self.keywords)]
        found: dict[Symbol, None] = {}
        while pending:
            item = pending.pop()
            if isinstance(item, tuple):
                pending.extend(item)
            elif isinstance(item, Expr):
                found.update(dict.fromkeys(item.symbols))
        return tuple(sorted(found, key=str))


class Draws:
    """What one trace draws."""

    def __init__(self) -> None:
        self.log: list[Draw] = []
        self._twins: dict[int, Any] = {}

    def draw(
        self, tx: Context, real: random.Random, source: Source | None, method: str, args: list[Value]
    ) -> Value:
        """The next number of Python's generator ``real``."""
        constants = tuple(tx.constant(value) for value in args)
        return self.of_call(tx, real, Draw(self.variable(), source, method, constants), _bounds(method, args))

    def of_call(
        self, tx: Context, real: random.Random, draw: Draw, bounds: tuple[int | None, int | None]
    ) -> Value:
        """What ``draw`` gives, numbers between ``bounds`` if they are integers; the twin of ``real`` draws now."""
        twin, named = self._twin(real), dict(draw.keywords)
        if isinstance(draw.method, str):
            method = draw.method
            drawn = tx.fold(lambda: getattr(twin, method)(*draw.arguments, **named))
        else:
            function = draw.method
            drawn = tx.fold(lambda: function(*draw.arguments, generator=twin, **named))
        if drawn is None:
            self.log.append(draw)
            return NONE
        if type(drawn) is not list:
            return self._value(tx, drawn, draw, bounds)
        whole = LocalSource(draw.variable)
        self.log.append(draw)
        return ListValue(
            [self._number(tx, item, ItemSource(whole, at), bounds) for at, item in enumerate(drawn)]
        )

    def _number(
        self, tx: Context, drawn: Any, source: Source, bounds: tuple[int | None, int | None]
    ) -> Value:
        """A number that was drawn, which is read at ``source``."""
        if type(drawn) is float:
            return DrawnFloat(tx, drawn, source)
        if type(drawn) is int and -(2**63) <= drawn < 2**63 and tx.inference.follows_data:
            number = take_out(tx, _input(tx, torch.tensor(drawn), IntegerTensorSource(source)))
            if number is not None:
                _learn(tx, number, bounds)
                return number
        raise GraphBreak(
            RANDOM_STATE, f"a random number is drawn: this {type(drawn).__name__} is not followed"
        )

    def methods_of(self, cls: type) -> frozenset[str]:
        """The methods of a generator's class that only draw."""
        names = _OF_NUMPY if numpy_types.is_generator_class(cls) else frozenset()
        return frozenset(name for name in names if hasattr(cls, name))

    def by_method(
        self, tx: Context, dice: DiceValue, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """What a method of numpy's generators gives."""
        if name not in self.methods_of(dice.python_type()):
            raise GraphBreak(RANDOM_STATE, f"{name}() of {dice.describe()} is called")
        given, named = _constants(tx, args), {key: _constants(tx, [v])[0] for key, v in kwargs.items()}
        twin = self._twin(dice.real)
        drawn = tx.fold(lambda: getattr(twin, name)(*given, **named))
        draw = Draw(self.variable(), dice.source, name, given, tuple(named.items()))
        return self._value(tx, drawn, draw, (None, None))

    def by_function(
        self, tx: Context, function: Any, dice: DiceValue, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """What a function of torch draws from a generator of the program."""
        if function not in _OF_TORCH or dice.real is torch.default_generator or "out" in kwargs:
            name = getattr(function, "__name__", function)
            raise GraphBreak(RANDOM_STATE, f"{name}() draws from {dice.describe()}")

        def described() -> TensorSpec:
            fakes = (
                [v.fake(tx, {}) for v in args],
                {k: v.fake(tx, {}) for k, v in kwargs.items()},
            )
            found: TensorSpec = tx.inference.run(function, *fakes).spec
            return found

        return self._of_torch(tx, function, dice, args, kwargs, described)

    def _of_torch(
        self,
        tx: Context,
        function: Callable[..., Any],
        dice: DiceValue,
        args: list[Value],
        kwargs: dict[str, Value],
        describe: Callable[[], TensorSpec],
    ) -> TensorValue:
        if tx.blocks or isinstance(tx.output, Body):
            raise GraphBreak(
                RANDOM_STATE, f"{dice.describe()} is drawn from inside of a region, or in another mode"
            )
        given = tuple(_sized(tx, value) for value in args)
        named = {key: _sized(tx, value) for key, value in kwargs.items()}
        if named.get("requires_grad"):
            raise GraphBreak(RANDOM_STATE, f"a tensor drawn from {dice.describe()} is to require grad")
        twin = self._twin(dice.real)
        hinted: Any = _hinted(tx, given)
        options: Any = {key: _hinted(tx, value) for key, value in named.items()}
        with torch.no_grad():
            drawn = tx.fold(lambda: function(*hinted, generator=twin, **options))
        draw = Draw(self.variable(), dice.source, function, given, tuple(named.items()))
        spec = describe()
        self.log.append(draw)
        return _input(tx, drawn, LocalSource(draw.variable), spec)

    def by_filling(
        self,
        tx: Context,
        owner: TensorValue,
        name: str,
        dice: DiceValue,
        args: list[Value],
        kwargs: dict[str, Value],
    ) -> Value:
        """A method of a tensor that fills it from a generator of the program: it is drawn, and copied there."""
        spec = owner.meta.spec
        if name not in _FILLING or dice.real is torch.default_generator:
            raise GraphBreak(RANDOM_STATE, f"{name}() draws from {dice.describe()}")
        if owner.meta.requires_grad or spec.strides != contiguous_strides(spec.sizes):
            raise GraphBreak(
                RANDOM_STATE, f"{name}() fills a tensor that autograd follows, or that is not row-major"
            )
        shape = TupleValue([size_value(size) for size in spec.sizes])
        fresh = [Const(name), shape, Const(spec.dtype), Const(spec.device), *args]
        drawn = self._of_torch(tx, _filled, dice, fresh, kwargs, lambda: spec)
        return owner.call_method(tx, "copy_", [drawn], {})

    def variable(self) -> str:
        """The name of the next variable."""
        return f".drawn{len(self.log)}"

    def _twin(self, real: Any) -> Any:
        twin = self._twins.get(id(real))
        if twin is None:
            twin = self._twins[id(real)] = _copy(real)
        return twin

    def _value(self, tx: Context, drawn: Any, draw: Draw, bounds: tuple[int | None, int | None]) -> Value:
        source, what = LocalSource(draw.variable), draw.method
        if type(drawn) in (float, int):
            number = self._number(tx, drawn, source, bounds)
            self.log.append(draw)
            return number
        if type(drawn) in numpy_types.ARRAYS:
            try:
                tensor = torch.from_numpy(drawn)
            except (TypeError, ValueError) as error:
                raise GraphBreak(
                    RANDOM_STATE, f"{what}() draws an array that is no tensor: {error}"
                ) from None
            self.log.append(draw)
            return ArrayValue(tensor=_input(tx, tensor, ArrayTensorSource(source)))
        raise GraphBreak(RANDOM_STATE, f"random.{what}() is called, which gives this: {type(drawn).__name__}")


def _filled(
    name: str,
    size: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
    *args: Any,
    generator: torch.Generator,
    **named: Any,
) -> torch.Tensor:
    """A new tensor that a method has filled."""
    made = torch.empty(size, dtype=dtype, device=device)
    with torch.no_grad():
        getattr(made, name)(*args, generator=generator, **named)
    return made


def _copy(real: Any) -> Any:
    if isinstance(real, random.Random):
        twin = random.Random()
        twin.setstate(real.getstate())
        return twin
    return real.clone_state() if isinstance(real, torch.Generator) else copy.deepcopy(real)


def _constants(tx: Context, values: list[Value]) -> tuple[Any, ...]:
    """The arguments of a draw, which is made before anything else: numbers, shapes and the like."""
    found = tuple(
        tx.calls.python_object(value) if tx.is_constant(value) else _unknown(value) for value in values
    )
    if any(isinstance(item, (list, dict, torch.Tensor, *numpy_types.ARRAYS)) for item in found):
        raise GraphBreak(RANDOM_STATE, "random numbers are drawn by more than numbers and shapes")
    return found


def _unknown(value: Value) -> Any:
    kind = value.python_type().__name__
    raise GraphBreak(
        RANDOM_STATE, f"random numbers are drawn by a value ({kind}) that is not known while tracing"
    )


def _sized(tx: Context, value: Value) -> Any:
    """An argument of a draw that may be a size, or several: a symbolic one is its expression."""
    value = tx.force(value)
    if value.expr is not None:
        expr = tx.env.simplify(value.expr)
        return _unknown(value) if tx.env.is_from_data(expr) else expr
    if isinstance(value, (TupleValue, ListValue)):
        return tuple(_sized(tx, item) for item in value.items)
    return _constants(tx, [value])[0]


def _hinted(tx: Context, value: Any) -> Any:
    """The argument with the sizes of this call."""
    if isinstance(value, tuple):
        return tuple(_hinted(tx, item) for item in value)
    return tx.env.hint(value) if isinstance(value, Expr) else value


def _bounds(method: str, args: list[Value]) -> tuple[int | None, int | None]:
    """The least and the greatest integer that a draw with constant arguments can give."""
    numbers = [known for value in args if (known := value.known_as(int)) is not None]
    match method, numbers:
        case "randint", [low, high]:
            return low, high
        case "randrange", [stop]:
            return 0, stop - 1
        case "randrange", [low, stop]:
            return low, stop - 1
    return None, None


def _learn(tx: Context, number: SymValue, bounds: tuple[int | None, int | None]) -> None:
    """What holds of the number whatever is drawn."""
    low, high = bounds
    if low is not None:
        tx.env.learn(Relation("<=", low, number.expr))
    if high is not None:
        tx.env.learn(Relation("<=", number.expr, high))


def _input(tx: Context, drawn: torch.Tensor, source: Source, spec: TensorSpec | None = None) -> TensorValue:
    """What was drawn as an input of the graph."""
    spec = spec or spec_of(drawn)
    node = tx.output.placeholder("drawn", InputKind.USER, spec, source, drawn)
    return TensorValue(node, TensorMeta.of(spec, False, True), source)


def outside_only(tx: Context, run: Callable[[], Value], what: str) -> Value:
    """What ``run`` gives, where it draws nothing before the graph: it perhaps does not run, or more than once."""
    drawn = len(tx.draws.log)
    try:
        result = run()
    except UserRaise:
        if len(tx.draws.log) > drawn:
            raise GraphBreak(
                REGION_EFFECT, f"{what} draws random numbers of Python or of a generator"
            ) from None
        raise
    if len(tx.draws.log) > drawn:
        raise GraphBreak(REGION_EFFECT, f"{what} draws random numbers of Python or of a generator")
    return result
