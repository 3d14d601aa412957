"""Operations run once more for their gradients."""

import pytest
import torch

from dynamo_capture.runtime.replayed_operations import Operand, Replayed, Step, tensors_in

X = torch.arange(3.0) + 1


def test_gradients_of_some_results_and_with_gradients_on():
    x = X.clone().requires_grad_()
    steps = (
        Step(torch.unbind, (Operand(0),), {"dim": 0}),
        Step(torch.stack, ([Operand(1), Operand(3)],), {}),
        Step(torch.Tensor.pow, (Operand(4), 3), {}),
    )
    replayed = Replayed(steps, (0,), (2, 5))
    (found,) = replayed.gradients([x], [None, torch.ones(2)])
    assert found.tolist() == [3, 0, 27]
    assert found.requires_grad
    with torch.no_grad():
        (found,) = replayed.gradients([x], [torch.tensor(2.0), None])
        assert found.tolist() == [0, 2, 0]
        assert not found.requires_grad
        assert replayed.gradients([x], [None, None]) == (None,)


def test_slices_and_writes():
    x = X.clone().requires_grad_()
    steps = (
        Step(torch.Tensor.mul, (Operand(0), 2), {}),
        Step(torch.Tensor.__setitem__, (Operand(1), slice(0, 1), 5.0), {}),
    )
    with torch.no_grad():
        (found,) = Replayed(steps, (0,), (1,)).gradients([x], [torch.ones(3)])
    assert found.tolist() == [0, 2, 2]


def test_tensors_of_a_result():
    first, second = tensors_in((X, [3, (X[:1],)], None))
    assert first is X
    assert len(second) == 1


@pytest.mark.parametrize("again", [False, True])
def test_an_input_that_was_computed_from_another(again):
    w = X.clone().requires_grad_()
    s = w.sum()
    replayed = Replayed((Step(torch.mul, (Operand(0), Operand(1)), {}),), (0, 1), (2,))
    with torch.set_grad_enabled(again):
        found = replayed.gradients([w, s], [torch.ones(3)])
    assert [grad.tolist() for grad in found] == [[6, 6, 6], 6]
    if again:
        assert torch.autograd.grad(found[0].sum(), w)[0].tolist() == [3, 3, 3]
    assert torch.autograd.grad(s, w)[0].tolist() == [1, 1, 1]
