"""Guards that the program gives up."""

import pytest
import torch

import dynamo_capture
import fx_guards
from dynamo_capture.driver.optimizer import run_graph
from dynamo_capture.guard_kinds.guard_filter import kept_guards
from fx_interface.source import AttrSource, GlobalSource, ItemSource, LocalSource, Scope

FACTOR = 2


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2.0
        self.norm = torch.nn.LayerNorm(4)

    def forward(self, x):
        return self.norm(x) * self.scale


def _seen(records, scope):
    seen = []

    def keep(entries):
        seen.extend(entries)
        return [True] * len(entries)

    assert kept_guards(records, scope, keep) == list(records)
    return seen


def test_an_entry_says_what_is_guarded_and_where():
    module = Scaled()
    scope = Scope({"x": None, "module": module}, {"FACTOR": 2})
    absent, factor, eps, own = _seen(
        [
            fx_guards.IsObject(LocalSource("x"), None),
            fx_guards.EqualsConstant(GlobalSource("FACTOR"), 2),
            fx_guards.EqualsConstant(AttrSource(AttrSource(LocalSource("module"), "norm"), "eps"), 1e-5),
            fx_guards.EqualsConstant(AttrSource(LocalSource("module"), "scale"), 2.0),
        ],
        scope,
    )
    assert (absent.name, absent.value, absent.has_value, absent.guard_type) == ("x", None, True, "ID_MATCH")
    assert absent.orig_guard.source.is_local()
    assert (factor.is_global, factor.value, factor.guard_type) == (True, 2, "EQUALS_MATCH")
    assert not eps.is_global
    assert eps.orig_guard.source.is_unspecialized_builtin_nn_module()
    assert not own.orig_guard.source.is_unspecialized_builtin_nn_module()
    assert own.orig_guard.source.is_unspecialized_nn_module()
    assert not absent.orig_guard.source.is_unspecialized_nn_module()


def test_what_cannot_be_read_has_no_value():
    (entry,) = _seen([fx_guards.KeyAbsent(ItemSource(LocalSource("x"), 3), "k")], Scope({"x": []}, {}))
    assert not entry.has_value
    assert entry.value is None


def _filtered(function, guard_filter):
    graphs = []

    def backend(graph_module, example_inputs):
        graphs.append(graph_module)
        return run_graph(graph_module, example_inputs)

    return dynamo_capture.optimize(backend, fullgraph=True, guard_filter=guard_filter)(function), graphs


def test_a_guard_that_is_given_up_is_not_checked(monkeypatch):
    compiled, graphs = _filtered(
        lambda x: x * FACTOR, lambda entries: [not entry.is_global for entry in entries]
    )
    x = torch.ones(3)
    assert torch.equal(compiled(x), x * 2)
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert torch.equal(compiled(x), x * 2)
    assert len(graphs) == 1


def test_guards_on_tensors_and_sizes_are_always_kept():
    compiled, graphs = _filtered(lambda x: x + x.shape[0], torch.compiler.skip_all_guards_unsafe)
    for x in (torch.ones(3), torch.ones(3, 2), torch.ones(5, dtype=torch.float64), torch.ones(7)):
        assert torch.equal(compiled(x), x + x.shape[0])
    assert len(graphs) > 2


@pytest.mark.parametrize(
    "name", ["skip_guard_on_inbuilt_nn_modules_unsafe", "skip_guard_on_all_nn_modules_unsafe"]
)
def test_torchs_filters_of_modules(name):
    module = Scaled()
    compiled, graphs = _filtered(module, getattr(torch.compiler, name))
    x = torch.rand(2, 4)
    first = compiled(x)
    module.norm.eps = 1e-2
    assert torch.equal(compiled(x), first)
    module.scale = 3.0
    compiled(x)
    assert len(graphs) == (1 if "all" in name else 2)


@pytest.mark.parametrize("wrong", [lambda entries: [True], lambda entries: 1 / 0])
def test_a_filter_that_does_not_answer_is_named(wrong):
    compiled, _ = _filtered(lambda x: x + 1, wrong)
    with pytest.raises(dynamo_capture.CaptureError, match=r"CAP411.*guard_filter_fn"):
        compiled(torch.ones(3))
