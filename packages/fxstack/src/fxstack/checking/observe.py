"""One run of a graph on copies of its inputs, and all that its caller can tell of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from fx_interface.execution.undo import random_states
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.checking.copies import Copies

_SEED = 20
Read = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Observed:
    """``values``: results, then inputs as they are after the run, then gradients, by name; ``exact``: the same in
    float64 where a referee watched. ``facts``: what else is to be the same, by name."""

    values: Mapping[str, Any]
    exact: Mapping[str, Tensor]
    facts: Mapping[str, object]


def observe(
    run: Callable[..., Any],
    inputs: Sequence[Any],
    watching: Any = None,
    nudged_by: torch.Generator | None = None,
) -> Observed:
    """Run a graph on copies of ``inputs`` and then, if its results have histories, their backward.

    ``watching``: a referee (``fxstack.verification``) that is to be active meanwhile. ``nudged_by``: decides in which
    direction each number of the copies is changed by a rounding.
    """
    copies = Copies(inputs)
    if nudged_by is not None:
        copies.nudge(nudged_by)
    watch: AbstractContextManager[Any] = nullcontext() if watching is None else watching
    noting = _Notes(copies, None if watching is None else watching.exact)
    versions = _versions(copies.values)
    results: list[Any] = []
    with watch:
        grad = torch.is_grad_enabled()
        try:
            results = list(run(*copies.values))
        except Exception as error:
            noting.facts["exception"] = type(error).__qualname__
        finally:
            torch.set_grad_enabled(grad)
    with torch._C.DisableTorchFunction():
        drawn = random_states()
        noting.results(results)
        noting.inputs("after the call", versions)
    with watch:
        _differentiate(results, copies, noting.facts)
    with torch._C.DisableTorchFunction():
        noting.gradients()
        noting.inputs("after the backward", versions)
        noting.facts["random numbers"] = [
            hash(state.numpy().tobytes()) for state in (*drawn, *random_states())
        ]
    return Observed(noting.values, noting.exact, noting.facts)


class _Notes:
    """Copies what a run gave, at the moment it is asked to."""

    def __init__(self, copies: Copies, exact: Read | None) -> None:
        self._copies = copies
        self._exact = exact
        self.values: dict[str, Any] = {}
        self.exact: dict[str, Tensor] = {}
        self.facts: dict[str, object] = {}

    def results(self, results: Sequence[Any]) -> None:
        """The results with their layout, and what shares memory with what."""
        self.facts["results"] = len(results)
        known = [(f"input {index}", value) for index, value in enumerate(self._copies.values)]
        for index, result in enumerate(results):
            name = f"result {index}"
            self._value(name, result)
            if isinstance(result, Tensor):
                self._layout(name, result)
                self.facts[f"{name}: history"] = (result.requires_grad, result.is_leaf)
                self.facts[f"{name}: memory"] = _shared(result, known)
            known.append((name, result))

    def inputs(self, when: str, versions: Sequence[int | None]) -> None:
        """The inputs' content, and which of them were written to."""
        now = _versions(self._copies.values)
        for index, value in enumerate(self._copies.values):
            if isinstance(value, Tensor):
                name = f"input {index} {when}"
                self._value(name, value)
                self._layout(name, value)
                self.facts[f"{name}: written"] = now[index] != versions[index]
                self.facts[f"{name}: history"] = (value.requires_grad, value.is_leaf)

    def gradients(self) -> None:
        """What arrived at the leaves."""
        for index, leaf in self._copies.leaves.items():
            name = f"gradient of input {index}"
            self._value(name, leaf.grad)
            if leaf.grad is not None:
                self._layout(name, leaf.grad)

    def _value(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor):
            if self._exact is not None:
                self.exact[name] = self._exact(value).clone()
            value = value.detach().clone()
        self.values[name] = value

    def _layout(self, name: str, tensor: Tensor) -> None:
        self.facts[f"{name}: kind"] = f"{tensor.dtype} of {tuple(tensor.shape)} on {tensor.device}"
        if tensor.layout is torch.strided and tensor.numel():
            strides = tuple(s for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n > 1)
            self.facts[f"{name}: strides"] = strides


def _shared(result: Tensor, known: Sequence[tuple[str, Any]]) -> str:
    """The first earlier tensor that is this one, or lies in the same memory, and how far apart they begin."""
    for name, other in known:
        if other is result:
            return f"is {name}"
    if result.numel() == 0 or result.layout is not torch.strided:
        return "its own"
    memory = result.untyped_storage()._cdata
    for name, other in known:
        if isinstance(other, Tensor) and other.numel() and other.untyped_storage()._cdata == memory:
            apart = result.storage_offset() - other.storage_offset()
            return f"shares that of {name}" + (f", {apart} elements apart" if apart else "")
    return "its own"


def _versions(values: Sequence[Any]) -> list[int | None]:
    return [
        value._version if isinstance(value, Tensor) and not value.is_inference() else None for value in values
    ]


def _differentiate(results: Sequence[Any], copies: Copies, facts: dict[str, object]) -> None:
    """A backward of all results that have a history, with random gradients arriving."""
    given = {id(value) for value in copies.values}
    roots = {
        id(r): r for r in results if isinstance(r, Tensor) and r.grad_fn is not None and id(r) not in given
    }
    written = {
        id(v): v for v in copies.values if isinstance(v, Tensor) and v.grad_fn is not None and v._version > 0
    }
    chosen = [*roots.values(), *written.values()]
    leaves = list(copies.leaves.values())
    if not chosen or not leaves or not torch.is_grad_enabled():
        return
    generator = torch.Generator().manual_seed(_SEED)
    arriving = [_normal(root, generator) for root in chosen]
    try:
        torch.autograd.backward(chosen, arriving, inputs=leaves)
    except Exception as error:
        facts["exception of the backward"] = type(error).__qualname__


def _normal(like: Tensor, generator: torch.Generator) -> Tensor:
    wide = torch.complex128 if like.is_complex() else torch.float64
    with torch._C.DisableTorchFunction():
        return torch.randn(like.shape, generator=generator, dtype=wide).to(like.device, like.dtype)
