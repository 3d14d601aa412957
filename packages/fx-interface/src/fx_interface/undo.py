"""All or nothing: a compiled callable that raises has changed none of its inputs and no random generator.

Who calls it may then run the program again from its start, so that every effect up to the failing operation is
seen, and none after it. A callable says so of itself (``all_or_nothing``); of any other, ``undoing`` makes one, at the
price of copies of what it writes to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import torch

from fx_interface.backend import CompiledGraph

RandomStates: TypeAlias = tuple[torch.Tensor, ...]
_C = TypeVar("_C", bound=Callable[..., Any])
_MARK: Final = "all_or_nothing"
_LEFT: Final = "__left_something_behind__"


def all_or_nothing(compiled: _C) -> _C:
    """State of a callable that it leaves nothing behind when it raises; gives it back."""
    setattr(compiled, _MARK, True)
    return compiled


def is_all_or_nothing(compiled: Any) -> bool:
    """Whether a callable says that it leaves nothing behind when it raises."""
    return getattr(compiled, _MARK, False) is True


def has_left_something(error: BaseException) -> bool:
    """Whether, after all, something could not be undone before ``error`` was raised."""
    return getattr(error, _LEFT, False) is True


def random_states() -> RandomStates:
    """The states of torch's generators: the CPU's, and the current GPU's if there is one."""
    cpu = torch.get_rng_state()
    started: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return (cpu, torch.cuda.get_rng_state()) if started else (cpu,)


def set_random_states(states: RandomStates) -> None:
    """Bring torch's generators to what ``random_states`` gave."""
    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state(states[1])


def undoing(run: CompiledGraph, written: Sequence[int], *, draws: bool) -> CompiledGraph:
    """``run``; where it raises, the inputs at ``written`` have their content again, and, with ``draws``, the
    generators their states. A history that autograd has given to a tensor stays: then the exception says so."""

    def run_or_undo(*inputs: Any) -> Sequence[Any]:
        states = random_states() if draws else ()
        before = [_Before(inputs[index]) for index in written]
        try:
            return run(*inputs)
        except BaseException as error:
            if states:
                set_random_states(states)
            restored = [one.restore() for one in before]
            if not all(restored):
                setattr(error, _LEFT, True)
            raise

    return all_or_nothing(run_or_undo)


class _Before:
    """A tensor as it was."""

    __slots__ = ("content", "form", "history", "tensor")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.form = _form(tensor)
        self.history = (tensor.grad_fn, tensor.requires_grad)
        self.content = tensor.detach().clone()

    def restore(self) -> bool:
        """Put the content back; whether the tensor is what it was."""
        tensor = self.tensor
        if tensor.requires_grad and not self.history[1] and not tensor._is_view():
            tensor.detach_()
        if _form(tensor) != self.form or (tensor.grad_fn, tensor.requires_grad) != self.history:
            return False
        with torch.inference_mode(tensor.is_inference()), torch.no_grad():
            tensor.copy_(self.content)
        return True


def _form(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (
        tuple(tensor.shape),
        tensor.stride(),
        tensor.storage_offset(),
        tensor.untyped_storage().data_ptr(),
    )
