"""The place of a tensor in autograd's graph, without its memory: it outlives the tensor, and hooks are found there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from fx_interface.python_runtime.own_references import OwnReference

_saved: Callable[[torch.Tensor, bool], Any] | None = getattr(torch._C._autograd, "_make_saved_tensor", None)
"""From torch 2.12 on. What it returns has, with hooks that keep nothing, a tensor's place in autograd's graph and not
its memory."""
CAN_BE_FREED: Final = _saved is not None
_top_hooks = torch._C._autograd._top_saved_tensors_default_hooks


class Freed(OwnReference[torch.Tensor]):
    """A tensor with a history that may be gone, and its ``place`` in autograd's graph; ``hooked``: it had hooks."""

    __slots__ = ("hooked", "place")
    place: Any
    hooked: bool

    @classmethod
    def of(cls, value: torch.Tensor) -> Freed:
        """Hooks of the program on saved tensors do not see it."""
        assert _saved is not None
        freed = cls(value)
        if _top_hooks(True) is None:
            freed.place = _saved(value, False)
            freed.place.register_hooks(_nothing, list.pop)
        else:
            torch._C._autograd._push_saved_tensors_default_hooks(_nothing, list.pop)
            try:
                freed.place = _saved(value, False)
            finally:
                torch._C._autograd._pop_saved_tensors_default_hooks()
        freed.hooked = bool(value._backward_hooks)
        return freed

    def tensor(self, content: torch.Tensor) -> torch.Tensor | None:
        """``content`` in the place of the tensor; None where the tensor was overwritten since, as torch does not give
        its place away then."""
        self.place.data.append(content)
        try:
            placed: torch.Tensor = self.place.unpack()
        except RuntimeError:
            self.place.data.clear()
            return None
        return placed


def _nothing(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Where ``Freed.tensor`` puts the tensor that is to be given the place."""
    return []
