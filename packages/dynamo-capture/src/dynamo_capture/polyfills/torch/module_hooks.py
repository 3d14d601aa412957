"""Backward hooks of modules (``register_full_backward_hook``), as hooks of tensors.

Torch sends a module's inputs and outputs through an identity, and registers hooks of its node. Nothing tells a node's
hook from a hook of the tensor before the identity, if there is one tensor:

    y = Identity(x);  y.grad_fn.register_hook(h)   ->   z = x.clone();  z.register_hook(h);  y = Identity(z.clone())

What the program registers on ``y`` comes first, as it does there, and writing to ``y`` is the error that it is there.
A graph's results that share memory have one history, hence the copies, which are made where nobody can tell them from
the tensor itself (``semantics/tensors/results/hooked_copies.py``). A hook that gives None for the gradient of the
input sends zeros, and a warning tells so. With several tensors the graph ends where it is asked for the node.
"""

from __future__ import annotations

import warnings
from types import FunctionType
from typing import Any

import torch
from torch.nn.modules._functions import BackwardHookFunction
from torch.utils.hooks import BackwardHook

from dynamo_capture.polyfills.registry import substitutes

_ORIGINAL: Any = BackwardHook._apply_on_tensors
_APPLY: Any = FunctionType(_ORIGINAL.__code__, _ORIGINAL.__globals__)
"""The function under another identity, for which no substitute stands."""
_IDENTITY: Any = BackwardHookFunction.apply


_ZEROS = (
    "a backward hook of a module gave None for the gradient of its input: a compiled function sends zeros on, so that "
    "gradients are zeros where without the compiler they are None"
)


class _Hooked:
    """A tensor that takes hooks as the node of an identity does."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def register_hook(self, hook: Any) -> Any:
        def run(gradient: torch.Tensor) -> torch.Tensor | None:
            found = hook((gradient,), (gradient,))
            if found is None:
                return None
            other: torch.Tensor | None = found[0]
            if other is not None:
                return other
            warnings.warn(_ZEROS, stacklevel=2)
            return torch.zeros_like(gradient)

        return self.tensor.register_hook(run)  # type: ignore[no-untyped-call]


def copies_are_made() -> bool:
    """Whether copies stand for the identities. Answered by capture."""
    raise AssertionError("captured")


def note_copies(tensor: torch.Tensor, *copies: torch.Tensor) -> None:
    """Tell capture that in eager all of them show one memory."""
    raise AssertionError("captured")


@substitutes(_ORIGINAL)
def apply_on_tensors(self: Any, fn: Any, args: Any) -> Any:
    """``args``: a module's inputs or outputs; ``fn`` takes what the hooks are registered on. The arguments to go on
    with, and the places of the tensors among them."""
    places = [place for place, arg in enumerate(args) if isinstance(arg, torch.Tensor)]
    if len(places) != 1 or type(args) is not tuple or not torch.is_grad_enabled():
        return _APPLY(self, fn, args)
    place = places[0]
    if not args[place].requires_grad:
        return args, None
    tensor = args[place]
    if copies_are_made():
        hooked = tensor.clone()
        fn(_Hooked(hooked))
        passed = hooked.clone()
        (result,) = _IDENTITY(passed)
        note_copies(tensor, hooked, passed)
    else:
        (hooked,) = _IDENTITY(tensor)
        fn(_Hooked(hooked))
        (result,) = _IDENTITY(hooked)
    return (*args[:place], result, *args[place + 1 :]), places


__all__ = ["apply_on_tensors", "copies_are_made", "note_copies"]
