"""One model of a suite: how it is made, what it is called with, and what is differentiated in training.

Suites and measuring run with whatever version of the stack is being measured, an older commit's too when bisecting:
they import torch and the standard library, and the stack only through ``fxstack.compile``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

PHASES = ("inference", "training")
_MODEL_SEED, _INPUT_SEED = 1, 2


def loss_of(output: Any) -> Tensor:
    """The scalar to differentiate: the model's own ``loss``, or the mean square of its first floating-point result."""
    loss = getattr(output, "loss", None)
    if isinstance(loss, Tensor):
        return loss
    first = _first_floating(output)
    if first is None:
        raise TypeError("the model returns no floating-point tensor: give its Workload a loss")
    return first.square().mean()


def _first_floating(value: Any) -> Tensor | None:
    if isinstance(value, Tensor):
        return value if value.is_floating_point() else None
    items = (
        value.values() if isinstance(value, Mapping) else value if isinstance(value, (tuple, list)) else ()
    )
    return next((found for found in map(_first_floating, items) if found is not None), None)


class Workload(NamedTuple):
    """A model and its inputs.

    ``make()`` returns the module, with random weights; ``inputs()`` its arguments, a tuple, or a dict for keywords.
    Both are called with torch's generator seeded. ``phases`` says what can be measured, ``loss`` what is
    differentiated, given the module's result.
    """

    name: str
    make: Callable[[], nn.Module]
    inputs: Callable[[], tuple[Any, ...] | dict[str, Any]]
    phases: tuple[str, ...] = PHASES
    loss: Callable[[Any], Tensor] = loss_of

    def build(
        self, phase: str, device: str, dtype: torch.dtype | None = None
    ) -> tuple[nn.Module, tuple[Any, ...], dict[str, Any]]:
        """A fresh module in train or eval mode, and its positional and keyword arguments, the same ones every time.

        With a ``dtype``, floating-point parameters, buffers and inputs have that one. Dropout is switched off in
        training, since masks that differ say nothing of a backend.
        """
        torch.manual_seed(_MODEL_SEED)
        module = self.make().train(phase == "training")
        for part in module.modules():
            if isinstance(part, nn.modules.dropout._DropoutNd):
                part.p = 0.0
        torch.manual_seed(_INPUT_SEED)
        given = self.inputs()
        module = module.to(device=device, dtype=dtype)
        given = _moved(given, device, dtype)
        return (module, (), given) if isinstance(given, dict) else (module, tuple(given), {})


def _moved(value: Any, device: str, dtype: torch.dtype | None) -> Any:
    if isinstance(value, Tensor):
        return value.to(device=device, dtype=dtype if value.is_floating_point() else None)
    if isinstance(value, dict):
        return {key: _moved(item, device, dtype) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(_moved(item, device, dtype) for item in value)
    return value
