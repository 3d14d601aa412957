"""Runs a program's calls and notes everything that its user can tell of them."""

from __future__ import annotations

import contextlib
import io
import random
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.verification.referee import Referee

SEED = 20
_DEPTH = 4
_PLAIN = (int, float, complex, str, bytes, bool, type(None), torch.dtype, torch.device, torch.Size)


@dataclass(slots=True)
class Observation:
    """What was seen, in order: ``values`` by (class, name), with tensors copied; ``exact``: their float64 counterparts
    where a referee watched."""

    values: dict[tuple[str, str], Any] = field(default_factory=dict)
    exact: dict[tuple[str, str], Tensor] = field(default_factory=dict)
    error: BaseException | None = None


def observe(
    namespace: Mapping[str, Any], transform: Callable[[Any], Any], referee: Referee | None = None
) -> Observation:
    """Call ``transform(program)`` with each of the program's calls, one after the other, with a backward behind each.

    ``namespace`` is that of the executed program: ``program`` and ``CALLS``, or ``INPUTS`` for a single call.
    """
    notes = _Notes(referee)
    program = namespace["program"]
    run = transform(program)
    torch.manual_seed(SEED)
    random.seed(SEED)
    for number, args in enumerate(calls_of(namespace)):
        notes.call = f"call {number}"
        _one_call(run, args, namespace, notes)
    return notes.observation


def calls_of(namespace: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
    """The positional arguments of each call. TypeError where they are no tuples or lists."""
    calls = namespace["CALLS"] if "CALLS" in namespace else [namespace["INPUTS"]]
    if not all(isinstance(call, (list, tuple)) for call in [calls, *calls]):
        raise TypeError("the arguments of a call are a tuple or a list")
    found: Sequence[Sequence[Any]] = calls
    return found


def _one_call(
    run: Callable[..., Any], args: Sequence[Any], namespace: Mapping[str, Any], notes: _Notes
) -> None:
    printed = io.StringIO()
    result: Any = None
    watch = contextlib.nullcontext() if notes.referee is None else notes.referee
    with contextlib.redirect_stdout(printed), watch:
        try:
            result = run(*args)
            notes.note("exception", "", None)
        except Exception as error:
            notes.note("exception", "", type(error).__qualname__)
            notes.observation.error = notes.observation.error or error
    notes.note("printed text", "", printed.getvalue())
    notes.structure("result", result)
    notes.note("random numbers", "", torch.random.get_rng_state())
    leaves = list(_leaves_of(namespace, args))
    with watch:
        _backward(result, [leaf for _, leaf in leaves], notes)
    for name, leaf in leaves:
        notes.note("gradient", name, leaf.grad)
    notes.structure("argument", list(args))
    for name, value in namespace.items():
        if not name.startswith("__") and name not in ("program", "CALLS", "INPUTS"):
            notes.structure("global", value, name)
    notes.structure("state", namespace["program"], "program")


def _backward(result: Any, leaves: Sequence[Tensor], notes: _Notes) -> None:
    roots = [t for t in pytree.tree_leaves(result) if isinstance(t, Tensor) and t.requires_grad]
    if not roots or not leaves:
        return
    generator = torch.Generator().manual_seed(SEED)
    arriving = [
        torch.randn(root.shape, generator=generator, dtype=torch.float64).to(root.device, root.dtype)
        for root in roots
    ]
    try:
        torch.autograd.backward(roots, arriving, inputs=list(leaves))
    except RuntimeError as error:
        notes.note("exception of the backward", "", type(error).__qualname__)


def _leaves_of(namespace: Mapping[str, Any], args: Sequence[Any]) -> Iterator[tuple[str, Tensor]]:
    """The tensors that gradients are collected in: arguments, globals, parameters."""
    seen: set[int] = set()
    for name, value in [*((f"[{n}]", a) for n, a in enumerate(args)), *namespace.items()]:
        if name in ("CALLS", "INPUTS"):
            continue
        found = value.parameters() if isinstance(value, nn.Module) else pytree.tree_leaves(value)
        for index, leaf in enumerate(found):
            if isinstance(leaf, Tensor) and leaf.requires_grad and leaf.is_leaf and id(leaf) not in seen:
                seen.add(id(leaf))
                yield f"{name}.{index}", leaf


def _kind(tensor: Tensor) -> str:
    layout = (
        [s for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n > 1]
        if tensor.layout is torch.strided
        else []
    )
    history = "leaf" if tensor.is_leaf else "with a history"
    return f"{tensor.dtype} {tuple(tensor.shape)} strides {layout} {tensor.device} {tensor.requires_grad} {history}"


class _Notes:
    """Collects values under names that are equal in every run."""

    def __init__(self, referee: Referee | None) -> None:
        self.referee = referee
        self.observation = Observation()
        self.call = ""

    def note(self, kind: str, name: str, value: Any) -> None:
        key = (kind, f"{self.call} {name}".strip())
        if isinstance(value, Tensor):
            if self.referee is not None:
                self.observation.exact[key] = self.referee.exact(value).clone()
            self.observation.values[kind, f"{key[1]} as a tensor"] = _kind(value)
            value = value.detach().clone()
        self.observation.values[key] = value

    def structure(self, kind: str, value: Any, name: str = "", depth: int = 0) -> None:
        """Note containers, plain values, tensors, and objects by their attributes."""
        if isinstance(value, (Tensor, *_PLAIN)):
            self.note(kind, name, value)
        elif depth >= _DEPTH or isinstance(value, (type, types.ModuleType, types.FunctionType)):
            return
        elif isinstance(value, Mapping):
            self.note(kind, f"{name} keys", repr(list(value)))
            for key in value:
                self.structure(kind, value[key], f"{name}[{key!r}]", depth + 1)
        elif isinstance(value, (list, tuple)):
            self.note(kind, f"{name} kind", f"{type(value).__qualname__} of {len(value)}")
            for index, item in enumerate(value):
                self.structure(kind, item, f"{name}[{index}]", depth + 1)
        elif isinstance(value, nn.Module):
            for key, tensor in [*value.named_parameters(), *value.named_buffers()]:
                self.note(kind, f"{name}.{key}", tensor)
            self._attributes(kind, value, name, depth)
        else:
            self.note(kind, f"{name} type", type(value).__qualname__)
            self._attributes(kind, value, name, depth)

    def _attributes(self, kind: str, value: Any, name: str, depth: int) -> None:
        for key, item in getattr(value, "__dict__", {}).items():
            if not key.startswith("_"):
                self.structure(kind, item, f"{name}.{key}", depth + 1)
