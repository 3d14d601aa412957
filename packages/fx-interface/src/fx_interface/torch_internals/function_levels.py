"""The levels that transforms of ``torch.func`` have open in this thread, and what wraps tensors at them.

Each transform that runs opens a level, and gives its function tensors that are wrapped for it: an operator goes through
the levels, from the innermost one outwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass

_levels: Any = torch._C._functorch
_KINDS = {
    _levels.TransformType.Vmap: "vmap",
    _levels.TransformType.Grad: "grad",
    _levels.TransformType.Jvp: "jvp",
    _levels.TransformType.Functionalize: "functionalize",
}
_RANDOMNESS = {
    _levels.RandomnessType.Error: "error",
    _levels.RandomnessType.Same: "same",
    _levels.RandomnessType.Different: "different",
}


@dataclass(frozen=True, slots=True)
class Level:
    """One level. ``kind``: vmap, grad, jvp or functionalize; ``randomness``: what a vmap says of random numbers."""

    kind: str
    randomness: str = ""

    def __str__(self) -> str:
        return f"{self.kind}({self.randomness})" if self.randomness else self.kind


def open_levels() -> tuple[Level, ...]:
    """The levels that are open now, outermost first."""
    return tuple(_described(one) for one in _levels.get_interpreter_stack() or ())


def _described(interpreter: Any) -> Level:
    kind = _KINDS.get(interpreter.key(), "unknown")
    if kind != "vmap":
        return Level(kind)
    return Level(kind, _RANDOMNESS[_levels.CVmapInterpreterPtr(interpreter).randomness()])


def level_of(tensor: torch.Tensor) -> int:
    """The level that a tensor is wrapped for, counted from 1; 0 or less: it is not wrapped."""
    found: int = _levels.maybe_get_level(tensor)
    return found


def is_wrapped(tensor: torch.Tensor) -> bool:
    """Whether a tensor is wrapped for a level, open or not."""
    return bool(_levels.is_functorch_wrapped_tensor(tensor))


@contextmanager
def levels_aside() -> Iterator[None]:
    """No level is open in a block."""
    aside: list[Any] = []
    try:
        while _levels.peek_interpreter_stack() is not None:
            aside.append(_levels.pop_dynamic_layer_stack())
        yield
    finally:
        for one in reversed(aside):
            _levels.push_dynamic_layer_stack(one)


def without_batches(
    values: Sequence[Any], count: int
) -> tuple[list[Any], tuple[tuple[int | None, ...], ...]]:
    """Values without what the ``count`` levels, all of them ``vmap``s, have wrapped them in; and for each level,
    outermost first, the dimension of each value that is its slices'."""
    dims: list[tuple[int | None, ...]] = []
    plain = list(values)
    for level in range(count, 0, -1):
        of_level: list[int | None] = [None] * len(plain)
        for index, value in enumerate(plain):
            if isinstance(value, torch.Tensor) and _levels.maybe_get_level(value) == level:
                of_level[index] = _levels.maybe_get_bdim(value)
                plain[index] = _levels.get_unwrapped(value)
        dims.insert(0, tuple(of_level))
    return plain, tuple(dims)


def wrapped_again(value: torch.Tensor, levels: Sequence[int]) -> Any:
    """A tensor whose first dimensions are the slices of these levels, as those see it."""
    for level in levels:
        value = _levels._add_batch_dim(value, 0, level)
    return value
