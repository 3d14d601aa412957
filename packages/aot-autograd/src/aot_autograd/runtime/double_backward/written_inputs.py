"""Inputs as they were before the program wrote to them, for a program that may run again.

    def f(z): z.mul_(2); return z.exp()          # z has a history that leads to w

The forward overwrites what ``z`` held and gives it another place in autograd's graph. So ``z`` is copied, with its
history. Its place is kept without a copy if that does: if the program may run again on what it holds afterwards (only
its form has changed, or ``relu_`` was all that read it); and where it is large, if nothing that is differentiated
depends on what it held, or if a compiled function made it, which then makes it again.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import torch

from aot_autograd.runtime.double_backward.freed_inputs import can_be_made_again, is_small, made_again
from aot_autograd.runtime.hooks.freed_tensors import CAN_BE_FREED, Freed
from fx_interface.python_runtime.own_references import OwnReference

_set_grad_enabled = torch._C._set_grad_enabled


class _InPlaceOf(torch.autograd.Function):
    """``content``, whose gradient goes to the leaf ``original``."""

    @staticmethod
    def forward(ctx: Any, content: torch.Tensor, original: torch.Tensor) -> torch.Tensor:
        return content.view_as(content)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, gradients[0]


class NotCopied(NamedTuple):
    """An input that was not copied: its form (sizes, dtype, device) if that is enough, or its ``version``; whether it
    had a history, and its ``place`` there; ``alias``: its memory, which at that version still holds what is needed."""

    form: tuple[torch.Size, torch.dtype, torch.device] | None
    version: int
    tensor: weakref.ref[torch.Tensor]
    has_history: bool
    place: torch.Tensor | None
    alias: torch.Tensor | None = None

    @classmethod
    def of(cls, value: torch.Tensor, is_read: bool, stays: int | None = None) -> NotCopied:
        """Called before the write; ``is_read``: results depend on what the input holds."""
        form = None if is_read else (value.shape, value.dtype, value.device)
        place = Freed.of(value).tensor(torch.empty(0)) if CAN_BE_FREED and value.grad_fn is not None else None
        version, alias = value._version, None
        if stays is not None:
            version, alias = version + stays, value.detach()
        return cls(form, version, OwnReference(value), value.requires_grad, place, alias)

    def again(self, node: Any, number: int) -> torch.Tensor | None:
        """Input ``number`` of a compiled function's ``node``; None where nothing tells what it was."""
        if self.form is not None:
            shape, dtype, device = self.form
            made: torch.Tensor | None = torch.zeros(shape, dtype=dtype, device=device)
        elif self.alias is not None:
            made = self.alias if self.alias._version == self.version else None
        else:
            with torch.no_grad():
                made = made_again(node, number, self.version, self.tensor)
        if made is None:
            return None
        content = made.detach()
        if not self.has_history:
            return content
        if not torch.is_grad_enabled():
            return content.requires_grad_()
        if self.place is not None:
            return Freed.of(self.place).tensor(content)
        original = self.tensor()
        if original is None or not original.is_leaf:
            return None
        led: torch.Tensor = _InPlaceOf.apply(content, original)  # type: ignore[no-untyped-call]
        return led


class Copy:
    """What the tensor ``original`` held before a compiled function wrote to it: ``content``, with its history."""

    __slots__ = ("__weakref__", "content", "original")

    def __init__(self, content: torch.Tensor, original: torch.Tensor) -> None:
        self.content = content
        self.original = OwnReference(original)


_COPIES: weakref.WeakValueDictionary[tuple[int, int], Copy] = weakref.WeakValueDictionary()
"""Those that there are, by the tensor's identity and the version that it had."""


def copied_before(value: torch.Tensor, version: int) -> torch.Tensor | None:
    """What ``value`` held at an earlier version, at its place in autograd's graph where gradients are on, if a compiled
    function has written to it since that may run again: earlier ones, which read it, may then, too."""
    copy = _COPIES.get((id(value), version))
    if copy is None or copy.original() is not value:
        return None
    return _at_its_place(copy.content)


def _at_its_place(copied: torch.Tensor) -> torch.Tensor:
    return copied if torch.is_grad_enabled() else copied.detach().requires_grad_(copied.requires_grad)


class Before(NamedTuple):
    """One written input, by its ``number``: a copy with its history, which nobody may write to, or what is known.
    ``copy``: what earlier functions find it by."""

    number: int
    known: torch.Tensor | NotCopied
    copy: Copy | None = None

    @classmethod
    def of(
        cls, number: int, value: torch.Tensor, is_read: bool, stays: int | None = None, is_quiet: bool = False
    ) -> Before:
        """Called by a forward, with gradients off, before the write; ``stays``: what the input holds after so many
        writes does as well; ``is_quiet``: autograd does not follow the write."""
        if stays is not None and (CAN_BE_FREED or value.grad_fn is None):
            return cls(number, NotCopied.of(value, True, stays))
        if not (is_read or value.requires_grad) or _does_without_copy(value, is_read):
            return cls(number, NotCopied.of(value, is_read))
        _set_grad_enabled(True)
        try:
            content = value.clone()
            if not is_quiet:
                return cls(number, content)
            copy = _COPIES[id(value), value._version] = Copy(content, value)
            return cls(number, content, copy)
        except torch.OutOfMemoryError:  # eager would not have made it
            return cls(number, NotCopied.of(value, is_read))
        finally:
            _set_grad_enabled(False)

    def let_go(self) -> Before:
        """The same without large memory: a program that has been differentiated for the last time."""
        known = self.known
        held = known.alias if isinstance(known, NotCopied) else known
        if held is None or is_small(held):
            return self
        return self._replace(
            known=NotCopied(None, -1, OwnReference(held), held.requires_grad, None), copy=None
        )

    def again(self, node: Any) -> torch.Tensor | None:
        """The input as it was in the call of ``node``, at its place in autograd's graph where gradients are on; None
        where that is gone."""
        known = self.known
        if isinstance(known, NotCopied):
            return known.again(node, self.number)
        return _at_its_place(known)

    def place(self) -> torch.Tensor | None:
        """Something at its place in autograd's graph, if it had a history that is known."""
        known = self.known.place if isinstance(self.known, NotCopied) else self.known
        return known if known is not None and known.requires_grad else None


def _does_without_copy(value: torch.Tensor, is_read: bool) -> bool:
    """Whether a large input can be told without a copy of what it holds."""
    if is_small(value):
        return False
    if is_read:
        return can_be_made_again(value)
    return value.is_leaf or CAN_BE_FREED
