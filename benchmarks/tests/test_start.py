"""The benchmark of starting measures a cold and a warm call."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers", reason="the benchmarks' models come from transformers")

from benchmarks import start
from benchmarks.process import ROOT


@pytest.mark.nightly
def test_a_warm_call_costs_less_than_a_cold_one() -> None:
    found = start.least([ROOT], ["mlp"], training=True, rounds=1)
    assert found["mlp"].keys() == set(start.PHASES)
    assert 0 < found["mlp"]["import"][0] < found["mlp"]["import + warm"][0]
    assert found["mlp"]["warm"][0] < found["mlp"]["cold"][0]
