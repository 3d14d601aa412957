"""Sources that only capture needs: objects known by reference, computed numbers, floats as tensors, items past a
class's own ``__getitem__``."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from dataclasses import field
from types import FunctionType
from typing import Any

import torch

import fx_guards
from dynamo_capture.foundation.per_class import once_per_class
from dynamo_capture.hook.frame_hook import RegionFunction
from dynamo_capture.runtime.iterator_lookahead import look_ahead, owner_of
from dynamo_capture.runtime.subclass_parts import gradient_parts
from dynamo_capture.sources.cached_answers import NO_ANSWER, is_answered
from dynamo_capture.sources.formulas import SPACE, Formula, Text, leaves_of
from fx_guards import KnownObjectSource, known_object
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import DerivedSource, ItemSource, LocalSource, Scope, Source, entry

__all__ = [
    "AnswerSource",
    "ArrayTensorSource",
    "CallSource",
    "ComputedSource",
    "ContentSource",
    "DrawnFromSource",
    "FloatTensorSource",
    "GradientPartsSource",
    "HistorySource",
    "IntegerTensorSource",
    "IteratedSource",
    "KnownObjectSource",
    "PlainTensorSource",
    "ProxiedSource",
    "ProxyReferentSource",
    "ReferentSource",
    "TensorAttributeSource",
    "ThreadDictSource",
    "LookaheadSource",
    "computing",
    "item_source",
    "known_object",
]


@dataclass(frozen=True, slots=True)
class ContentSource(DerivedSource):
    """``parent[key]`` as the builtin base class of the parent reads it."""

    form = "{0.parent}[{0.key!r}]"
    key: Any

    def step(self, value: Any) -> Any:
        if isinstance(value, dict):
            return entry(value, self.key)
        plain: Any = next(base for base in (list, tuple) if isinstance(value, base))
        return plain.__getitem__(value, self.key)


@dataclass(frozen=True, slots=True)
class ThreadDictSource(DerivedSource):
    """The attributes that an object of ``threading.local`` has in the thread that asks."""

    form = "{0.parent}.__dict__"

    def step(self, value: Any) -> Any:
        return value.__dict__


@dataclass(frozen=True, slots=True)
class ReferentSource(DerivedSource):
    """What a weak reference refers to; None if that is gone."""

    form = "{0.parent}()"

    def step(self, value: Any) -> Any:
        return value()


@dataclass(frozen=True, slots=True)
class ProxyReferentSource(ReferentSource):
    """What an object of ``weakref.proxy`` stands for; None if that is gone, or does not say."""

    form = "referent_of({0.parent})"

    def step(self, value: Any) -> Any:
        try:
            found = value.__dir__.__self__
        except (ReferenceError, AttributeError):
            return None
        return found if any(one is value for one in weakref.getweakrefs(found)) else None


@dataclass(frozen=True, slots=True)
class CallSource(DerivedSource):
    """What a function gives for these arguments: constants, or ``KnownObjectSource`` of others.

    ``only_kept``: the function has a cache, and effects perhaps: it is asked where its cache has the answer, and does
    not run for a guard.
    """

    arguments: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...]
    only_kept: bool = False

    def step(self, value: Any) -> Any:
        if not self.only_kept:
            return self.ask(value)
        given = self.given()
        return RegionFunction(value, None)(*given) if is_answered(value, given) else NO_ANSWER

    def ask(self, function: Any) -> Any:
        """What the function gives, which may run."""
        return RegionFunction(function, None)(*self.given(), **self.named())

    def given(self) -> tuple[Any, ...]:
        """The arguments themselves."""
        return tuple(map(_held, self.arguments))

    def named(self) -> dict[str, Any]:
        """The named arguments themselves."""
        return {name: _held(item) for name, item in self.keywords}

    @property
    def expression(self) -> str:
        return f"{self.parent.expression}({', '.join(map(str, self.arguments))})"


def _held(argument: Any) -> Any:
    return argument.held.value if isinstance(argument, KnownObjectSource) else argument


@dataclass(frozen=True, slots=True)
class AnswerSource(DerivedSource):
    """What a method of a tensor without arguments gives."""

    form = "{0.parent}.{0.name}()"
    name: str

    def step(self, value: Any) -> Any:
        with torch._C.DisableTorchFunction():
            return RegionFunction(getattr(value, self.name), None)()  # a class may dispatch in Python


@dataclass(frozen=True, slots=True)
class LookaheadSource(DerivedSource):
    """What an iterator will give after ``index`` other items."""

    form = "look_ahead({0.parent})[{0.index}]"
    index: int

    def step(self, value: Any) -> Any:
        return look_ahead(value, self.index)


@dataclass(frozen=True, slots=True)
class IteratedSource(DerivedSource):
    """The list or dict that an iterator goes through."""

    form = "iterated_by({0.parent})"

    def step(self, value: Any) -> Any:
        return owner_of(value)


@dataclass(frozen=True, slots=True)
class DrawnFromSource(DerivedSource):
    """The arguments with which an ``enumerate``, ``zip``, ``map`` or ``filter`` would be made as it is now."""

    form = "arguments_of({0.parent})"

    def step(self, value: Any) -> Any:
        return value.__reduce__()[1]


@dataclass(frozen=True, slots=True)
class ProxiedSource(DerivedSource):
    """The mapping that a ``types.MappingProxyType`` shows."""

    form = "shown_by({0.parent})"

    def step(self, value: Any) -> Any:
        return gc.get_referents(value)[0]


@dataclass(frozen=True, slots=True)
class ArrayTensorSource(DerivedSource):
    """The tensor that shares a numpy array's memory."""

    form = "torch.from_numpy({0.parent})"

    def step(self, value: Any) -> Any:
        return torch.from_numpy(value)


NUMBERS = LocalSource(".numbers")
"""The variable of replacement code that holds the computed numbers."""


@dataclass(frozen=True, slots=True)
class ComputedSource(Source):
    """A number that follows from others by ``formula``: item ``index`` of what replacement code computes first."""

    index: int
    formula: Formula = field(compare=False)

    @property
    def base(self) -> Source | None:
        return NUMBERS

    def step(self, value: Any) -> Any:
        return value[self.index]

    def fetch(self, scope: Scope) -> Any:
        read, compute = computing([self.formula])
        return compute(*(source.fetch(scope) for source in read))[0]

    @property
    def expression(self) -> str:
        return str(self.formula)


def computing(
    formulas: Sequence[Formula | None],
) -> tuple[tuple[Source, ...], Callable[..., tuple[Any, ...]]]:
    """A function that computes formulas (None: not needed), and the sources of its arguments."""
    needed = [formula for formula in formulas if formula is not None]
    read = tuple(leaves_of(needed))
    text = Text({source: place for place, source in enumerate(read)})
    results = ["None" if formula is None else text.name(formula) for formula in formulas]
    parameters = ", ".join(f"x{place}" for place in range(len(read)))
    body = [*text.lines, f"return ({', '.join(results)},)"]
    space = dict(SPACE)
    exec("\n    ".join([f"def compute({parameters}):", *body]), space)  # made from the trace's own formulas
    made: Callable[..., tuple[Any, ...]] = space["compute"]
    return read, made


@dataclass(frozen=True, slots=True)
class FloatTensorSource(DerivedSource):
    """A Python float as a tensor without dimensions."""

    form = "torch.tensor({0.parent}, dtype=torch.float64)"

    def step(self, value: Any) -> Any:
        return torch.tensor(value, dtype=torch.float64)


@dataclass(frozen=True, slots=True)
class IntegerTensorSource(DerivedSource):
    """A Python integer as a tensor without dimensions."""

    form = "torch.tensor({0.parent})"

    def step(self, value: Any) -> Any:
        return torch.tensor(value, dtype=torch.int64)


@dataclass(frozen=True, slots=True)
class TensorAttributeSource(DerivedSource):
    """An attribute that torch gives each tensor, past what the tensor's class makes of reading it."""

    form = "{0.parent}.{0.name}"
    name: str

    def step(self, value: Any) -> Any:
        with torch._C.DisableTorchFunction():
            return getattr(torch.Tensor, self.name).__get__(value)


@dataclass(frozen=True, slots=True)
class ClassMemberSource(DerivedSource):
    """What a class has under a name, in itself or in a base; its metaclass, which may have the name, is not asked."""

    form = "{0.parent}.{0.name}"
    name: str

    def step(self, value: Any) -> Any:
        found = fx_guards.class_lookup(value, self.name)
        if found is fx_guards.ABSENT:
            raise AttributeError(self.name)
        return found


@dataclass(frozen=True, slots=True)
class PlainTensorSource(DerivedSource):
    """A tensor of a subclass as a plain tensor in the same memory, with its history even where gradients are off."""

    form = "{0.parent}.as_subclass(torch.Tensor)"

    def step(self, value: Any) -> Any:
        with torch.enable_grad(), torch._C.DisableTorchFunction():
            return torch.Tensor.as_subclass(value, torch.Tensor)


class _History(torch.autograd.Function):
    """A tensor of the same form without content: gradients of it are gradients of the argument."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(value.shape, [0] * value.dim(), dtype=value.dtype, device=value.device)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient


@dataclass(frozen=True, slots=True)
class HistorySource(DerivedSource):
    """What stands in a graph for the history of a tensor that dispatches in Python."""

    form = "history_of({0.parent})"

    def step(self, value: Any) -> Any:
        with torch._C.DisableTorchFunction():
            return _History.apply(value)  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class GradientPartsSource(DerivedSource):
    """What takes the gradient of a tensor in parts."""

    form = "gradient_parts({0.parent})"
    parts: Any

    def step(self, value: Any) -> Any:
        return gradient_parts(value, self.parts)


@once_per_class
def _has_own_items(cls: type) -> bool:
    found = next(
        (base.__dict__["__getitem__"] for base in cls.__mro__ if "__getitem__" in base.__dict__), None
    )
    return isinstance(found, FunctionType)


def item_source(parent: Source, key: Any, cls: type) -> Source:
    """Where an item of a container of class ``cls`` is read."""
    return ContentSource(parent, key) if _has_own_items(cls) else ItemSource(parent, key)
