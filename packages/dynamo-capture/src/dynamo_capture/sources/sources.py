"""Sources that only capture needs: objects known by reference, computed numbers, floats as tensors, items past a
class's own ``__getitem__``."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import torch

from dynamo_capture.foundation.per_class import once_per_class
from dynamo_capture.hook.frame_hook import RegionFunction
from dynamo_capture.runtime.iterator_lookahead import owner_of, upcoming
from dynamo_capture.runtime.subclass_parts import gradient_parts
from dynamo_capture.sources.formulas import SPACE, Formula, Text, leaves_of
from fx_guards import KnownObjectSource, known_object
from fx_interface.source import ItemSource, LocalSource, Scope, Source

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
    "ReferentSource",
    "TensorAttributeSource",
    "UpcomingSource",
    "computing",
    "item_source",
    "known_object",
]


@dataclass(frozen=True, slots=True)
class ContentSource(Source):
    """``parent[key]`` as the builtin base class of the parent reads it."""

    parent: Source
    key: Any

    @property
    def base(self) -> Source | None:
        return self.parent

    def step(self, value: Any) -> Any:
        plain: Any = next(base for base in (dict, list, tuple) if isinstance(value, base))
        return plain.__getitem__(value, self.key)

    @property
    def expression(self) -> str:
        return f"{self.parent.expression}[{self.key!r}]"


@dataclass(frozen=True, slots=True)
class ReferentSource(Source):
    """What a weak reference refers to; None if that is gone."""

    parent: Source

    @property
    def base(self) -> Source | None:
        return self.parent

    def step(self, value: Any) -> Any:
        return value()

    @property
    def expression(self) -> str:
        return f"{self.parent.expression}()"


@dataclass(frozen=True, slots=True)
class CallSource(Source):
    """What a function with a cache gives for these arguments: constants, or ``KnownObjectSource`` of others."""

    parent: Source
    arguments: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...]

    @property
    def base(self) -> Source | None:
        return self.parent

    def step(self, value: Any) -> Any:
        return RegionFunction(value, None)(*self.given(), **self.named())

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
class AnswerSource(Source):
    """What a method of a tensor without arguments gives."""

    parent: Source
    name: str

    @property
    def base(self) -> Source | None:
        return self.parent

    def step(self, value: Any) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            return getattr(value, self.name)()

    @property
    def expression(self) -> str:
        return f"{self.parent.expression}.{self.name}()"


@dataclass(frozen=True, slots=True)
class UpcomingSource(Source):
    """What an iterator will give after ``index`` other items."""

    parent: Source
    index: int

    @property
    def base(self) -> Source | None:
        return self.parent

    def step(self, value: Any) -> Any:
        return upcoming(value, self.index)

    @property
    def expression(self) -> str:
        return f"upcoming({self.parent.expression})[{self.index}]"


@dataclass(frozen=True, slots=True)
class IteratedSource(Source):
    """The list or dict that an iterator goes through."""

    parent: Source

    @property
    def base(self) -> Source | None:
        return self.parent

    def step(self, value: Any) -> Any:
        return owner_of(value)

    @property
    def expression(self) -> str:
        return f"iterated_by({self.parent.expression})"


@dataclass(frozen=True, slots=True)
class DrawnFromSource(Source):
    """The arguments with which an ``enumerate``, ``zip``, ``map`` or ``filter`` would be made as it is now."""

    parent: Source

    @property
    def base(self) -> Source | None:
        return self.parent

    def step(self, value: Any) -> Any:
        return value.__reduce__()[1]

    @property
    def expression(self) -> str:
        return f"arguments_of({self.parent.expression})"


@dataclass(frozen=True, slots=True)
class ProxiedSource(Source):
    """The mapping that a ``types.MappingProxyType`` shows."""

    parent: Source

    @property
    def base(self) -> Source | None:
        return self.parent

    def step(self, value: Any) -> Any:
        return gc.get_referents(value)[0]

    @property
    def expression(self) -> str:
        return f"shown_by({self.parent.expression})"


@dataclass(frozen=True, slots=True)
class ArrayTensorSource(Source):
    """The tensor that shares a numpy array's memory."""

    parent: Source

    @property
    def base(self) -> Source | None:
        return self.parent

    def step(self, value: Any) -> Any:
        return torch.from_numpy(value)

    @property
    def expression(self) -> str:
        return f"torch.from_numpy({self.parent.expression})"


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
class FloatTensorSource(Source):
    """A Python float as a tensor without dimensions."""

    parent: Source

    @property
    def base(self) -> Source | None:
        return self.parent

    def step(self, value: Any) -> Any:
        return torch.tensor(value, dtype=torch.float64)

    @property
    def expression(self) -> str:
        return f"torch.tensor({self.parent.expression}, dtype=torch.float64)"


@dataclass(frozen=True, slots=True)
class IntegerTensorSource(Source):
    """A Python integer as a tensor without dimensions."""

    parent: Source

    @property
    def base(self) -> Source | None:
        return self.parent

    def step(self, value: Any) -> Any:
        return torch.tensor(value, dtype=torch.int64)

    @property
    def expression(self) -> str:
        return f"torch.tensor({self.parent.expression})"


@dataclass(frozen=True, slots=True)
class TensorAttributeSource(Source):
    """An attribute that torch gives each tensor, past what the tensor's class makes of reading it."""

    parent: Source
    name: str

    @property
    def base(self) -> Source | None:
        return self.parent

    def step(self, value: Any) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            return getattr(torch.Tensor, self.name).__get__(value)

    @property
    def expression(self) -> str:
        return f"{self.parent.expression}.{self.name}"


@dataclass(frozen=True, slots=True)
class PlainTensorSource(Source):
    """A tensor of a subclass as a plain tensor in the same memory."""

    parent: Source

    @property
    def base(self) -> Source | None:
        return self.parent

    def step(self, value: Any) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            return torch.Tensor.as_subclass(value, torch.Tensor)

    @property
    def expression(self) -> str:
        return f"{self.parent.expression}.as_subclass(torch.Tensor)"


@dataclass(frozen=True, slots=True)
class FollowedTensorSource(Source):
    """A tensor that the program has told autograd to follow, or not to, before the graph uses it."""

    parent: Source
    followed: bool

    @property
    def base(self) -> Source | None:
        return self.parent

    def step(self, value: Any) -> Any:
        with torch._C.DisableTorchFunctionSubclass():  # the program's class has been asked
            return value.requires_grad_(self.followed)

    @property
    def expression(self) -> str:
        return f"{self.parent.expression}.requires_grad_({self.followed})"


class _History(torch.autograd.Function):
    """A tensor of the same form without content: gradients of it are gradients of the argument."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(value.shape, [0] * value.dim(), dtype=value.dtype, device=value.device)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient


@dataclass(frozen=True, slots=True)
class HistorySource(Source):
    """What stands in a graph for the history of a tensor that dispatches in Python."""

    parent: Source

    @property
    def base(self) -> Source | None:
        return self.parent

    def step(self, value: Any) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            return _History.apply(value)  # type: ignore[no-untyped-call]

    @property
    def expression(self) -> str:
        return f"history_of({self.parent.expression})"


@dataclass(frozen=True, slots=True)
class GradientPartsSource(Source):
    """What takes the gradient of a tensor in parts."""

    parent: Source
    parts: Any

    @property
    def base(self) -> Source | None:
        return self.parent

    def step(self, value: Any) -> Any:
        return gradient_parts(value, self.parts)

    @property
    def expression(self) -> str:
        return f"gradient_parts({self.parent.expression})"


@once_per_class
def _has_own_items(cls: type) -> bool:
    found = next(
        (base.__dict__["__getitem__"] for base in cls.__mro__ if "__getitem__" in base.__dict__), None
    )
    return isinstance(found, FunctionType)


def item_source(parent: Source, key: Any, cls: type) -> Source:
    """Where an item of a container of class ``cls`` is read."""
    return ContentSource(parent, key) if _has_own_items(cls) else ItemSource(parent, key)
