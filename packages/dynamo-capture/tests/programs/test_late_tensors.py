"""Sums of what Python's ``max`` and ``min`` keep of tensors and numbers, with gradients: one graph, torch adds up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from dynamo_capture import optimize

SCORES = [[0.5, 2.0, -1.0], [2.0, 3.0, 4.0], [-1.0, 1.0, 1.5], [float("nan"), 0.0, 5.0]]


def _hinge(scores, other):
    loss = 0
    for score in scores.unbind():
        loss += max(0, 1 - score)
    return loss


def _mean(scores, other):
    loss = 0.0
    for i in range(len(scores)):
        loss = loss + max(0.0, 1 - scores[i]) * 0.5
    return loss / len(scores), scores * 2


def _tensors(scores, other):
    loss = torch.zeros(())
    for i in range(len(scores)):
        loss = loss + max(torch.tensor(0.0), 1 - scores[i]) - min(scores[i], other[0])
    return 2 - loss


def _two_leaves(scores, other):
    """The one that is not chosen has no gradient."""
    return max(0, scores.sum()) + max(0, other.sum()) + min(0, (other * scores).sum())


def _infinite_derivative(scores, other):
    """Zero times what the derivative of a root at zero is, is no number."""
    return max(0, (scores - scores.detach()).abs().sum().sqrt() - 1) + max(0, scores.sum())


def _augmented(scores, other):
    loss = 0
    loss += max(0, scores[0])
    loss += max(0, scores[1])
    kept = loss * 2
    loss += max(0, scores[2])
    loss *= 3
    return kept, loss


def _of_a_sum(scores, other):
    return sum(max(0, 1 - score) for score in scores) * other.detach().sum().item()


def _behind_a_break(scores, other):
    loss = max(0, scores[0]) + max(0, scores[1])
    print(end="")
    return loss + max(0, scores[2])


def _without_gradients_behind(scores, other):
    loss = max(0, scores[0]) + max(0, scores[1])
    torch.set_grad_enabled(False)
    return loss


PROGRAMS = [
    _hinge,
    _mean,
    _tensors,
    _two_leaves,
    _infinite_derivative,
    _augmented,
    _of_a_sum,
    _behind_a_break,
]
PROGRAMS += [_without_gradients_behind]


def _told(program: Callable[..., Any], numbers: list[float]) -> list[Any]:
    scores = torch.tensor(numbers, requires_grad=True)
    other = torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
    found = program(scores, other)
    torch.set_grad_enabled(True)
    parts = found if isinstance(found, tuple) else (found,)
    for part in parts:
        if isinstance(part, torch.Tensor):
            part.sum().backward(retain_graph=True)
    told = [(type(part), part.tolist() if isinstance(part, torch.Tensor) else part) for part in parts]
    gradients = [None if leaf.grad is None else leaf.grad.tolist() for leaf in (scores, other)]
    return [repr(told), repr(gradients), [getattr(part, "_version", None) for part in parts]]


@pytest.mark.parametrize("program", PROGRAMS)
def test_values_and_gradients(program: Callable[..., Any]) -> None:
    compiled = optimize(lambda graph, inputs: graph.forward)(program)
    for numbers in SCORES:
        assert _told(compiled, numbers) == _told(program, numbers)


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p is not _behind_a_break])
def test_one_graph(program: Callable[..., Any]) -> None:
    compiled = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(program)
    assert _told(compiled, SCORES[0]) == _told(program, SCORES[0])


def test_a_step(same) -> None:
    def step(scores, weight):
        loss = 0
        for score in (scores @ weight).unbind():
            loss += max(0, 1 - score)
        loss.backward()
        return loss, weight.grad

    torch.manual_seed(0)
    same(step, *[(torch.randn(4, 3), torch.randn(3, requires_grad=True)) for _ in range(3)])


def _written(scores, other):
    """What the graph reads afterwards is written to."""
    loss = scores.sum()
    loss += max(0, other[0])
    return loss * 2


def _asked(scores, other):
    loss = max(0, scores[0]) + max(0, scores[1])
    return scores * 2 if loss > 1 else loss


def _divided(scores, other):
    return 1 / (max(0, scores[0]) + max(0, scores[1]) + 1)


def _called(scores, other):
    return torch.relu(max(0.0, scores[0]) + max(0.0, scores[1]) + other.sum())


@pytest.mark.parametrize("program", [_written, _asked, _divided, _called])
def test_what_ends_the_graph(program: Callable[..., Any]) -> None:
    compiled = optimize(lambda graph, inputs: graph.forward)(program)
    for numbers in SCORES[:1] + SCORES[2:3]:
        assert _told(compiled, numbers) == _told(program, numbers)


def test_inside_of_a_branch_that_is_tried(same) -> None:
    def program(scores, other):
        if other.sum() > 0:
            loss = max(0, scores[0]) + max(0, scores[1])
            other.detach().mul_(2)
        else:
            loss = 0
        return loss

    for factor in (1.0, -1.0):
        same(program, (torch.ones(3, requires_grad=True), torch.ones(2) * factor))
