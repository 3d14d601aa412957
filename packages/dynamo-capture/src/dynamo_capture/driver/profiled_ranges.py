"""Ranges of ``torch.profiler`` for what is compiled: functions and graphs, by the function's name and line."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from types import CodeType
from typing import Any

import torch
from torch import nn
from torch.autograd import profiler

from dynamo_capture import _eval_frame
from dynamo_capture._eval_frame import RegionFunction

_NAME = "__fxstack_range__"


def name_range(region: RegionFunction, name: str) -> None:
    """Calls of ``region`` are shown as ``name``."""
    setattr(region, _NAME, name)


def shown_function(function: Callable[..., Any], name: str | None) -> str:
    """A compiled function as a profiler shows it: ``scaled (model.py:12)``. ``name``: what its user calls it."""
    known = name or getattr(function, "__qualname__", type(function).__qualname__)
    return f"{known}{_place(code_of(function))}"


def code_of(function: Callable[..., Any]) -> CodeType | None:
    """The code that calling a function, module or other object runs, as its class has it; None where it has none."""
    code = getattr(type(function).forward if isinstance(function, nn.Module) else function, "__code__", None)
    if code is None:
        code = getattr(type(function).__call__, "__code__", None)
    return code if inspect.iscode(code) else None


def shown_code(code: CodeType) -> str:
    """The code that a graph is of, as a profiler shows it."""
    return f"{code.co_qualname}{_place(code)}"


def _place(code: CodeType | None) -> str:
    return f" ({os.path.basename(code.co_filename)}:{code.co_firstlineno})" if code is not None else ""


def _begin(region: RegionFunction) -> Any:
    name = getattr(region, _NAME, None)
    if name is None:
        return None
    shown = torch._C._profiler._RecordFunctionFast(name)
    shown.__enter__()
    return shown


_eval_frame.watch_profiler(vars(profiler), "_is_profiler_enabled", _begin)
