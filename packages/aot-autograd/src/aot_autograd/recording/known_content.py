"""The content of values that follow from no input: what a program computes from numbers alone is known while tracing.

Torch's composite operators ask for such content, as the covariance asks whether its divisor is positive.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import _disable_current_modes

from aot_autograd.recording.record import is_random
from aot_autograd.recording.values import Value
from fx_interface.symbols import Expr
from fx_interface.tensor_spec import TensorSpec

_LARGEST: Final = 1024
"""Elements of the largest tensor that is computed while tracing."""


class _Unknown(Exception):
    """An input, a random number, a size that varies, or too much to compute."""


def answer(op: OpOverload, args: Any) -> Any:
    """``op`` of recorded values, computed now; None if what it asks for is not known."""
    try:
        with _disable_current_modes(), torch.no_grad():
            return op(*(_known(arg) for arg in args))
    except _Unknown:
        return None


def _known(item: Any) -> Any:
    if isinstance(item, Value):
        return _computed(item)
    if isinstance(item, list | tuple):
        return type(item)(_known(part) for part in item)
    if isinstance(item, Expr):
        raise _Unknown
    return item


def _computed(value: Value) -> torch.Tensor:
    spec = value.spec
    small = isinstance(spec, TensorSpec) and spec.is_static and _count(spec.sizes) <= _LARGEST
    if value.is_input or not small or not isinstance(value.op, OpOverload) or is_random(value.op):
        raise _Unknown
    keywords = {name: _known(arg) for name, arg in value.kwargs.items()}
    made: torch.Tensor = value.op(*(_known(arg) for arg in value.args), **keywords)
    return made


def _count(sizes: Any) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total
