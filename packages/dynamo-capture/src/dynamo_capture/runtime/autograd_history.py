"""What torch's record of operations on stand-ins says: which tensors it keeps, and what results depend on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch


class Histories:
    """The histories of ``results`` back to the tensors ``ends``."""

    def __init__(self, results: Sequence[torch.Tensor], ends: Sequence[torch.Tensor]) -> None:
        self._held: list[Any] = []
        self._saved: set[Any] = set()
        self._ends = {_key(end) for end in ends}
        reached = [self._walk(result.grad_fn) for result in results]
        self.are_alike = all(found == reached[0] for found in reached)

    def keeps(self, tensor: Any) -> bool:
        """Whether torch keeps the tensor for the gradients, so that it may not be changed."""
        return isinstance(tensor, torch.Tensor) and _key(tensor) in self._saved

    def _walk(self, function: Any) -> set[Any]:
        """The ends that a history leads to."""
        seen, pending, found = {function}, [function], set()
        while pending:
            step = pending.pop()
            self._held.append(step)
            leaf = getattr(step, "variable", None)
            key = step if leaf is None else id(leaf)
            if key in self._ends:
                found.add(key)
                continue
            self._saved.update(map(_key, self._tensors_of(step)))
            for following, _ in step.next_functions:
                if following is not None and following not in seen:
                    seen.add(following)
                    pending.append(following)
        return found

    def _tensors_of(self, step: Any) -> Iterator[torch.Tensor]:
        for name in dir(step):
            if name.startswith("_saved_"):
                held = getattr(step, name)
                self._held.append(held)
                for value in held if isinstance(held, (tuple, list)) else (held,):
                    if isinstance(value, torch.Tensor):
                        yield value


def _key(tensor: torch.Tensor) -> Any:
    """What tells a tensor from others: the operation that gave it, or itself."""
    return id(tensor) if tensor.grad_fn is None else tensor.grad_fn
