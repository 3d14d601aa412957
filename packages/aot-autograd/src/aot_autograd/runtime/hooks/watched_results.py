"""Results of a compiled function that are watched: whether anybody looks at their gradients, and where these arrive.

A result is known weakly, so that its memory is freed when eager would free it. Its hooks may outlive it: they stay with
autograd's node, and so does the dictionary of them.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from aot_autograd.runtime.hooks.chosen_tensors import edge_of, is_chosen, is_chosen_leaf, leads_on
from aot_autograd.runtime.hooks.freed_tensors import CAN_BE_FREED, Freed
from aot_autograd.runtime.hooks.result_hooks import ResultHooks, prepare_hooks_of
from fx_interface.python_runtime.own_references import OwnReference


class HooksWithoutTensorError(Exception):
    """A result has hooks, and is gone or has another history."""


class Watched:
    """One result: its hooks, whether its gradient is kept, and itself as long as it is what it was.

    ``followers``: nodes in Python that may lead to it, each with its ``places``. One that does holds the place of a
    result that has hooks, for when the result is gone.
    """

    __slots__ = ("__weakref__", "_followers", "_hooks", "_is_leaf", "_placed", "_tensor", "_version")

    def __init__(self, tensor: torch.Tensor, followers: Sequence[weakref.ref[Any]] = ()) -> None:
        self._followers = followers
        self._placed: weakref.ref[torch.Tensor] | None = None  # which derivatives hold that lead there
        self._hooks: Any = None
        self._tensor = OwnReference(tensor)
        self._version = tensor._version
        self._is_leaf = tensor.requires_grad and tensor.grad_fn is None

    def begin(self) -> None:
        """The dictionary of hooks that the tensor has, or gets now. Its node is the last one."""
        tensor = self._tensor()
        if tensor is None or tensor.grad_fn is None:
            return
        if tensor._backward_hooks is None:
            prepare_hooks_of(tensor)
        self._hooks = hooks = tensor._backward_hooks
        self._version = tensor._version
        if self._followers and CAN_BE_FREED:
            if hooks:
                self._keep_place()
            elif isinstance(hooks, ResultHooks):
                hooks.on_first = partial(_keep_place_of, weakref.ref(self))

    def _keep_place(self) -> None:
        tensor = self._tensor()
        if tensor is None or tensor._version != self._version:
            return
        freed = None
        for follower in self._followers:
            node = follower()
            if node is not None and self in node.places:
                freed = node.places[self] = freed or Freed.of(tensor)

    def is_looked_at(self) -> bool:
        """Whether its gradient is kept or given to a hook."""
        tensor = self._tensor()
        if tensor is None or tensor.grad_fn is not None:
            return bool(self._hooks) or (tensor is not None and tensor.retains_grad)
        return bool(tensor._backward_hooks)  # a leaf that the function made

    def is_chosen(self) -> bool:
        """Whether the backward that runs is to find its gradient, as far as can be told."""
        tensor = self._tensor()
        if tensor is None:
            return False
        edge = edge_of(tensor)
        return is_chosen_leaf(tensor) if edge is None else is_chosen(*edge)

    def leads_on(self) -> bool:
        """Whether something that the backward of chosen tensors is to find lies behind it, as far as can be told."""
        hooks, tensor = self._hooks, self._tensor()
        if isinstance(hooks, ResultHooks) and hooks.node is not None:
            node = hooks.node()
            return node is None or leads_on(node, hooks.place)
        if tensor is None:
            return not self._is_leaf
        edge = edge_of(tensor)
        return edge is not None and leads_on(*edge)

    def as_it_was(self) -> torch.Tensor | None:
        """The result, if it still has the history that it was given, or is the leaf that the function made. Where it
        does not but has hooks, which only that history leads to, something in its place; HooksWithoutTensorError where
        that is not known."""
        tensor = self._tensor()
        if tensor is not None and self._is_leaf and tensor.is_leaf:
            return tensor
        if tensor is not None and tensor.grad_fn is not None and tensor._version == self._version:
            return tensor
        return self._in_its_place() if self._hooks else None

    def _in_its_place(self) -> torch.Tensor:
        """Something of no size in the place of the result, which has hooks."""
        known = None if self._placed is None else self._placed()
        if known is not None:
            return known
        for follower in self._followers:
            node = follower()
            freed = None if node is None else node.places.get(self)
            placed: torch.Tensor | None = None if freed is None else freed.tensor(torch.empty(0))
            if placed is not None:
                self._placed = OwnReference(placed)
                return placed
        raise HooksWithoutTensorError


def _keep_place_of(watched: weakref.ref[Watched]) -> None:
    one = watched()
    if one is not None:
        one._keep_place()


def watch(node: Any, results: Sequence[Any], indices: Sequence[int]) -> None:
    """Watch these results of a call, for its ``node``."""
    node.watched = {index: Watched(results[index]) for index in indices}
    for watched in node.watched.values():
        watched.begin()
