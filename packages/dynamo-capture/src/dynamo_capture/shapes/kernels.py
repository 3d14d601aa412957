"""What an operator in place refuses and no rule tells: its kernel is asked, on small tensors.

x.cumsum_(0)    of a bool ``x``: there is no such kernel, although ``x.cumsum(0)`` makes integers
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Final

import torch
from torch._ops import OpOverload

from dynamo_capture.shapes.inferring import Inferring
from fx_interface.symbols import Expr, ShapeEnv
from fx_interface.tensor_spec import TensorSpec

LARGEST: Final = 1 << 12
"""Elements of the tensors that a kernel is asked about in their own sizes. Of larger ones only the dtypes are told."""


def ask_kernel(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Raise what the kernel of ``func`` raises for such tensors on a CPU, whether they hold zeros or ones.

    What it draws does not count.
    """
    env = inference.env
    draws = torch.Tag.nondeterministic_seeded in func.tags
    given = [inference.plain(arg) for arg in (*args, *kwargs.values())]
    if draws:
        given = [None if isinstance(value, torch.Generator) else value for value in given]
    specs = _specs(given)
    if any(spec.device.type != "cpu" for spec in specs):
        return
    sizes = [size for spec in specs for size in spec.sizes]
    if any(env.is_from_data(size) for size in sizes):
        return
    whole = sum(prod(map(env.hint, spec.sizes)) for spec in specs) <= LARGEST
    state = torch.get_rng_state() if draws else None
    try:
        refusal = _refusal(func, given, tuple(kwargs), env, whole)
    finally:
        if state is not None:
            torch.set_rng_state(state)
    if isinstance(refusal, NotImplementedError):
        raise refusal
    if refusal is not None and whole:
        for size in sizes:
            env.specialize(size)
        raise refusal


def check_kernel(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Raise where a CPU has no kernel of ``func`` for these dtypes, which is asked once: ``x.lcm_(y)`` of floats."""
    given = [inference.plain(arg) for arg in (*args, *kwargs.values())]
    specs = _specs(given)
    drawn = torch.Tag.nondeterministic_seeded in func.tags
    by_data = any(inference.env.is_from_data(size) for spec in specs for size in spec.sizes)
    if drawn or by_data or any(spec.device.type != "cpu" for spec in specs):
        return
    key = (func, *(value.dtype if isinstance(value, TensorSpec) else type(value) for value in given))
    if key not in _LACKING:
        refusal = _refusal(func, given, tuple(kwargs), inference.env, False)
        _LACKING[key] = str(refusal) if isinstance(refusal, NotImplementedError) else None
    lacking = _LACKING[key]
    if lacking is not None:
        raise NotImplementedError(lacking)


_LACKING: dict[Any, str | None] = {}
"""By operator and dtypes: what torch says where it has no kernel."""


def _refusal(
    func: OpOverload, given: list[Any], names: tuple[str, ...], env: ShapeEnv, whole: bool
) -> Exception | None:
    first: Exception | None = None
    for fill in (torch.zeros, torch.ones):
        values = [_real(value, fill, env, whole) for value in given]
        positional, named = values[: len(values) - len(names)], values[len(values) - len(names) :]
        try:
            with torch._C._DisableTorchDispatch(), torch.no_grad():
                func(*positional, **dict(zip(names, named, strict=True)))
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            first = first or error
        else:
            return None
    return first


def _specs(values: list[Any]) -> list[TensorSpec]:
    found = []
    for value in values:
        if isinstance(value, TensorSpec):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _specs(list(value))
    return found


def _real(value: Any, fill: Callable[..., torch.Tensor], env: ShapeEnv, whole: bool) -> Any:
    match value:
        case TensorSpec():
            sizes = map(env.hint, value.sizes)
            return fill([size if whole else min(size, 2) for size in sizes], dtype=value.dtype)
        case Expr():
            return env.hint(value)
        case list() | tuple():
            return type(value)(_real(item, fill, env, whole) for item in value)
    return value
