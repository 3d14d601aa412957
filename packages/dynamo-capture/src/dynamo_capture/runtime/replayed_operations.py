"""Operations that autograd followed while they were captured, run once more by torch.

For gradients that no graph was made for: of another class than expected, of some of the results only, or second ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operand:
    """The place of a value among the inputs and what the operations have given so far."""

    index: int


@dataclass(frozen=True, slots=True)
class Step:
    """``function(*args, **kwargs)``, in which each ``Operand`` stands for a value."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Replayed:
    """The operations, which of the inputs require grad, and which values the results are."""

    steps: tuple[Step, ...]
    trained: tuple[int, ...]
    results: tuple[int, ...]

    def gradients(self, inputs: Sequence[Any], arriving: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients of the trained inputs, differentiable themselves where gradients are on."""
        again = torch.is_grad_enabled()
        values = self._apart(inputs, again)
        with torch.enable_grad(), torch._C.DisableTorchFunctionSubclass():
            for step in self.steps:
                made = step.function(*_filled(step.args, values), **_filled(step.kwargs, values))
                values += tensors_in(made)
            pairs = [
                (values[i], gradient)
                for i, gradient in zip(self.results, arriving, strict=True)
                if gradient is not None
            ]
        if not pairs:
            return (None,) * len(self.trained)
        with torch._C.DisableTorchFunctionSubclass():
            return torch.autograd.grad(
                [result for result, _ in pairs],
                [values[i] for i in self.trained],
                [gradient for _, gradient in pairs],
                create_graph=again,
                allow_unused=True,
            )

    def _apart(self, inputs: Sequence[Any], again: bool) -> list[Any]:
        """The inputs, where one that was computed from another is not differentiated through."""
        values = list(inputs)
        computed = [i for i in self.trained if values[i].grad_fn is not None]
        with torch.enable_grad(), torch._C.DisableTorchFunctionSubclass():
            for i in self.trained if again and computed else computed:
                value = values[i]
                values[i] = value.view_as(value) if again else value.detach().requires_grad_()
        return values


def tensors_in(made: Any) -> list[Any]:
    """The tensors that an operation gives, in order."""
    if isinstance(made, (tuple, list)):
        return [tensor for item in made for tensor in tensors_in(item)]
    return [made] if isinstance(made, torch.Tensor) else []


def _filled(template: Any, values: Sequence[Any]) -> Any:
    match template:
        case Operand(index):
            return values[index]
        case tuple():
            return tuple(_filled(item, values) for item in template)
        case list():
            return [_filled(item, values) for item in template]
        case dict():
            return {name: _filled(item, values) for name, item in template.items()}
        case slice():
            return slice(
                *(_filled(bound, values) for bound in (template.start, template.stop, template.step))
            )
    return template
