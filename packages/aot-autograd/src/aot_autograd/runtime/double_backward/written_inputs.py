"""Inputs as they were before the program wrote to them, for a program that may run again.

    def f(z): z.mul_(2); return z.exp()          # z has a history that leads to w

The forward overwrites what ``z`` held and gives it another place in autograd's graph. A small input is copied, with its
history. Of a large one its place is kept, without memory, and the compiled function that made it makes it again.
"""

from __future__ import annotations

import weakref
from typing import Any, Final, NamedTuple

import torch

from aot_autograd.runtime.double_backward.freed_inputs import made_again
from aot_autograd.runtime.hooks.freed_tensors import CAN_BE_FREED, Freed

_SMALL: Final = 1 << 16
"""Bytes of an input that are copied in each call whose gradients may be asked for: a copy costs some microseconds."""
_set_grad_enabled = torch._C._set_grad_enabled


class NotCopied(NamedTuple):
    """An input that was not copied: its form (sizes, dtype, device) if that is enough, or its ``version``; whether it
    had a history, and its ``place`` there."""

    form: tuple[torch.Size, torch.dtype, torch.device] | None
    version: int
    tensor: weakref.ref[torch.Tensor]
    has_history: bool
    place: torch.Tensor | None

    @classmethod
    def of(cls, value: torch.Tensor, is_read: bool) -> NotCopied:
        """Called before the write; ``is_read``: results depend on what the input holds."""
        form = None if is_read else (value.shape, value.dtype, value.device)
        place = Freed.of(value).tensor(torch.empty(0)) if CAN_BE_FREED and value.grad_fn is not None else None
        return cls(form, value._version, weakref.ref(value), value.requires_grad, place)

    def again(self, node: Any, number: int) -> torch.Tensor | None:
        """Input ``number`` of a compiled function's ``node``; None where nothing tells what it was."""
        if self.form is not None:
            shape, dtype, device = self.form
            made: torch.Tensor | None = torch.zeros(shape, dtype=dtype, device=device)
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
        return None if self.place is None else Freed.of(self.place).tensor(content)


class Before(NamedTuple):
    """One written input, by its ``number``: a copy with its history, which nobody may write to, or what is known."""

    number: int
    known: torch.Tensor | NotCopied

    @classmethod
    def of(cls, number: int, value: torch.Tensor, is_read: bool) -> Before:
        """Called by a forward, with gradients off, before the write."""
        if not (is_read or value.requires_grad) or value.numel() * value.element_size() > _SMALL:
            return cls(number, NotCopied.of(value, is_read))
        _set_grad_enabled(True)
        try:
            return cls(number, value.clone())
        finally:
            _set_grad_enabled(False)

    def again(self, node: Any) -> torch.Tensor | None:
        """The input as it was in the call of ``node``, at its place in autograd's graph where gradients are on; None
        where that is gone."""
        known = self.known
        if isinstance(known, NotCopied):
            return known.again(node, self.number)
        return known if torch.is_grad_enabled() else known.detach().requires_grad_(known.requires_grad)

    def place(self) -> torch.Tensor | None:
        """Something at its place in autograd's graph, if it had a history that is known."""
        known = self.known.place if isinstance(self.known, NotCopied) else self.known
        return known if known is not None and known.requires_grad else None
