"""Options of stock's code generator that have one of ours behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PassedOn:
    """``as_ours``: our options for a value; ``here``: which they are."""

    here: str
    as_ours: Callable[[Any], dict[str, Any]]


def _cache(value: Any) -> dict[str, Any]:
    return {"cache": bool(value)}


def _compiler(value: Any) -> dict[str, Any]:
    commands = [value] if isinstance(value, str) else [one for one in value or () if one]
    return {"compiler": commands[0]} if commands else {}


def _autotune(value: Any) -> dict[str, Any]:
    return {"autotune": True} if value else {}


_MEASURING = PassedOn("`autotune`: on a GPU, choices by measuring are all made, or none", _autotune)
PASSED_ON = {
    "coordinate_descent_tuning": _MEASURING,
    "max_autotune": _MEASURING,
    "max_autotune_gemm": _MEASURING,
    "max_autotune_pointwise": _MEASURING,
    "fx_graph_cache": PassedOn("`cache`: whether artifacts are kept between processes", _cache),
    "guard_filter_fn": PassedOn(
        "`guard_filter_fn`: which guards of a capture are checked; those on tensors and sizes always are",
        lambda value: {"guard_filter_fn": value},
    ),
    "triton.cudagraphs": PassedOn(
        "`cuda_graphs`: graphs on a GPU are recorded as CUDA graphs",
        lambda value: {"cuda_graphs": bool(value)},
    ),
    "cpp.cxx": PassedOn("`compiler`: the first command that is named", _compiler),
}
