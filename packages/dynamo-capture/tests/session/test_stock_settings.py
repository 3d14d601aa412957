"""What a program has told stock's compiler is read where that is loaded; looking loads nothing."""

import builtins
import subprocess
import sys
from types import SimpleNamespace

import torch
import torch._dynamo
import torch.fx.experimental._config

from dynamo_capture import optimize
from dynamo_capture.session.stock_settings import (
    COMES_WITH,
    in_stock_set,
    joins_equal_sizes,
    stock_setting,
    stock_sizes,
    stock_stance,
)


def test_a_flag_counts_where_it_has_been_changed():
    assert stock_setting("recompile_limit", 64) == 64
    with torch._dynamo.config.patch(recompile_limit=3):
        assert stock_setting("recompile_limit", 64) == 3
    assert stock_setting("recompile_limit", 64) == 64
    for name, value in COMES_WITH.items():
        assert getattr(torch._dynamo.config, name) == value


def test_equal_sizes_may_be_equal_by_chance():
    def f(x):
        return x + x.shape[0]

    graphs = []

    def backend(graph_module, example_inputs):
        graphs.append(graph_module)
        return graph_module.forward

    assert joins_equal_sizes()
    for joins in (True, False):
        graphs.clear()
        with torch.fx.experimental._config.patch(use_duck_shape=joins):
            assert joins_equal_sizes() is joins
            fast = optimize(backend, dynamic=True)(f)
            for sizes in ((4, 4), (5, 6), (7, 3)):
                assert torch.equal(fast(torch.ones(sizes)), f(torch.ones(sizes)))
        assert len(graphs) == (2 if joins else 1)


def test_flags_are_as_they_come_while_torch_cannot_answer(monkeypatch):
    """torch's Python reads builtins, which a program may take away."""
    with monkeypatch.context() as patched:
        patched.delattr(builtins, "isinstance")
        told = stock_setting("recompile_limit", 64)
    assert told == 64


def test_stances_marks_and_sets():
    assert stock_stance() == ("default", None)
    with torch.compiler.set_stance("force_eager"):
        assert stock_stance() == ("force_eager", None)
    x = torch.ones(2, 3, 4, 5)
    assert stock_sizes(vars(x)) == ({}, set())
    torch._dynamo.mark_dynamic(x, 0, min=2, max=8)
    torch._dynamo.maybe_mark_dynamic(x, 1)
    torch._dynamo.decorators.mark_unbacked(x, 2)
    torch._dynamo.mark_static(x, 3)
    assert stock_sizes(vars(x)) == ({0: (2, 8), 1: (None, None), 2: (None, None)}, {3})

    def function():
        pass

    assert not in_stock_set("_allowed_callable_ids", function)
    torch.compiler.allow_in_graph(function)
    assert in_stock_set("_allowed_callable_ids", function)


def test_looking_loads_nothing_and_finds_nothing():
    program = (
        "import sys, torch; from dynamo_capture.session.stock_settings import *;"
        "from dynamo_capture import optimize, run_graph; optimize(run_graph)(lambda x: x + 1)(torch.ones(2));"
        "assert stock_stance() == ('default', None) and stock_setting('disable', 5) == 5;"
        "assert not any(name.startswith('torch._dynamo.') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_bound_method_is_not_taken_for_what_had_its_id(monkeypatch):
    class Holder:
        def method(self): ...

    bound = Holder().method
    rules = SimpleNamespace(_disallowed=SimpleNamespace(function_ids={id(bound), id(len)}))
    monkeypatch.setitem(sys.modules, "torch._dynamo.trace_rules", rules)
    assert in_stock_set("_disallowed", len)
    assert not in_stock_set("_disallowed", bound)
