"""The benchmark of depth says how much of a first call each stage takes, and how long the entries' text is."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import layers
from benchmarks.process import ROOT


@pytest.mark.nightly
def test_stages_add_up_and_entries_do_not_grow_with_layers(tmp_path: Path) -> None:
    few, many = (layers.measure(ROOT, "encoder", number, True, tmp_path) for number in (3, 9))
    for found in (few, many):
        assert sum(found[column] for column in (*layers.STAGES, "C++")) <= found["all"] * 1.01 + 0.01
        assert found["C++"] > 0
    assert many["entries"] < 1.3 * few["entries"]
