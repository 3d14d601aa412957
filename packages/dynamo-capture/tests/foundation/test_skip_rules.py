"""Which code is captured on its own."""

import collections
import contextlib
import gc
import sys

import pytest
import torch

from dynamo_capture import optimize, run_graph
from dynamo_capture.foundation.skip_rules import is_closed, is_worth_capturing
from fx_interface.backend import runs_compiled_code


def _is(function):
    return is_worth_capturing(function.__code__, function.__globals__)


def test_the_programs_own_functions():
    assert _is(_is)
    assert is_worth_capturing(compile("x", "/elsewhere/model.py", "exec"), {"__name__": "elsewhere"})


def test_not_the_machinery_of_python_torch_and_the_stack():
    assert not _is(contextlib.contextmanager)
    assert not _is(
        torch.nn.functional.gelu if hasattr(torch.nn.functional.gelu, "__code__") else torch.compile
    )
    assert not _is(run_graph)
    assert not is_worth_capturing(sys.modules["importlib._bootstrap"]._find_spec.__code__, {})


def test_methods_made_from_a_text_belong_to_the_module_of_their_class():
    point = collections.namedtuple("point", "x y")
    assert not _is(point.__new__)
    made = compile("lambda self: 0", "<string>", "eval")
    assert not is_worth_capturing(made, {"__name__": "torch.fx.node"})
    assert is_worth_capturing(made, {"__name__": "model"})


def test_torchs_modules_are_code_like_the_programs():
    assert _is(torch.nn.Linear.forward)
    assert _is(torch.nn.Module._call_impl)


def test_nothing_is_captured_below_imports_and_running_compiled_code():
    assert is_closed(sys.modules["importlib._bootstrap"]._find_and_load.__code__, {})
    assert not is_closed(_is.__code__, {"__name__": "backend_of_another.runtime"})
    runs_compiled_code("backend_of_another")
    assert is_closed(_is.__code__, {"__name__": "backend_of_another.runtime"})
    assert not is_worth_capturing(_is.__code__, {"__name__": "backend_of_another"})
    assert not is_closed(_is.__code__, globals())
    assert not is_closed(run_graph.__code__, run_graph.__globals__)


def test_what_runs_while_a_module_is_loaded_is_not_captured(tmp_path, monkeypatch):
    (tmp_path / "loaded_in_a_region.py").write_text("def make(x):\n    return [x] * 3\n\n\nITEMS = make(1)\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def f(x):
        __import__("loaded_in_a_region")
        return x + 1

    fast = optimize(lambda graph, inputs: graph.forward)(f)
    assert torch.equal(fast(torch.ones(2)), torch.full((2,), 2.0))
    report = fast.__fxstack_capture__.report
    assert "make" not in {code.co_name for code, _ in (*report.replacements, *report.eager)}


class _Watching:
    def __init__(self):
        self.phases = []

    def note(self, phase):
        self.phases.append(phase)

    def method(self, phase, details):
        self.note(phase)

    def __call__(self, phase, details):
        self.note(phase)


@pytest.mark.parametrize("kind", ["function", "method", "object"])
def test_what_the_garbage_collector_calls_is_not_captured(kind):
    watching = _Watching()

    def function(phase, details):
        watching.note(phase)

    callback = {"function": function, "method": watching.method, "object": watching}[kind]

    def f(x):
        gc.collect()
        return x + 1

    fast = optimize(lambda graph, inputs: graph.forward)(f)
    gc.callbacks.append(callback)
    try:
        assert torch.equal(fast(torch.ones(2)), torch.full((2,), 2.0))
    finally:
        gc.callbacks.remove(callback)
    assert watching.phases[:2] == ["start", "stop"]
    report = fast.__fxstack_capture__.report
    names = {code.co_name for code, _ in (*report.replacements, *report.eager)}
    assert not names & {"function", "method", "__call__", "note"}


def test_not_the_methods_by_which_modules_of_torch_are_objects():
    module = torch.nn.Module
    assert not any(map(_is, (module.__getattr__, module.__setattr__, torch.nn.Sequential.__iter__)))
    assert _is(module.__call__)
