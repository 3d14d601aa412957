"""All or nothing: a compiled callable that raises has changed none of its inputs and no random generator.

Who calls it may then run the program again from its start, so that every effect up to the failing operation is
seen, and none after it. A callable says so of itself (``all_or_nothing``); of any other, ``undoing`` makes one, at the
price of copies of what it writes to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import torch

from fx_interface.backend import CompiledGraph
from fx_interface.execution.rehearsal import Rehearsal

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


def leaves_something(error: BaseException) -> None:
    """Say of ``error`` that what was done before it was raised stands: nobody may run the program again."""
    setattr(error, _LEFT, True)


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


def undoing(
    run: CompiledGraph, written: Sequence[int], *, draws: bool, rehearse: Rehearsal | None = None
) -> CompiledGraph:
    """``run``; where it raises, the inputs at ``written`` have their content again, and, with ``draws``, the
    generators their states. A history that autograd has given to a tensor stays: then the exception says so.
    ``rehearse`` runs before, for graphs that raise after that."""

    def run_or_undo(*inputs: Any) -> Sequence[Any]:
        states = random_states() if draws else ()
        if rehearse is not None:
            try:
                rehearse(inputs, written)
            finally:
                if states:
                    set_random_states(states)
        before = [_Before(inputs[index]) for index in written]
        try:
            return run(*inputs)
        except BaseException as error:
            if states:
                set_random_states(states)
            if all(one.can_be_restored() for one in before):
                for one in before:
                    one.restore()
            else:
                leaves_something(error)
            raise

    return all_or_nothing(run_or_undo)


def undoing_if_shared(
    run: CompiledGraph,
    written: Sequence[int],
    *,
    again: Sequence[int] = (),
    fixed_sizes: bool,
    rehearse: Rehearsal | None = None,
) -> CompiledGraph:
    """As ``undoing`` in calls where torch may refuse a write: to memory that another input, or another element of the
    same one, lies in, or to a view that autograd follows. Other calls are not expected to raise: an exception says
    that something is left behind. ``again``: which of ``written`` are written to more than once. ``fixed_sizes``: all
    calls' inputs have equal sizes and strides. ``rehearse`` runs before where autograd may note one write, and torch
    refuse another."""
    careful = undoing(run, written, draws=False)
    rehearsed = undoing(run, written, draws=False, rehearse=rehearse)
    apart: list[list[int]] = [[]]

    def run_or_undo(*inputs: Any) -> Sequence[Any]:
        tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
        try:
            starts = list(map(torch.Tensor.data_ptr, tensors))
        except RuntimeError:  # tensors without addresses
            starts = []
        if starts != apart[0] or not starts:
            changed = [inputs[index] for index in written]
            if again and _lose_history([inputs[index] for index in again], tensors):
                return rehearsed(*inputs)
            if _may_be_refused(changed, tensors):
                return (rehearsed if _are_noted_and_refused(changed, tensors) else careful)(*inputs)
            if fixed_sizes:
                apart[0] = starts
        try:
            return run(*inputs)
        except BaseException as error:
            leaves_something(error)
            raise

    return all_or_nothing(run_or_undo)


def _may_be_refused(written: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> bool:
    if any(tensor.layout is not torch.strided for tensor in tensors):
        return True
    followed = torch.is_grad_enabled()
    recorded = followed and any(tensor.requires_grad for tensor in tensors)
    counts = Counter(tensor.untyped_storage()._cdata for tensor in tensors)
    return any(
        (tensor._is_view() and (recorded or tensor.requires_grad))
        or (tensor.requires_grad and followed)
        or _overlaps(tensor, counts)
        for tensor in written
    )


def _lose_history(written: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> bool:
    """Whether a first write may give a history to the memory of a view without one: torch takes the view for a leaf
    then, if the write went through another view, and refuses the next one."""
    if not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)):
        return False
    return any(tensor._is_view() and not tensor.requires_grad for tensor in written)


def _are_noted_and_refused(written: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> bool:
    """Whether autograd notes a write to one tensor, for good, and torch may refuse one to another."""
    if len(written) < 2 or not torch.is_grad_enabled():
        return False
    if any(tensor.layout is not torch.strided for tensor in tensors):
        return False
    counts = Counter(tensor.untyped_storage()._cdata for tensor in tensors)
    leaves = [_is_leaf_or_its_view(tensor) for tensor in written]
    noted = any(
        (tensor.requires_grad or tensor._is_view()) and not leaf
        for tensor, leaf in zip(written, leaves, strict=True)
    )
    return noted and (any(leaves) or any(_overlaps(tensor, counts) for tensor in written))


def _overlaps(tensor: torch.Tensor, counts: Mapping[int, int]) -> bool:
    return counts[tensor.untyped_storage()._cdata] > 1 or overlaps_itself(tensor)


def _is_leaf_or_its_view(tensor: torch.Tensor) -> bool:
    base = tensor._base if tensor._is_view() else tensor
    return base is not None and base.requires_grad and base.is_leaf


def overlaps_itself(tensor: torch.Tensor) -> bool:
    """Whether two elements may lie at one place: a dimension does not reach over those with smaller strides."""
    reach = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return True
            reach += stride * (size - 1)
    return False


class _Before:
    """A tensor as it was."""

    __slots__ = ("content", "form", "history", "tensor", "version")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.form = _form(tensor)
        self.history = _history(tensor)
        self.content = _memory(tensor).clone()
        self.version = None if tensor.is_inference() else tensor._version

    def can_be_restored(self) -> bool:
        """Whether autograd has noted nothing of the tensor since, and it has kept its memory."""
        tensor = self.tensor
        if tensor.requires_grad and not self.history[1] and not tensor._is_view():
            tensor.detach_()
        if _history(tensor) != self.history:
            return False
        form = _form(tensor)
        return form == self.form or (form[-1] == self.form[-1] and not tensor.requires_grad)

    def restore(self) -> None:
        """Put form, content and version back."""
        tensor = self.tensor
        with torch.inference_mode(tensor.is_inference()), torch.no_grad():
            if _form(tensor) != self.form:
                tensor.as_strided_(*self.form[:3])
            _memory(tensor).copy_(self.content)
        if self.version is not None:
            torch._C._autograd._unsafe_set_version_counter((tensor,), (self.version,))


def _history(tensor: torch.Tensor) -> tuple[object, bool]:
    """What autograd has noted: of a view, in its base. The view's own node is made anew after each write to it."""
    with torch._C.DisableTorchFunctionSubclass():  # the base may be of a class of the program
        base = tensor._base if tensor._is_view() else None
        return (tensor if base is None else base).grad_fn, tensor.requires_grad


def _memory(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or all memory that it spans where several elements lie at one place."""
    if tensor.layout is not torch.strided or not overlaps_itself(tensor):
        return tensor.detach()
    spanned = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.detach().as_strided((spanned,), (1,))


def _form(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (
        tuple(tensor.shape),
        tensor.stride(),
        tensor.storage_offset(),
        tensor.untyped_storage().data_ptr(),
    )
