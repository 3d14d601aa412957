"""Writes that torch refuses: the effects before them are the program's, each once, and the exception is raised at its line."""

import pytest
import torch

from dynamo_capture import optimize
from fx_interface.conformance.outcomes import differences, observe

X = torch.ones(2, 2)


def as_it_is(graph_module, example_inputs):
    return graph_module.forward


def over_a_part(x, log):
    x.mul_(2)
    log.append(1)
    torch.mul(x, 2, out=x.t())


def expanded(x, log):
    x.mul_(2)
    log.append(1)
    x[0, 0].expand(3).add_(1)


def of_another_dtype(x, log):
    x.mul_(2)
    log.append(1)
    (x > 0).clamp_(0, 1)


def fractions_to_integers(x, log):
    x.mul_(2)
    log.append(1)
    x.long().add_(1.5)


def of_more_elements(x, log):
    x.mul_(2)
    log.append(1)
    x[0].add_(x)


def after_another_form(x, log):
    x.t_()
    log.append(1)
    x[torch.tensor([5])] = 0


def out_without_a_kernel(x, log):
    x.mul_(2)
    log.append(1)
    torch.arange(4, out=x > 0)


def random_numbers_without_a_kernel(x, log):
    x.mul_(2)
    log.append(1)
    (x > 0).normal_()


PROGRAMS = (
    out_without_a_kernel,
    random_numbers_without_a_kernel,
    over_a_part,
    expanded,
    of_another_dtype,
    fractions_to_integers,
    of_more_elements,
    after_another_form,
)


def test_a_range_of_a_size_that_varies():
    def f(x, log):
        log.append(1)
        x.mul_(2)
        return torch.arange(x.numel(), out=x > 0)

    run = optimize(as_it_is)(f)
    for count in (3, 4, 5):
        outcomes = [observe(g, torch.ones(count), [], lines_of=__file__) for g in (f, run)]
        assert not differences(*outcomes)


@pytest.mark.parametrize("program", PROGRAMS)
def test_effects_before_a_refused_write(program):
    expected = observe(program, X.clone(), [], lines_of=__file__)
    actual = observe(optimize(as_it_is)(program), X.clone(), [], lines_of=__file__)
    assert not differences(expected, actual)


def test_an_input_that_shares_memory_with_another():
    def f(x, y, log):
        x.mul_(2)
        log.append(1)
        y.add_(x)

    run = optimize(as_it_is)(f)
    for parts in ((slice(0, 2), slice(2, 4)), (slice(0, 3), slice(1, 4))):
        outcomes = []
        for function in (f, run):
            base = torch.arange(4.0)
            outcomes.append(observe(function, *(base[part] for part in parts), [], lines_of=__file__))
        assert not differences(*outcomes)


def test_a_view_of_a_leaf():
    def f(x, log):
        y = x.view(-1)
        log.append(1)
        y.zero_()

    run = optimize(as_it_is)(f)
    for trained in (False, True):
        outcomes = [observe(g, X.clone().requires_grad_(trained), [], lines_of=__file__) for g in (f, run)]
        assert not differences(*outcomes)


def test_a_view_of_a_leaf_behind_a_write_that_autograd_notes():
    def f(x, y, log):
        x.mul_(2)
        log.append(1)
        y.zero_()

    run = optimize(as_it_is)(f)
    for trained in (False, True):
        outcomes = []
        for function in (f, run):
            leaf = X.clone().requires_grad_(trained)
            outcomes.append(observe(function, leaf * 1, leaf[1:], [], lines_of=__file__))
        assert not differences(*outcomes)


def test_a_view_of_a_leaf_behind_a_write_to_a_view_of_a_tensor_without_history():
    def f(x, y, log):
        y.lerp_(x, 0.5)
        log.append(1)
        x.mT.exp_()

    run = optimize(as_it_is)(f)
    outcomes = [
        observe(g, X.clone().requires_grad_(), X.clone()[:2], [], lines_of=__file__) for g in (f, run)
    ]
    assert not differences(*outcomes)


def _seen_without_gradients(x):
    with torch.no_grad():
        return x.requires_grad_().view(4)


LEAVES = (
    lambda: X.clone().requires_grad_(),
    lambda: X.view(4).requires_grad_(),
    lambda: X.as_subclass(type("Plain", (torch.Tensor,), {})).requires_grad_(),
    lambda: _seen_without_gradients(X.clone()),
    lambda: X.clone().requires_grad_(),
)


def test_the_words_about_a_leaf_say_how_it_was_made():
    def f(x, log):
        try:
            x.mul_(2)
        except RuntimeError as error:
            log.append(str(error))
        return x + 1

    run = optimize(as_it_is)(f)
    for make in (*LEAVES, *reversed(LEAVES)):
        outcomes = [observe(g, make(), [], lines_of=__file__) for g in (f, run)]
        assert not differences(*outcomes)


def test_a_view_whose_record_an_unused_operation_makes_anew():
    """Its base got a history by a write through another view. Torch refuses to write to the view until somebody asks
    for its record, and what asks gives a result that nothing uses."""

    def program(x, y):
        view = y.expand(2, 3)
        view[0] = x.sum()
        y.unfold(-1, 2, 2)
        y.mul_(2)
        return y, view

    def refused(x, y):
        view = y.expand(2, 3)
        view[0] = x.sum()
        y.mul_(2)
        return y, view

    for function in (program, refused):
        compiled = optimize(lambda graph, inputs: graph)(function)
        for _ in range(2):
            found = []
            for run in (function, compiled):
                x, y = torch.ones(3, requires_grad=True), torch.zeros(3, 2).t()
                try:
                    found.append([*(one.detach() for one in run(x, y)), y._version])
                except RuntimeError as error:
                    found.append(str(error))
            if isinstance(found[0], str):
                assert found[0] == found[1]
            else:
                torch.testing.assert_close(found[0], found[1])
