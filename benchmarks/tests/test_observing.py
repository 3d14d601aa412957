"""The benchmark of listeners counts events and measures each listener."""

from __future__ import annotations

from benchmarks import observing


def test_each_listener_is_measured() -> None:
    found = observing.measure("mlp", rounds=1)
    assert found["seconds"].keys() == {"nobody", "logs", "record"}
    assert all(0 < own < whole for own, whole in found["seconds"].values())
    assert found["events"] > 10
    assert found["unheard"] < 0.001 * found["seconds"]["nobody"][0]
