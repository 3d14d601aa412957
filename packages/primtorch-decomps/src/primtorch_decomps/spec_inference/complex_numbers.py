"""Specs of operators on complex numbers whose sizes vary.

No decomposition is written for complex numbers, but sizes and strides do not depend on what the elements are: the
decomposition tells them for real numbers, and the kernel, run once at one size, tells the dtypes and confirms the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import torch
from torch._ops import OpOverload

from fx_interface.symbols import Expr, IntLike, ShapeEnv, Symbol, evaluate
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.spec_inference.fallback import run_for_spec

REAL: Final = {
    torch.complex32: torch.float16,
    torch.complex64: torch.float32,
    torch.complex128: torch.float64,
}
COMPLEX: Final = {real: number for number, real in REAL.items()}


def spec_of_complex(
    op: OpOverload,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    env: ShapeEnv,
    of_real: Callable[[Sequence[Any], Mapping[str, Any]], Any],
) -> Any:
    """The spec of ``op``'s result, with ``of_real`` as what gives it for real numbers.

    ``NotImplemented`` where no size varies, there is no decomposition, or the kernel does not confirm it.
    """
    if not _varies(args) and not _varies(kwargs):
        return NotImplemented
    given = of_real(_mapped(args, _real), _mapped(kwargs, _real))
    if given is NotImplemented:
        return NotImplemented
    values = {atom: _example(atom, env) for atom in env.symbols}

    def at_one_size(leaf: Any) -> Any:
        if isinstance(leaf, TensorSpec):
            sizes, strides = (tuple(number(n) for n in part) for part in (leaf.sizes, leaf.strides))
            return replace(leaf, sizes=sizes, strides=strides)
        return number(leaf) if isinstance(leaf, Expr) else leaf

    def number(value: IntLike) -> int:
        return evaluate(env.simplify(value), values)

    try:
        found = run_for_spec(op, _mapped(args, at_one_size), _mapped(kwargs, at_one_size), ShapeEnv())
    except RuntimeError:  # the sizes of the example do not fit each other
        return NotImplemented
    return _confirmed(given, found, at_one_size)


def _confirmed(given: Any, found: Any, at_one_size: Callable[[Any], Any]) -> Any:
    """What is given with the dtypes of what was found, if they agree on the layout."""
    if isinstance(given, TensorSpec) and isinstance(found, TensorSpec):
        concrete = at_one_size(given)
        if (concrete.sizes, concrete.strides) != (found.sizes, found.strides):
            return NotImplemented
        return replace(given, dtype=found.dtype)
    if not isinstance(given, (list, tuple)) or type(given) is not type(found) or len(given) != len(found):
        return NotImplemented
    parts = [_confirmed(one, other, at_one_size) for one, other in zip(given, found, strict=True)]
    return NotImplemented if NotImplemented in parts else type(given)(parts)


def _example(atom: Symbol, env: ShapeEnv) -> int:
    info = env.symbols[atom]
    if info.hint is not None:
        return info.hint
    most = 2 if info.range.high is None else min(info.range.high, 2)
    return most if info.range.low is None else max(info.range.low, most)


def _real(leaf: Any) -> Any:
    if isinstance(leaf, TensorSpec):
        return replace(leaf, dtype=REAL.get(leaf.dtype, leaf.dtype))
    if isinstance(leaf, complex):
        return leaf.real
    return REAL.get(leaf, leaf) if isinstance(leaf, torch.dtype) else leaf


def _mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(part, function) for part in value)
    if isinstance(value, Mapping):
        return {name: _mapped(part, function) for name, part in value.items()}
    return function(value)


def _varies(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_varies, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_varies, value))
    return isinstance(value, Expr) or (isinstance(value, TensorSpec) and not value.is_static)
