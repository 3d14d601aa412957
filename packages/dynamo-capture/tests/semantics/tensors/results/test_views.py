"""Views that are made without gradients require grad as what they lead to does, which need not be the input."""

import pytest
import torch

from dynamo_capture import optimize

FRESH = optimize(lambda graph, inputs: graph.forward)


def is_followed(x):
    with torch.no_grad():
        row = x[0]
    return row.requires_grad, (row * 2).requires_grad


def by_itself(x):
    x.requires_grad_()
    return is_followed(x)


def leaf_of(base):
    return base.view(2, 3).requires_grad_()


def unfollowed(base):
    with torch.no_grad():
        return base.view(2, 3).requires_grad_(base.requires_grad)


def of_leaf(base):
    return unfollowed(base.requires_grad_())


def of_view(base):
    return leaf_of(base).view(2, 3)


def plain(base):
    return base.view(2, 3).clone().requires_grad_()


def write(x):
    try:
        x.mul_(torch.ones(3, requires_grad=True))
    except RuntimeError as error:
        return str(error)
    return None


def write_detached(x):
    x.detach().add_(1)
    try:
        x + 1
    except RuntimeError as error:
        return str(error)
    return None


def make_a_leaf(x):
    x.requires_grad_()
    (x * x).sum().backward()
    return x.grad


@pytest.mark.parametrize("program", [write, write_detached])
@pytest.mark.parametrize("made", [[unfollowed, plain, of_leaf], [of_leaf, plain], [plain, unfollowed]])
def test_writes_that_are_refused(program, made) -> None:
    compiled = FRESH(program)
    for make in made:
        assert program(make(torch.ones(6))) == compiled(make(torch.ones(6)))


def test_a_view_becomes_a_leaf() -> None:
    compiled = FRESH(make_a_leaf)
    for make in (of_leaf, plain, leaf_of):
        assert torch.equal(make_a_leaf(make(torch.ones(6))), compiled(make(torch.ones(6))))


@pytest.mark.parametrize("made", [[leaf_of, plain], [plain, leaf_of], [of_view, plain]])
def test_leaves_that_are_views(made) -> None:
    compiled = FRESH(is_followed)
    for make in made:
        x = make(torch.ones(6))
        assert is_followed(x) == compiled(x)


def test_leaves_that_are_made_inside() -> None:
    compiled = FRESH(by_itself)
    for make in (lambda: torch.ones(6).view(2, 3), lambda: torch.ones(2, 3)):
        assert by_itself(make()) == compiled(make())


class _Shown(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.view(2, 3)


def is_view(x):
    shown = _Shown.apply(x)
    return shown._is_view(), shown.sin()


@pytest.mark.parametrize("followed", [True, False])
def test_results_of_custom_functions(followed) -> None:
    x = torch.ones(2, 3, requires_grad=followed)
    assert FRESH(is_view)(x)[0] is is_view(x)[0]
