"""Accounting of a step's memory: exact for a program whose allocations are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from fxstack_dashboard.measuring.memory import memory_of_step, peak_of_step

ELEMENTS = 1 << 16


def test_peak_before_and_after_are_exact() -> None:
    def make() -> Callable[[], Any]:
        held = torch.zeros(ELEMENTS)

        def step() -> Any:
            twice = held + held
            return (twice * held).amax()  # three at once: held, twice, their product

        return step

    found = memory_of_step(make)
    assert 4 * ELEMENTS <= found.before < 4 * ELEMENTS + 1000
    assert 12 * ELEMENTS <= found.peak < 12 * ELEMENTS + 1000
    assert found.after - found.before < 1000
    assert peak_of_step(make, "cpu") == found.peak


def test_what_a_step_keeps_for_the_next_one_counts() -> None:
    kept: list[torch.Tensor] = []

    def step() -> Any:
        kept[:] = [torch.zeros(ELEMENTS)]

    found = memory_of_step(lambda: step)
    assert found.before == found.after == 4 * ELEMENTS
    assert found.peak == 8 * ELEMENTS
