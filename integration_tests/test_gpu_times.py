"""Kernels and library calls of graphs on a GPU are timed by its own clock while somebody watches."""

from __future__ import annotations

import json
import threading

import pytest
import torch

import fxstack
from fxstack.observing.summary import rate_of
from inductor_codegen.runtime.watching import watching

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def _program(x, w):
    return torch.softmax(x * 2 + 1, -1).mm(w)


def _arguments(rows=8192):
    return torch.randn(rows, 4096, device="cuda"), torch.randn(4096, 64, device="cuda")


def _measured(run):
    """Milliseconds, the least of some."""
    times = []
    for _ in range(10):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return min(times)


def test_times_are_the_gpus():
    compiled, given = fxstack.compile(_program), _arguments()
    compiled(*given)
    whole = _measured(lambda: compiled(*given))
    with fxstack.recording(times=True) as record:
        for _ in range(10):
            result = compiled(*given)
    assert torch.allclose(result, _program(*given), rtol=1e-3, atol=1e-5)
    data = json.loads(json.dumps(record.data()))
    assert {(step["device"], step["calls"]) for step in data["steps"]} == {("cuda", 10)}
    assert {step["label"].partition(" ")[0].partition("_")[0] for step in data["steps"]} == {
        "kernel",
        "aten::mm",
    }
    least = sum(step["least"] for step in data["steps"]) / 1e3
    assert 0.5 * whole < least < 1.5 * whole
    assert all("in _program" in step["label"] for step in data["steps"])


def test_a_kernels_share_of_a_copy():
    compiled, (x, _) = fxstack.compile(lambda x: x * 2 + 1), _arguments()
    with fxstack.recording(times=True) as record:
        for _ in range(10):
            compiled(x)
    (step,), copied = record.data()["steps"], record.data()["copy_bandwidth"]
    assert step["bytes"] == 2 * x.nbytes
    assert 0.3 < rate_of(step, copied["cuda"]) < 1.5


def test_no_small_kernel_waits_for_the_host_between_its_events():
    compiled = fxstack.compile(lambda x: [torch.sort(x + i)[0] for i in range(4)])
    x = torch.randn(4, device="cuda")
    compiled(x)
    with watching() as times:
        for _ in range(20):
            compiled(x)
    kernels = [time for label, time in times("cuda").items() if label.startswith("kernel_")]
    assert kernels
    assert all(time.least < 10_000 for time in kernels)


def test_graphs_on_both_devices_and_gradients():
    compiled = fxstack.compile(_program)
    x, w = torch.randn(4, 8), torch.randn(8, 2)
    with watching() as times:
        compiled(x, w)
        x, w = x.cuda().requires_grad_(), w.cuda().requires_grad_()
        compiled(x, w).sum().backward()
    assert any("aten::mm" in label for label in times("cpu"))
    assert sum(time.calls for label, time in times("cuda").items() if "aten::mm" in label) == 3


def test_a_call_that_waits_for_the_gpu_inside_goes_on():
    compiled = fxstack.compile(lambda x: (x * 2)[torch.nonzero(x + 1 > 0).flatten()] + 1)
    x = torch.linspace(-3, 3, 100, device="cuda")
    with watching() as times:
        result = compiled(x)
    assert torch.equal(result, (x * 2)[torch.nonzero(x + 1 > 0).flatten()] + 1)
    assert times("cuda")


def test_threads_and_streams():
    compiled, given = fxstack.compile(_program), _arguments(64)
    expected = compiled(*given)
    wrong = []

    def run():
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(20):
                result = compiled(*given)
                torch.cuda.current_stream().synchronize()
                if not torch.equal(result, expected):
                    wrong.append(result)

    torch.cuda.synchronize()
    with watching() as times:
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = times("cuda")
    assert not wrong
    assert {time.calls for time in found.values()} == {80}


def test_what_is_recorded_into_a_graph_is_not_timed():
    compiled, given = fxstack.compile(_program), _arguments(64)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        compiled(*given)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with watching() as times, torch.cuda.graph(graph, stream=stream):
        result = compiled(*given)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(result, compiled(*given))
    assert times("cuda") == {}
