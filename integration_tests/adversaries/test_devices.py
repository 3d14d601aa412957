"""Programs drawn for another device make all their tensors there; ``meta`` stands for it here."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from random import Random
from typing import Any

import gradient_values
import pytest
import tensors
import torch
from driver import module_of
from torch.overrides import TorchFunctionMode

from fx_interface.conformance.outcomes.describing import tensors_in


class _Devices(TorchFunctionMode):
    """The devices of all that functions of torch give."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.seen |= {tensor.device.type for tensor in tensors_in(result)}
        return result


@pytest.mark.parametrize("draw", [tensors.draw, gradient_values.draw], ids=["tensors", "gradient_values"])
def test_all_tensors_are_of_the_default_device(draw: Callable[[Random], str]) -> None:
    made = 0
    torch.set_default_device("meta")
    try:
        for number in range(60):
            text = draw(Random(f"devices {number}"))
            module = module_of(text, f"<devices {number}>")
            with _Devices() as devices, warnings.catch_warnings(action="ignore"):
                for call in module.CALLS:
                    try:
                        module.program(*call())
                    except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError):
                        continue  # what is refused, or asks for content
                    made += 1
            assert devices.seen <= {"meta"}, text
    finally:
        torch.set_default_device(None)
    assert made > 60


@pytest.mark.parametrize(
    "line",
    ["torch.ones(4, 2).index_select(1, i + 5)", "y[i + 99]", "y.take(i + 99)", "i // 0", "i % (i * 0)"],
)
def test_what_kernels_refuse_of_content_is_told(line: str) -> None:
    program = f"import torch\ndef program(y, i):\n    return ({line},)\n"
    calls = "CALLS = [lambda: (torch.ones(3), torch.tensor([0, 1]))]\n"
    assert tensors.refuses_content(program + calls)
    assert not tensors.refuses_content(program.replace(line, "y[i]") + calls)


def test_no_index_is_refused_elsewhere() -> None:
    def drawn() -> list[str]:
        return [tensors.draw(Random(f"index {number}")) for number in range(120)]

    assert any(map(tensors.refuses_content, drawn()))
    torch.set_default_device("meta")
    try:
        texts = drawn()
    finally:
        torch.set_default_device(None)
    assert not any(map(tensors.refuses_content, texts))
