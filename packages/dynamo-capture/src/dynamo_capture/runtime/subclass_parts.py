"""Tensors that dispatch in Python, taken to pieces and put together while a program runs: what a compiled graph, which
knows plain tensors only, is given of them and gives back.

    w  ──gradient_parts──▶  plain tensors without content  ──graph──▶  what carries the gradients of y  ──follow──▶  y

Autograd sees the wrappers at both ends. Gradients of ``y`` go into the graph in parts, and gradients of ``w`` are put
together again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from dynamo_capture.foundation.libraries.distributed_tensors import gradient_spec, is_spec
from dynamo_capture.hook.frame_hook import RegionFunction
from dynamo_capture.runtime.made_tensors import new_wrapper
from dynamo_capture.runtime.replacement_calls import instance_dict
from dynamo_capture.runtime.replayed_operations import Replayed
from fx_interface.python_runtime.own_references import OwnReference
from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Leaf:
    """A plain tensor of a form."""

    sizes: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    def empty(self) -> torch.Tensor:
        """A tensor of the form that takes no memory to speak of."""
        return torch.empty_strided(self.sizes, [0] * len(self.sizes), dtype=self.dtype, device=self.device)

    def zeros(self) -> torch.Tensor:
        """A gradient where there is none."""
        return torch.zeros(self.sizes, dtype=self.dtype, device=self.device)


@dataclass(frozen=True, eq=False)
class Form:
    """How a wrapper is made of ``leaves``: by the arguments that ``_make_wrapper_subclass`` had, and with attributes
    that are leaves, by their position, wrappers, or something else."""

    cls: type
    given: Mapping[str, Any]
    attributes: Mapping[str, Any]

    def build(self, leaves: Sequence[torch.Tensor]) -> torch.Tensor:
        """The wrapper."""
        attributes = {
            name: leaves[part.index]
            if isinstance(part, Position)
            else part.build(leaves)
            if isinstance(part, Form)
            else part
            for name, part in self.attributes.items()
        }
        return new_wrapper(self.cls, self.given, attributes)


@dataclass(frozen=True, slots=True)
class Position:
    """The place of a leaf."""

    index: int


@dataclass(frozen=True, eq=False)
class Parts:
    """The gradient of an existing tensor: a wrapper of so many plain tensors."""

    form: Form
    leaves: tuple[Leaf, ...]


class _GradientParts(torch.autograd.Function):
    """Tensors without content, whose gradients together are the gradient of the argument."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor, parts: Parts) -> tuple[torch.Tensor, ...]:
        ctx.parts = parts
        ctx.set_materialize_grads(False)
        return tuple(leaf.empty() for leaf in parts.leaves)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        if all(gradient is None for gradient in gradients):
            return None, None
        pairs = zip(gradients, ctx.parts.leaves, strict=True)
        leaves = [leaf.zeros() if gradient is None else gradient for gradient, leaf in pairs]
        return ctx.parts.form.build(leaves), None


def gradient_parts(value: torch.Tensor, parts: Parts) -> Any:
    """The tensors without content that take the gradient of ``value``."""
    with torch._C.DisableTorchFunctionSubclass():
        return _GradientParts.apply(value, parts)  # type: ignore[no-untyped-call]


def attributes_of(tensor: torch.Tensor) -> dict[str, Any]:
    """What a wrapper holds: its instance dictionary and its slots."""
    found = dict(instance_dict(tensor) or {})
    for base in type(tensor).__mro__:
        names = base.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__") and name not in found:
                try:
                    found[name] = object.__getattribute__(tensor, name)
                except AttributeError:
                    continue
    return found


class Likeness:
    """What the graph expects of the gradient of a result: the class, the form and the attributes that the result has,
    with other plain tensors inside."""

    def __init__(self, result: torch.Tensor) -> None:
        self._cls = type(result)
        self._sizes, self._dtype, self._device = result.shape, result.dtype, result.device
        self._attributes: dict[str, Any] = {}
        if self._cls is not torch.Tensor:
            for name, part in attributes_of(result).items():
                if isinstance(part, torch.Tensor):
                    self._attributes[name] = Likeness(part)
                else:
                    self._attributes[name] = gradient_spec(part) if is_spec(part) else part

    def leaves(self, gradient: Any) -> Iterator[torch.Tensor]:
        """The plain tensors in a gradient; ``Unlike`` where it is another one than expected."""
        if type(gradient) is not self._cls:
            raise Unlike
        if (gradient.shape, gradient.dtype, gradient.device) != (self._sizes, self._dtype, self._device):
            raise Unlike
        if self._cls is torch.Tensor:
            if gradient.layout is not torch.strided:
                raise Unlike
            yield gradient
            return
        attributes = attributes_of(gradient)
        if list(attributes) != list(self._attributes):
            raise Unlike
        for name, expected in self._attributes.items():
            if isinstance(expected, Likeness):
                yield from expected.leaves(attributes[name])
            elif not _is_same(expected, attributes[name]):
                raise Unlike

    def zeros(self) -> Iterator[torch.Tensor]:
        """The plain tensors in a gradient of zero."""
        if self._cls is torch.Tensor:
            yield torch.zeros(self._sizes, dtype=self._dtype, device=self._device)
        for part in self._attributes.values():
            if isinstance(part, Likeness):
                yield from part.zeros()


class Unlike(Exception):
    """A gradient is not what the graph was made for."""


_BY_VALUE = (int, float, str, bytes, bool, type(None), torch.Size, torch.dtype, torch.device)


def _is_same(expected: Any, found: Any) -> bool:
    if expected is found:
        return True
    if type(expected) is not type(found):
        return False
    if is_spec(expected):
        return (
            expected.mesh is found.mesh
            and expected.placements == found.placements
            and expected.tensor_meta.shape == found.tensor_meta.shape
        )
    if isinstance(expected, tuple):
        return len(expected) == len(found) and all(map(_is_same, expected, found))
    return isinstance(expected, _BY_VALUE) and bool(expected == found)


@dataclass(frozen=True, eq=False)
class Ends:
    """Where autograd goes on from a graph: ``counts`` of the tensors that carry the gradients of each result;
    ``alike``: whether all results depend on the same inputs; ``inputs_kept`` and ``results_kept``: which of them torch
    keeps for the gradients; ``replayed``: the operations in between."""

    counts: tuple[int, ...]
    alike: bool
    inputs_kept: tuple[bool, ...]
    results_kept: tuple[bool, ...]
    replayed: Replayed


class _Followed(torch.autograd.Function):
    """Gives the results of a graph their history."""

    @staticmethod
    def forward(
        ctx: Any, ends: Ends, results: tuple[Any, ...], inputs: tuple[Any, ...], *tensors: Any
    ) -> Any:
        places = iter(tensors)
        carriers = [[next(places) for _ in range(count)] for count in ends.counts]
        made = [
            own[0].detach() if result is None else result
            for result, own in zip(results, carriers, strict=True)
        ]
        ctx.ends, ctx.likenesses = ends, [Likeness(result) for result in made]
        ctx.inputs, ctx.is_done = inputs, False
        ctx.versions = [_version(value) for value in inputs]
        ctx.results = [
            (OwnReference(result), result._version)
            for result, is_kept in zip(made, ends.results_kept, strict=True)
            if is_kept
        ]
        ctx.set_materialize_grads(False)
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        ends: Ends = ctx.ends
        carriers = sum(ends.counts)
        _check_unchanged(ctx, ends.inputs_kept)
        if not torch.is_grad_enabled() and not ctx.is_done:
            try:
                found = _parts(ctx, gradients)
            except Unlike:
                pass
            else:
                ctx.is_done = True  # the graph may have let go of what it saved
                return None, None, None, *found, *[None] * len(ends.replayed.trained)
        _check_unchanged(ctx, [True] * len(ctx.inputs))
        trained = RegionFunction(ends.replayed.gradients, None)(ctx.inputs, gradients)
        return None, None, None, *[None] * carriers, *trained


def _version(value: Any) -> int:
    return value._version if isinstance(value, torch.Tensor) and not value.is_inference() else 0


def _check_unchanged(ctx: Any, needed: Sequence[bool]) -> None:
    """RuntimeError where a tensor has been changed that torch would have kept."""
    inputs = zip(ctx.inputs, ctx.versions, needed, strict=True)
    changed = any(is_needed and _version(value) != version for value, version, is_needed in inputs)
    kept = [(reference(), version) for reference, version in ctx.results]
    if changed or any(result is not None and result._version != version for result, version in kept):
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation, "
            "after a compiled graph has used it"
        )


def _parts(ctx: Any, gradients: Sequence[Any]) -> list[torch.Tensor]:
    """The gradients of what carries them; ``Unlike`` where the graph does not fit."""
    if any(gradient is None for gradient in gradients) and not ctx.ends.alike:
        raise Unlike
    found: list[torch.Tensor] = []
    for gradient, likeness in zip(gradients, ctx.likenesses, strict=True):
        found += likeness.zeros() if gradient is None else likeness.leaves(gradient)
    return found


def follow(ends: Ends, results: tuple[Any, ...], carriers: tuple[Any, ...], inputs: tuple[Any, ...]) -> Any:
    """The results with their history: ``results`` are wrappers, or None for a plain tensor, which its carrier shows."""
    trained = [inputs[place] for place in ends.replayed.trained]
    with torch._C.DisableTorchFunctionSubclass():
        return _Followed.apply(ends, results, inputs, *carriers, *trained)  # type: ignore[no-untyped-call]
