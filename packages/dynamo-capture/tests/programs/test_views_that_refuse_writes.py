"""Writes to views that autograd does not follow: the program's handlers catch torch's refusal at its line."""

import pytest
import torch
from torch.autograd import Function

from dynamo_capture import optimize
from fx_interface.conformance.outcomes import differences, observe

X = torch.arange(16.0).reshape(4, 4) / 16


def as_it_is(graph_module, example_inputs):
    return graph_module.forward


def of_several_views(x, log):
    return x.unbind()[0].mul_(2)


def view_of_one_of_several(x, log):
    return x.view_as(x).split(2)[1].view(-1).add_(1)


def assigned(x, log):
    x.chunk(2)[0][0] = 1.0


def by_operator(x, log):
    part = x.tensor_split(2)[1]
    part += 1


def of_many_at_once(x, log):
    torch._foreach_mul_(list(x.split(2)), 2)


def copied_to(x, log):
    with torch.no_grad():
        part = x[1:3]
    part.copy_(x[:2])


def made_without_gradients(x, log):
    with torch.no_grad():
        view = x[1:]
    log.append("made")
    return view.t().mul_(2)


def made_in_inference_mode(x, log):
    with torch.inference_mode():
        view = x[1:]
    return view.mul_(2)


def written_with_what_has_a_history(x, log):
    part = torch.ones(4, 4).unbind()[0]
    part.mul_(2)
    log.append(part.tolist())
    return part.add_(x[0])


def without_gradients(x, log):
    with torch.no_grad():
        x.unbind()[0].mul_(2)
    return x.unbind()[1].detach().mul_(2)


PROGRAMS = (
    of_several_views, view_of_one_of_several, assigned, by_operator, of_many_at_once, copied_to,
    made_without_gradients, made_in_inference_mode, written_with_what_has_a_history, without_gradients,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_caught_at_its_line(program):
    def f(x, log):
        x = x * 1 + torch.rand(4, 4)
        log.append("before")
        try:
            log.append(program(x, log))
        except RuntimeError as error:
            log.append(str(error))
        log.append("after")
        return x + 1

    outcomes = []
    for function in (f, optimize(as_it_is)(f)):
        torch.manual_seed(0)
        outcomes.append(observe(function, X.clone().requires_grad_(), [], lines_of=__file__))
    assert not differences(*outcomes)


def test_writes_that_are_followed_stay_in_the_graph():
    def f(x, y):
        part = x.unbind()[0]
        view = y[1:]
        return part.mul_(2), view.mul_(2)

    graphs = []

    def backend(graph_module, example_inputs):
        graphs.append(graph_module)
        return graph_module.forward

    optimize(backend)(f)(X.clone(), X.clone())
    assert len(graphs) == 1
    assert sum(node.target == "mul_" for node in graphs[0].graph.nodes) == 2


class Row(Function):
    @staticmethod
    def forward(ctx, x):
        return x[0]

    @staticmethod
    def backward(ctx, gradient):
        return gradient.expand(4, 4)


def test_a_view_that_a_custom_function_gives():
    def f(x, log):
        row = Row.apply(x * 1)
        log.append(1)
        try:
            row.mul_(2)
        except RuntimeError as error:
            log.append("custom Function" in str(error))
        return row + 1

    outcomes = [
        observe(g, X.clone().requires_grad_(), [], lines_of=__file__) for g in (f, optimize(as_it_is)(f))
    ]
    assert not differences(*outcomes)


def test_a_view_that_an_inlined_custom_function_gives():
    def f(x, log):
        row = Row.apply(torch.ones(4, 4))
        row.mul_(2)
        log.append(1)
        try:
            row.mul_(x[0])
        except RuntimeError as error:
            log.append(str(error))
        return row + x

    outcomes = [
        observe(g, X.clone().requires_grad_(), [], lines_of=__file__) for g in (f, optimize(as_it_is)(f))
    ]
    assert not differences(*outcomes)


class Marked(torch.Tensor):
    pass


def stretched(x):
    views = x.expand(2, *x.shape), x[0]
    x.add_(1)
    x.requires_grad = True
    return views


def in_parts(x):
    parts = x.split(1)
    x.add_(1)
    x.requires_grad_()
    return parts


@pytest.mark.parametrize("program", [stretched, in_parts])
def test_views_of_an_instance_of_a_subclass_know_when_their_base_was_written_to(program):
    def told(view):
        try:
            return view.is_leaf, type(view.grad_fn).__name__, view.mul_(2)
        except RuntimeError as error:
            return str(error)

    def given():
        return torch.Tensor._make_subclass(Marked, torch.ones(2, 2))

    views = optimize(as_it_is)(program)(given())
    assert [told(view) for view in views] == [told(view) for view in program(given())]
    assert {type(view) for view in views} == {Marked}
