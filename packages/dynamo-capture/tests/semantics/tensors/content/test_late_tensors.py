"""Which operations are done behind the graph: those on numbers of which autograd follows what data choose."""

from __future__ import annotations

import pytest
import torch

from dynamo_capture import CaptureError, optimize


def _is_whole(program, *args):
    try:
        optimize(lambda graph, inputs: graph.forward, fullgraph=True)(program)(*args)
    except CaptureError:
        return False
    return True


def _scores(*sizes, requires_grad=True):
    return [torch.ones(sizes, requires_grad=requires_grad) for _ in range(2)]


def _sum(x, y):
    return max(0, x) + max(0, y)


def test_of_numbers_it_is_one_graph() -> None:
    assert _is_whole(_sum, *_scores())


def test_without_gradients_the_graph_adds() -> None:
    compiled = optimize(lambda graph, inputs: graph.forward)(_sum)
    compiled(*_scores(requires_grad=False))
    ((_, replacement),) = compiled.__fxstack_capture__.report.replacements
    assert "add" in str(replacement.graph.graph)


def test_of_a_tensor_with_dimensions_it_is_not_late() -> None:
    assert not _is_whole(_sum, *_scores(1))


@pytest.mark.parametrize("most", [100, 300])
def test_there_is_a_most(most: int) -> None:
    def program(x, y):
        loss = 0
        for _ in range(most):
            loss += max(0, x)
        return loss

    assert _is_whole(program, *_scores()) is (most < 128)


@pytest.mark.parametrize(("divisor", "is_whole"), [(4, True), (2.0, True), (0, False)])
def test_what_may_raise_is_not_late(divisor: float, is_whole: bool) -> None:
    def program(x, y):
        return (max(0, x) + max(0, y)) / divisor

    assert _is_whole(program, *_scores()) is is_whole
