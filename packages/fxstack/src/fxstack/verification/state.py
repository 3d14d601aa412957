"""What a call can read and write: tensors by name, and objects that training keeps state in.

Trials of one call must begin alike, so all of it is put back between them: contents, gradients in ``.grad``, the state
of optimizers, of schedulers of the learning rate and of scalers of gradients.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallState:
    """``tensors`` by name, each once; ``keepers``: optimizers, schedulers, scalers."""

    tensors: dict[str, Tensor]
    keepers: tuple[Any, ...]

    @property
    def leaves(self) -> list[tuple[str, Tensor]]:
        """The tensors that gradients are for."""
        return [(name, t) for name, t in self.tensors.items() if t.requires_grad and t.is_leaf]


def state_of(function: Any, args: Any, kwargs: Any) -> CallState:
    """What a call of ``function`` may read or write: arguments, and what modules, optimizers, closures, globals that
    it names and the object that it is a method of hold."""
    tensors: dict[str, Tensor] = {}
    keepers: list[Any] = []
    seen: set[int] = set()
    for name, value in _reachable(function, args, kwargs):
        if isinstance(value, _keepers()) and id(value) not in seen:
            seen.add(id(value))
            keepers.append(value)
        for key, tensor in _tensors_in(name, value):
            if id(tensor) not in seen:
                seen.add(id(tensor))
                tensors[key] = tensor
    return CallState(tensors, tuple(keepers))


def _keepers() -> tuple[type, ...]:
    return torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler, torch.amp.GradScaler


def _tensors_in(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, nn.Module):
        for key, tensor in (*value.named_parameters(), *value.named_buffers()):
            yield f"{name}.{key}".lstrip("."), tensor
    elif isinstance(value, torch.optim.Optimizer):
        for group, content in enumerate(value.param_groups):
            for number, parameter in enumerate(content["params"]):
                yield f"{name}.param_groups[{group}]['params'][{number}]", parameter
    elif isinstance(value, Tensor):
        yield name, value


def _reachable(function: Any, args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
    """Values by name; modules before the optimizers of their parameters, whose names say less."""
    found = [*_named(function, args, kwargs)]
    yield from (pair for pair in found if not isinstance(pair[1], torch.optim.Optimizer))
    yield from (pair for pair in found if isinstance(pair[1], torch.optim.Optimizer))


def _named(function: Any, args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
    flat, _ = pytree.tree_flatten_with_path((args, kwargs))
    for path, leaf in flat:
        yield "argument " + "".join(str(step) for step in path[1:]), leaf
    if isinstance(function, nn.Module):
        yield "", function
        return
    owner = getattr(function, "__self__", None)
    yield "self", owner
    if not isinstance(owner, (nn.Module, Tensor, *_keepers())) and not inspect.ismodule(owner):
        for name, value in getattr(owner, "__dict__", {}).items():
            yield from ((f"self.{name}", item) for item in pytree.tree_leaves(value))
    held = inspect.unwrap(function)
    if inspect.ismethod(held):
        held = held.__func__
    if inspect.isfunction(held):
        variables = inspect.getclosurevars(held)
        for name, value in {**variables.nonlocals, **variables.globals}.items():
            yield from ((name, item) for item in pytree.tree_leaves(value))


@contextmanager
def restored(state: CallState) -> Iterator[Callable[[], None]]:
    """Gives a function that puts everything back to what it is now; called at the end too. The random state is put
    back at the end."""
    tensors = list(state.tensors.values())
    back = [_contents_of(tensors), *map(_keeper_of, state.keepers)]

    def restore() -> None:
        for put in back:
            put()

    with torch.random.fork_rng(devices=[]):
        try:
            yield restore
        finally:
            restore()


def _contents_of(tensors: Sequence[Tensor]) -> Callable[[], None]:
    """Puts contents back, and gradients: which tensor each was, and what it held."""
    before = [(tensor, tensor.detach().clone()) for tensor in tensors]
    grads = [(tensor, tensor.grad) for tensor in tensors if tensor.is_leaf]
    before += [(grad, grad.detach().clone()) for _, grad in grads if grad is not None]

    def put() -> None:
        for tensor, grad in grads:
            if tensor.grad is not grad:
                tensor.grad = grad
        with torch.no_grad():
            for tensor, content in before:
                if not torch.equal(tensor, content):
                    tensor.copy_(content)

    return put


def _keeper_of(keeper: Any) -> Callable[[], None]:
    """Puts the attributes of an optimizer, scheduler or scaler back, and for optimizers what is kept for each group and
    parameter."""
    mappings = [vars(keeper)]
    if isinstance(keeper, torch.optim.Optimizer):
        mappings += [*keeper.param_groups, keeper.state, *keeper.state.values()]
    before = [(mapping, dict(mapping)) for mapping in mappings]
    held = [value for _, content in before for value in content.values() if isinstance(value, Tensor)]
    contents = _contents_of(held)

    def put() -> None:
        for mapping, content in before:
            mapping.clear()
            mapping.update(content)
        contents()

    return put
