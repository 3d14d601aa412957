"""What a failed call leaves behind: nothing, or a word about it."""

import pytest
import torch

from fx_interface.undo import all_or_nothing, has_left_something, is_all_or_nothing, undoing


def test_a_callable_says_so_of_itself():
    def run(x):
        return (x,)

    assert not is_all_or_nothing(run)
    assert is_all_or_nothing(all_or_nothing(run))


def test_content_and_generators_are_put_back():
    def run(x, y):
        x.add_(torch.rand(3))
        y.mul_(2)
        raise ValueError("late")

    x, y = torch.zeros(3), torch.ones(2, requires_grad=True)
    state = torch.get_rng_state()
    with torch.no_grad(), pytest.raises(ValueError) as caught:
        undoing(run, [0, 1], draws=True)(x, y)
    assert not has_left_something(caught.value)
    assert x.tolist() == [0, 0, 0]
    assert y.tolist() == [1, 1]
    assert torch.equal(state, torch.get_rng_state())


def test_a_history_of_a_tensor_without_one_is_taken_away():
    def run(x, w):
        x.mul_(w)
        raise ValueError("late")

    x, w = torch.ones(2), torch.full((2,), 3.0, requires_grad=True)
    with pytest.raises(ValueError) as caught:
        undoing(run, [0], draws=False)(x, w)
    assert not has_left_something(caught.value)
    assert x.tolist() == [1, 1]
    assert not x.requires_grad


def test_a_changed_history_is_told():
    def run(x):
        x.mul_(2)
        raise ValueError("late")

    leaf = torch.ones(2, requires_grad=True)
    x = leaf * 1
    with pytest.raises(ValueError) as caught:
        undoing(run, [0], draws=False)(x)
    assert has_left_something(caught.value)


def test_a_changed_form_is_told():
    def run(x):
        x.t_()
        raise ValueError("late")

    with pytest.raises(ValueError) as caught:
        undoing(run, [0], draws=False)(torch.ones(2, 3))
    assert has_left_something(caught.value)


def test_results_pass():
    x = torch.ones(2)
    run = undoing(lambda x: (x.add_(1), 5), [0], draws=True)
    assert run(x)[0] is x
    assert x.tolist() == [2, 2]
