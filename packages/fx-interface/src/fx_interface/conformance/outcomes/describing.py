"""From objects to forms: objects and memories get numbers in the order in which they are met."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, Final

import torch

from fx_interface.conformance.outcomes.forms import Form, LeafForm, ObjectForm, TensorForm
from fx_interface.conformance.outcomes.parts import parts_of


class Describer:
    """Turns objects into forms; ``given`` are the memories that were there before the call."""

    def __init__(self, given: Container[int]) -> None:
        self._given = given
        self._objects: dict[int, tuple[int, object]] = {}
        self._storages: dict[int, int] = {}
        self._wrappers = 0

    def form(self, value: Any) -> Form:
        """The form of an object; what it consists of is described where the object is met first."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if (
            isinstance(value, (int, float, complex, str, bytes, type(None)))
            and type(value).__module__ == "builtins"
        ):
            return LeafForm(_number_text(value))
        known = id(value) in self._objects
        identity = self._objects.setdefault(id(value), (len(self._objects), value))[0]
        parts = {} if known else {name: self.form(part) for name, part in parts_of(value)}
        return ObjectForm(type(value).__qualname__, identity, parts)

    def _tensor(self, tensor: torch.Tensor) -> Form:
        with torch._C.DisableTorchFunctionSubclass():  # a class of the program may answer for any attribute
            return self._tensor_itself(tensor)

    def _tensor_itself(self, tensor: torch.Tensor) -> Form:
        seen = id(tensor) in self._objects
        identity = self._objects.setdefault(id(tensor), (len(self._objects), tensor))[0]
        if hasattr(type(tensor), "__tensor_flatten__"):
            parts = {} if seen else self._wrapper_parts(tensor)
            return ObjectForm(type(tensor).__qualname__, identity, parts)
        facts = _facts(tensor)
        facts["identity"] = identity
        storage, counter = None, "version"
        if tensor.layout == torch.strided and tensor.device.type != "meta":
            memory = tensor.untyped_storage()
            storage = self._storages.setdefault(memory._cdata, len(self._storages))
            self._objects.setdefault(id(memory), (-1, memory))
            counter = "version" if memory._cdata in self._given else "own version"
        counter = "inner version" if self._wrappers else counter
        facts[counter] = None if tensor.is_inference() else tensor._version
        strided = tensor.layout == torch.strided
        plain = tensor.detach().as_subclass(torch.Tensor) if strided else tensor.detach()
        content = _content(plain)
        return TensorForm(facts, storage, content, {} if seen else self._belongings(tensor))

    def _wrapper_parts(self, tensor: Any) -> dict[str, Form]:
        """What a tensor wraps, and how it shows it."""
        names, context = tensor.__tensor_flatten__()
        self._wrappers += 1
        inner = {name: self.form(getattr(tensor, name)) for name in names}
        self._wrappers -= 1
        facts = {name: LeafForm(repr(fact)) for name, fact in _facts(tensor).items()}
        counter = "version" if id(tensor) in self._given else "own version"
        facts[counter] = LeafForm(str(None if tensor.is_inference() else tensor._version))
        return {**inner, "context": self.form(context), **facts, **self._belongings(tensor, inner)}

    def _belongings(self, tensor: torch.Tensor, told: Container[str] = ()) -> dict[str, Form]:
        """The gradient, and the attributes that the program has set."""
        found: dict[str, Form] = {}
        if _unless_refused(lambda: tensor.is_leaf) is True and tensor.grad is not None:
            found["grad"] = self.form(tensor.grad)
        attributes = object.__getattribute__(tensor, "__dict__")
        if attributes:
            rest = sorted(item for item in attributes.items() if item[0] not in told)
            found.update({name: self.form(value) for name, value in rest})
        return found


_ITEMS: Final[Mapping[type, Callable[[Any], Iterable[Any]]]] = {
    list: list.__iter__,
    tuple: tuple.__iter__,
    dict: dict.values,
}


def tensors_in(value: Any, above: frozenset[int] = frozenset()) -> Iterator[torch.Tensor]:
    """The tensors in lists, tuples and values of dicts, past what their classes say of iterating. ``above``: the
    containers that hold this one, which it may hold again."""
    if id(value) in above:
        return
    kinds = type(value).__mro__
    if torch.Tensor in kinds:
        yield value
    for kind, items in _ITEMS.items():
        if kind in kinds:
            for item in items(value):
                yield from tensors_in(item, above | {id(value)})


def memories(values: Any) -> frozenset[int]:
    """What identifies the memories of tensors, and of tensors in lists and dicts; of wrappers, what identifies them."""
    with torch._C.DisableTorchFunctionSubclass():
        return frozenset(
            id(t) if hasattr(type(t), "__tensor_flatten__") else t.untyped_storage()._cdata
            for t in tensors_in(values)
            if t.layout == torch.strided
        )


def _content(plain: torch.Tensor) -> torch.Tensor:
    """A copy of what a tensor without a class of its own holds."""
    if plain.is_nested:
        return plain.to_padded_tensor(0)
    if plain.is_neg() and plain.dtype == torch.bool:  # which no kernel can read
        plain = torch._neg_view(plain)
    return plain.resolve_conj().resolve_neg().clone()


def _facts(tensor: torch.Tensor) -> dict[str, object]:
    strided = tensor.layout == torch.strided and not tensor.is_nested
    sizes = _sizes(tensor)
    strides = torch.Tensor.stride(tensor) if strided else None
    return {
        "class": type(tensor).__qualname__,
        "dtype": tensor.dtype,
        "device": tensor.device,
        "layout": tensor.layout,
        "shape": sizes,
        "strides": None if strides is None else _telling_strides(sizes, strides),
        "all strides": strides,
        "offset": tensor.storage_offset() if strided else None,
        "requires_grad": tensor.requires_grad,
        "is_leaf": _unless_refused(lambda: tensor.is_leaf),
        "has history": _unless_refused(lambda: tensor.grad_fn is not None),
        "is inference": tensor.is_inference(),
        "conj": tensor.is_conj(),
        "neg": tensor.is_neg(),
    }


def _sizes(tensor: torch.Tensor) -> tuple[Any, ...]:
    """The sizes; of a list of tensors those of each, and "j" for lengths that differ, which a process numbers."""
    if tensor.is_nested and tensor.layout == torch.strided:
        return tuple(map(tuple, tensor._nested_tensor_size().tolist()))
    return tuple("j" if isinstance(size, torch.SymInt) else size for size in torch.Tensor.size(tensor))


def _unless_refused(ask: Callable[[], bool]) -> bool | str:
    """What autograd says, or raises, as of a view that ``split`` gave and whose base was written to since."""
    try:
        return ask()
    except RuntimeError as error:
        return str(error)


def _telling_strides(sizes: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int | None, ...]:
    """The strides of dimensions of more than one item; those of others are among ``all strides`` only."""
    return tuple(None if size == 1 else stride for stride, size in zip(strides, sizes, strict=True))


def _number_text(value: Any) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "float nan"
    return f"{type(value).__name__} {value!r}"
