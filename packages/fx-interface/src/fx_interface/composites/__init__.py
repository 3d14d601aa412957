"""Composite functions of torch in terms of operators that take symbolic sizes, for tracers that run them on such.

torch's own code for them fixes sizes, or makes something else of them than eager does. ``COMPOSITES`` gives by torch's
function what does the same with symbolic sizes; without such sizes it calls torch's function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch.nn import functional

from fx_interface.composites.recurrent import lstm
from fx_interface.composites.resampling import interpolate

COMPOSITES: Final[Mapping[Any, Callable[..., Any]]] = {
    functional.interpolate: interpolate,
    torch.lstm: lstm,
}

__all__ = ["COMPOSITES"]
