"""Steps of compiled graphs by time, and how fast memory is copied."""

from __future__ import annotations

from types import SimpleNamespace

from fxstack.observing.times import copy_bandwidth, step_entries


def _time(calls, total, least):
    return SimpleNamespace(calls=calls, total=total, least=least)


def test_the_longest_come_first_each_with_its_device():
    times = {
        "cpu": {"kernel_a": _time(2, 4000, 1000)},
        "cuda": {"kernel_a": _time(1, 9000, 9000), "aten::mm": _time(1, 500, 500)},
    }
    launches = [{"label": "kernel_a", "read": 24, "written": 8}]
    assert step_entries(times.__getitem__, launches) == [
        {"label": "kernel_a", "device": "cuda", "calls": 1, "total": 9.0, "least": 9.0, "bytes": 32},
        {"label": "kernel_a", "device": "cpu", "calls": 2, "total": 4.0, "least": 1.0, "bytes": 32},
        {"label": "aten::mm", "device": "cuda", "calls": 1, "total": 0.5, "least": 0.5, "bytes": None},
    ]


def test_bytes_are_unknown_where_launches_of_other_sizes_share_a_label():
    launches = [
        {"label": "kernel_a", "read": 24, "written": 8},
        {"label": "kernel_a", "read": 48, "written": 8},
        {"label": "kernel_b", "read": None, "written": 8},
    ]
    times = {"cpu": {"kernel_a": _time(2, 2, 1), "kernel_b": _time(2, 2, 1)}, "cuda": {}}
    assert [entry["bytes"] for entry in step_entries(times.__getitem__, launches)] == [None, None]


def test_a_copy_moves_more_than_a_gigabyte_a_second():
    assert copy_bandwidth("cpu") > 1e9
