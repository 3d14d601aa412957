"""The benchmark of the capture layer's cost measures each figure."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers", reason="the benchmarks' models come from transformers")

from benchmarks import cost
from benchmarks.process import ROOT


@pytest.mark.nightly
def test_each_figure_is_measured() -> None:
    found = cost.least([ROOT], rounds=1)
    assert found.keys() == cost.FIGURES.keys()
    assert 0 < found["guards, us"][0] < found["100 layers, us"][0] < found["capture, ms"][0]
    assert found["function calls"][0] > 10_000
