"""Tensors of classes whose ``__torch_dispatch__`` is written in Python: no node of the graph stands for one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.fx import Node

import fx_guards
from dynamo_capture.foundation.break_kinds import DISPATCH_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.libraries.distributed_tensors import is_distributed
from dynamo_capture.foundation.libraries.parameters import IS_PARAMETER
from dynamo_capture.runtime.made_tensors import new_distributed
from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.tensors.tensor import TensorMeta, TensorValue
from fx_interface.source import Source

"""The attribute by which torch knows a parameter of a class that is not its own."""
IS_BUFFER = "_is_buffer"
"""The attribute by which torch knows what ``torch.nn.Buffer`` gives, a tensor of an ordinary class."""
_SERIALS = itertools.count()


def has_mark(value: Value) -> bool:
    """Whether torch takes a tensor for a parameter or a buffer by an attribute of its own, and not by its class."""
    if not isinstance(value, TensorValue):
        return False
    names = set(value.attrs or ()) | (
        set() if value.real is None else set(fx_guards.instance_dict(value.real))
    )
    return not names.isdisjoint((IS_PARAMETER, IS_BUFFER))


class WrapperValue(TensorValue):
    """To every question about tensors a tensor. What is in it, its attributes hold, and operations on it are what its
    class makes of them. ``given``: for one that the trace made, its class and the other arguments of
    ``_make_wrapper_subclass``, whose ``names`` those are. ``history``: the node of a graph's input that gradients of
    an existing one go to. ``plain``: for a tensor without such a class that a stretch gave (``regions.stretch``), its
    content; ``joined``: the value that gives it its history, and its place there. ``serial`` counts them."""

    __slots__ = ("given", "history", "joined", "names", "plain", "serial")

    def __init__(
        self,
        meta: TensorMeta,
        source: Source | None = None,
        real: torch.Tensor | None = None,
        given: Sequence[Value] = (),
        names: tuple[str, ...] = (),
    ) -> None:
        self.meta = meta
        self.source = source
        self.real = real
        self.root = self.memory = self
        self.is_shown = False
        self.refuses_writes = False
        self.views = []
        self.attrs = None
        self.content = None
        self.follows_from = ()
        self.initial = None
        self.formula = None
        self.given = list(given)
        self.names = names
        self.history: Node | None = None
        self.plain: TensorValue | None = None
        self.joined: tuple[Value, int] | None = None
        self.serial = next(_SERIALS)

    @staticmethod
    def count() -> int:
        """A number that is above the ``serial`` of all that there are, and not above that of those made later."""
        return next(_SERIALS)

    def __getattr__(self, name: str) -> Any:
        """What is not there: the node, which whatever puts tensors into the graph asks for."""
        if name == "node":
            raise GraphBreak(DISPATCH_IN_PYTHON, f"{self.describe()} is used as a plain tensor")
        raise AttributeError(name)

    def __repr__(self) -> str:
        return f"WrapperValue({self.meta.cls.__name__}: {self.meta.spec})"

    def children(self, tx: Context) -> list[Value]:
        if self.joined is not None:
            return [self.joined[0]]
        return [self.plain] if self.plain is not None else [*self.given, *(self.attrs or {}).values()]

    def fake(self, tx: Context, fakes: dict[int, Any]) -> Any:
        if not is_distributed(self.meta.cls):
            return super().fake(tx, fakes)
        found = fakes.get(id(self))
        if found is None:
            local = (self.attrs or {})["_local_tensor"].fake(tx, fakes)
            with torch.inference_mode(self.meta.is_inference):
                found = self._around(local)
            found.origin = self  # type: ignore[attr-defined]
            fakes[id(self)] = found
        return found

    def _around(self, local: torch.Tensor) -> torch.Tensor:
        """A distributed tensor of this form, of which ``local`` is the part."""
        spec, meta = (self.attrs or {})["_spec"].as_constant(), self.meta
        made = new_distributed(meta.cls, local, spec, meta.requires_grad)
        if self.real is not None and IS_PARAMETER in fx_guards.instance_dict(self.real):
            setattr(made, IS_PARAMETER, True)
        if meta.requires_grad and not meta.is_leaf:
            with torch.enable_grad():
                made = _Grown.apply(made)  # type: ignore[no-untyped-call]
        return made

    def argument(self, tx: Context) -> Any:
        raise self.no_argument()

    def frozen(self, tx: Context, tensors: list[Any]) -> Any:
        raise self.no_argument()


class _Grown(torch.autograd.Function):
    """A distributed tensor with a history, which no operator has made."""

    @staticmethod
    def forward(ctx: Any, value: Any) -> torch.Tensor:
        return new_distributed(type(value), value._local_tensor, value._spec)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0]


def add_classes(found: list[type], classes: Iterable[type]) -> None:
    """Add classes that take over an operation, in the order in which torch asks them: subclasses before their bases."""
    for cls in classes:
        if cls not in found:
            place = next((i for i, known in enumerate(found) if issubclass(cls, known)), len(found))
            found.insert(place, cls)


def dispatches(cls: type) -> bool:
    """Whether operations on tensors of a class end in its ``__torch_dispatch__``."""
    own: Any = cls.__torch_dispatch__  # type: ignore[attr-defined]
    return own is not torch.Tensor.__torch_dispatch__
