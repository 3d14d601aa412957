from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch

import fxstack
from fxstack import recording
from fxstack.observing.summary import rate_of, summary


def _program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ y) + 1


def _recorded(*sizes: int, grad: bool = False) -> dict[str, Any]:
    compiled = fxstack.compile(_program)
    with recording() as record:
        for size in sizes:
            compiled(torch.ones(size, 5, requires_grad=grad), torch.ones(5, 6))
    made: dict[str, Any] = json.loads(json.dumps(record.data()))
    return made


def test_each_stage_of_a_training_graph_has_its_role() -> None:
    data = _recorded(4, grad=True)
    (frame,) = data["frames"]
    where = [__file__, _program.__code__.co_firstlineno, "_program"]
    assert (frame["where"], frame["earlier"], frame["outcome"]) == (where, 0, "compiled")
    assert [(graph["dialect"], graph["role"]) for graph in data["graphs"]] == [
        ("torch", "captured"),
        ("aten", "forward"),
        ("aten", "backward"),
        ("prims", "forward"),
        ("prims", "backward"),
    ]
    assert {launch["role"] for launch in data["launches"]} == {"forward", "backward"}
    for name in ("graphs", "launches", "calls", "guards", "cache"):
        assert {entry["frame"] for entry in data[name]} == {frame["frame"]}


def test_nodes_name_their_inputs_and_lines() -> None:
    captured, *_ = _recorded(4)["graphs"]
    names = [node[0] for node in captured["nodes"]]
    relu = captured["nodes"][names.index("relu")]
    assert relu[1:3] == ["relu", "float32[4, 6]"]
    assert [names[number] for number in relu[3]] == ["matmul"]
    assert relu[4] == [__file__, _program.__code__.co_firstlineno + 1, "_program"]


def test_kernels_have_text_traffic_and_lines() -> None:
    data = _recorded(4)
    (launch,) = data["launches"]
    assert (launch["read"], launch["written"], launch["loops"]) == (96, 96, "24")
    assert any(f"{__file__}:{_program.__code__.co_firstlineno + 1}" in origin for origin in launch["origins"])
    assert launch["kernel"] in data["kernels"][launch["kernel"]]
    assert [call["operator"] for call in data["calls"]] == ["aten.mm.default"]
    assert (data["steps"], data["copy_bandwidth"]) == ([], {})


def test_times_of_steps_are_kept_where_they_are_asked_for() -> None:
    compiled = fxstack.compile(_program)
    arguments = torch.ones(4, 5), torch.ones(5, 6)
    with recording(times=True) as record:
        for _ in range(3):
            compiled(*arguments)
    compiled(*arguments)
    data = json.loads(json.dumps(record.data()))
    (launch,), (call,) = data["launches"], data["calls"]
    steps = {step["label"]: step for step in data["steps"]}
    assert steps.keys() == {launch["label"], call["label"]}
    assert {(step["calls"], step["device"]) for step in steps.values()} == {(3, "cpu")}
    assert list(data["copy_bandwidth"]) == ["cpu"]
    assert all(0 < 3 * step["least"] <= step["total"] * (1 + 1e-9) for step in steps.values())
    assert (steps[launch["label"]]["bytes"], steps[call["label"]]["bytes"]) == (192, None)
    assert [step["total"] for step in data["steps"]] == sorted(
        (step["total"] for step in data["steps"]), reverse=True
    )
    assert f"aten::mm ({Path(__file__).name}:{_program.__code__.co_firstlineno + 1} in _program)" in summary(
        data
    )


def test_a_share_of_a_copy_needs_bytes_a_time_and_the_copy() -> None:
    step = {"bytes": 1000, "least": 2.0}
    assert rate_of(step, 1e9) == pytest.approx(0.5)
    assert rate_of(step | {"bytes": None}, 1e9) is None
    assert rate_of(step | {"least": 0.0}, 1e9) is None
    assert rate_of(step, None) is None


def test_a_size_that_varies_counts_as_seen() -> None:
    data = _recorded(4, 7)
    assert [(launch["loops"], launch["read"]) for launch in data["launches"]] == [("24", 96), ("6*s0", 168)]
    (again,) = data["recompiles"]
    assert [(cause["expression"], cause["old"], cause["new"]) for cause in again["causes"]] == [
        ("x", "sizes [4, 5]", "[7, 5]")
    ]
    assert again["frame"] == data["frames"][1]["frame"]


def test_guards_are_a_tree_with_times() -> None:
    (guards,) = _recorded(4)["guards"]
    assert guards["nanoseconds"] > 0
    reads = {root["reads"]: root for root in guards["roots"]}
    assert reads["x"]["guards"][0][0].startswith("tensor_match")
    assert sum(root["count"] for root in guards["roots"]) + len(guards["relations"]) == guards["count"]
    assert all(root["nanoseconds"] > 0 for root in guards["roots"])


def test_spans_lie_within_their_parents() -> None:
    spans = {span["number"]: span for span in _recorded(4)["spans"]}
    kinds = {span["kind"] for span in spans.values()}
    assert kinds >= {
        "frame",
        "trace",
        "backend",
        "joint",
        "decompose",
        "lower",
        "schedule",
        "compile",
        "guards",
    }
    for span in spans.values():
        if span["parent"] is not None:
            outer = spans[span["parent"]]
            assert outer["start"] <= span["start"] <= span["end"] <= outer["end"]


def test_no_tensor_and_no_graph_is_kept() -> None:
    x = torch.ones(4, 5)
    kept = weakref.ref(x)
    compiled = fxstack.compile(_program)
    with recording() as record:
        compiled(x, torch.ones(5, 6))
    del x, compiled
    fxstack.reset()
    gc.collect()
    assert kept() is None
    assert record._roles == {}


def test_what_follows_the_record_is_not_in_it() -> None:
    compiled = fxstack.compile(_program)
    with recording() as record:
        pass
    compiled(torch.ones(4, 5), torch.ones(5, 6))
    assert record.data()["frames"] == []
    assert summary(record.data()).startswith("nothing was compiled")
