"""Torch's Python functions that warn: the warning is the program's, and belongs to a line of it.

While a function is tried on tensors without data a warning goes nowhere. The trace follows into a function that gave
one instead of recording a call of it: what it says is then said once in each run, about the right line.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable
from typing import Any

from fx_interface.composites import COMPOSITES

_SAYING = frozenset({"warnings", "_get_softmax_dim", "_Reduction"})
"""Names that the code of such a function mentions; the second is torch's own function that does, the third a module
with such functions."""


class Heard:
    """Stands for the module ``warnings``."""

    def __init__(self) -> None:
        self.anything = False

    def warn(self, *args: Any, **kwargs: Any) -> None:
        """Note that there was a warning."""
        self.anything = True

    def __getattr__(self, name: str) -> Any:
        return getattr(warnings, name)


def listening(function: Callable[..., Any]) -> tuple[Callable[..., Any], Heard]:
    """``function`` with its warnings going to what is returned beside it; itself, if it has none to give."""
    heard = Heard()
    if not isinstance(function, types.FunctionType) or function in COMPOSITES:
        return function, heard
    if _SAYING.isdisjoint(function.__code__.co_names):
        return function, heard
    names = {**function.__globals__, "warnings": heard}
    for name in _SAYING:
        inner = names.get(name)
        if isinstance(inner, types.FunctionType):
            names[name] = _with_names(inner, names)
        elif isinstance(inner, types.ModuleType):
            names[name] = _module_with(inner, heard)
    return _with_names(function, names), heard


def _module_with(module: types.ModuleType, heard: Heard) -> types.SimpleNamespace:
    """The functions of a module, whose warnings go to ``heard``."""
    names = {**vars(module), "warnings": heard}
    names |= {
        name: _with_names(value, names)
        for name, value in vars(module).items()
        if isinstance(value, types.FunctionType)
    }
    return types.SimpleNamespace(**names)


def _with_names(function: types.FunctionType, names: dict[str, Any]) -> types.FunctionType:
    made = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made
