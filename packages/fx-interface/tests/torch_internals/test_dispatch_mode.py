"""A mode that sees operators."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from fx_interface.torch_internals.dispatch_mode import DispatchMode, is_described


class Doubling(DispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def dispatch(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        self.seen.append(str(func))
        return func(*args, **kwargs) * 2


def test_operators_are_handed_over_below_autograd_and_the_handler_runs_outside() -> None:
    x = torch.ones(2, requires_grad=True)
    with Doubling() as mode:
        y = torch.add(x, x, alpha=3)
    assert mode.seen == ["aten.add.Tensor"]
    assert torch.equal(y, torch.full((2,), 8.0))
    assert y.requires_grad


def test_what_describes_operators() -> None:
    assert not is_described()
    with Doubling():
        assert is_described()
    with torch._C._DisableTorchDispatch():  # type: ignore[attr-defined]
        assert is_described()
    with FlopCounterMode(display=False):
        assert not is_described()


PROGRAM = """
import sys, torch
from fx_interface.torch_internals.dispatch_mode import DispatchMode
class Passing(DispatchMode):
    def dispatch(self, func, args, kwargs):
        return func(*args, **kwargs)
with Passing():
    torch.ones(2) + 1
assert "torch._dynamo" not in sys.modules
"""


def test_the_first_operator_does_not_load_torchs_compiler() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
