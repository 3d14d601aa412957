"""Graphs that fail after what cannot be undone, found out on copies."""

import operator

import pytest
import torch
from torch.fx import Graph, GraphModule

from fx_interface.execution.rehearsal import rehearsal_of, rehearsing, shortened, stand_ins
from fx_interface.execution.undo import has_left_something, undoing


def _late(x, w):
    x.mul_(w)
    raise ValueError("late")


def test_what_autograd_would_note_is_not_noted():
    leaf = torch.ones(3, requires_grad=True)
    x = leaf * 1
    history, version = x.grad_fn, x._version
    with pytest.raises(ValueError, match="late") as caught:
        undoing(_late, [0], draws=False, rehearse=rehearsing(_late))(x, leaf)
    assert not has_left_something(caught.value)
    assert x.grad_fn is history
    assert x._version == version
    assert x.tolist() == [1, 1, 1]


def test_what_passes_runs_once_on_the_tensors_themselves():
    seen = []

    def run(x):
        seen.append(x)
        return (x.mul_(2),)

    x = torch.ones(3, requires_grad=True) * 1
    (result,) = undoing(run, [0], draws=False, rehearse=rehearsing(run))(x)
    assert result is x
    assert x.tolist() == [2, 2, 2]
    assert [one is x for one in seen] == [False, True]


def test_random_numbers_are_drawn_once():
    def run(x):
        return (x.mul_(torch.rand(3)),)

    x, y = torch.ones(3) * 1, torch.ones(3) * 1
    torch.manual_seed(3)
    run(x)
    after = torch.rand(1)
    torch.manual_seed(3)
    undoing(run, [0], draws=True, rehearse=rehearsing(run))(y)
    assert torch.equal(x, y)
    assert torch.equal(torch.rand(1), after)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("no_grad", [False, True])
def test_views_stay_views_of_what_they_are_a_part_of(requires_grad, no_grad):
    base = torch.arange(6.0, requires_grad=requires_grad) * 1
    with torch.set_grad_enabled(not no_grad):
        view = base[2:4]
    other, own = stand_ins([base, view], [1])
    assert own._base is other
    assert own.tolist() == [2, 3]
    assert (own.requires_grad, own.is_leaf) == (view.requires_grad, view.is_leaf)
    with torch.no_grad():
        own.zero_()
    assert other.tolist() == [0, 1, 0, 0, 4, 5]
    assert base.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x * 1, lambda x: x.detach()])
def test_stand_ins_have_an_equal_kind_of_history(make):
    x = make(torch.ones(2, 3, requires_grad=True))
    (own,) = stand_ins([x], [0])
    assert (own.requires_grad, own.is_leaf, own.stride()) == (x.requires_grad, x.is_leaf, x.stride())
    assert own.data_ptr() != x.data_ptr()


def test_what_is_not_written_to_is_not_copied():
    x, y = torch.ones(2), torch.ones(2)
    own = stand_ins([x, 3, y], [2])
    assert own[0] is x
    assert own[1] == 3
    assert own[2] is not y


def _graph(function):
    graph = Graph()
    x, index = graph.placeholder("x"), graph.placeholder("i")
    doubled = graph.call_method("mul_", (x, 2))
    shown = graph.call_function(function, (x,))
    found = graph.call_function(operator.getitem, (x, index))
    more = graph.call_function(torch.exp, (found,))
    graph.output((doubled, shown, more))
    return GraphModule(torch.nn.Module(), graph), shown, found


def test_a_graph_ends_with_the_last_operator_that_may_fail():
    module, shown, found = _graph(torch.sin)
    short = shortened(module, found, {shown})
    targets = [node.target for node in short.graph.nodes if node.op.startswith("call")]
    assert targets == ["mul_", operator.getitem]
    with pytest.raises(IndexError):
        short(torch.ones(2), torch.tensor([5]))


def test_what_is_not_torchs_is_not_run_twice():
    module, _, found = _graph(lambda x: x)
    assert rehearsal_of(module) is None
    assert shortened(module, found, ()) is None
