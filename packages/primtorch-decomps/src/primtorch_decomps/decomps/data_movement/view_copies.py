"""Views that are asked for as copies: the view's primitives, in fresh row-major memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.decomps.data_movement import views
from primtorch_decomps.prims import PrimTensor, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.rules.data_movement import views as rules

_COPIES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "alias_copy.default": (views.alias, rules.alias),
    "detach_copy.default": (views.alias, rules.alias),
    "permute_copy.default": (views.permute, rules.permute),
    "transpose_copy.int": (views.transpose, rules.transpose),
    "t_copy.default": (views.t, rules.t),
    "expand_copy.default": (views.expand, rules.expand),
    "squeeze_copy.default": (views.squeeze, rules.squeeze),
    "squeeze_copy.dim": (views.squeeze_dims, rules.squeeze_dims),
    "squeeze_copy.dims": (views.squeeze_dims, rules.squeeze_dims),
    "unsqueeze_copy.default": (views.unsqueeze, rules.unsqueeze),
    "slice_copy.Tensor": (views.slice, rules.slice),
    "select_copy.int": (views.select, rules.select),
    "diagonal_copy.default": (views.diagonal, rules.diagonal),
    "unfold_copy.default": (views.unfold, rules.unfold),
    "split_copy.Tensor": (views.split, rules.split),
    "split_with_sizes_copy.default": (views.split_with_sizes, rules.split_with_sizes),
    "unbind_copy.int": (views.unbind, rules.unbind),
}
"""Operator, the view's decomposition and its spec rule."""


def _fresh(value: Any) -> Any:
    if isinstance(value, list):
        return [_fresh(item) for item in value]
    if isinstance(value, PrimTensor):
        return ops.clone(value)
    return TensorSpec(value.sizes, contiguous_strides(value.sizes), value.dtype, value.device)


def _copying(view: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(view)
    def copied(*args: Any, **kwargs: Any) -> Any:
        return _fresh(view(*args, **kwargs))

    return copied


def _rule(rule: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(rule)
    def copied(*args: Any, env: ShapeEnv, **kwargs: Any) -> Any:
        return _fresh(rule(*args, env=env, **kwargs))

    return copied


for _name, (_view, _view_rule) in _COPIES.items():
    decomposes(f"aten.{_name}", rule=_rule(_view_rule))(_copying(_view))
