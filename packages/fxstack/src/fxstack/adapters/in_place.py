"""Another compiler under the name ``torch.compile``, for programs that call it where nobody else can."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def in_place(compiler: Callable[..., Any]) -> Iterator[None]:
    """While the block runs, ``torch.compile`` is ``compiler``."""
    stock = torch.compile
    torch.compile = compiler
    try:
        yield
    finally:
        torch.compile = stock
