"""What a failed call leaves behind: nothing, or a word about it."""

import pytest
import torch

from fx_interface.execution.undo import (
    all_or_nothing,
    has_left_something,
    is_all_or_nothing,
    undoing,
    undoing_if_shared,
)


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


def test_a_view_whose_base_has_no_other_history_is_put_back():
    def run(x):
        x.logical_not_()
        x.mul_(2)

    leaf = torch.ones(2, requires_grad=True)
    view, version = leaf[:1], leaf._version
    with pytest.raises(RuntimeError, match="view of a leaf") as caught:
        undoing(run, [0], draws=False)(view)
    assert not has_left_something(caught.value)
    assert leaf.tolist() == [1, 1]
    assert leaf._version == version


def test_a_view_whose_base_has_another_history_is_told():
    def run(x):
        x.mul_(2)
        raise ValueError("late")

    view = (torch.ones(2, requires_grad=True) * 1)[:1]
    with pytest.raises(ValueError) as caught:
        undoing(run, [0], draws=False)(view)
    assert has_left_something(caught.value)


def test_a_changed_form_is_put_back():
    def run(x):
        x.t_().mul_(2)
        raise ValueError("late")

    x = torch.arange(6.0).view(2, 3)
    with pytest.raises(ValueError) as caught:
        undoing(run, [0], draws=False)(x)
    assert not has_left_something(caught.value)
    assert (x.shape, x.stride(), x._version) == ((2, 3), (3, 1), 0)
    assert x.flatten().tolist() == [0, 1, 2, 3, 4, 5]


def test_other_memory_is_told_and_nothing_is_put_back():
    def run(x, y):
        y.add_(1)
        x.set_(torch.zeros(5))
        raise ValueError("late")

    y = torch.ones(2)
    with pytest.raises(ValueError) as caught:
        undoing(run, [0, 1], draws=False)(torch.ones(2), y)
    assert has_left_something(caught.value)
    assert y.tolist() == [2, 2]


def test_a_stretched_tensor_is_put_back():
    def run(x):
        x[0, :1] = 5
        raise ValueError("late")

    x = torch.zeros(1).expand(2, 3)
    with pytest.raises(ValueError):
        undoing(run, [0], draws=False)(x)
    assert x.tolist() == [[0, 0, 0]] * 2


def refused(x, y):
    x.mul_(2)
    raise RuntimeError("overlap")


def test_writes_are_undone_only_where_inputs_share_memory():
    run = undoing_if_shared(refused, [0], fixed_sizes=True)
    base = torch.ones(4)
    with pytest.raises(RuntimeError) as caught:
        run(base[:3], base[1:])
    assert not has_left_something(caught.value)
    assert base.tolist() == [1, 1, 1, 1]
    x = torch.ones(3)
    with pytest.raises(RuntimeError) as caught:
        run(x, torch.ones(3))
    assert has_left_something(caught.value)
    assert x.tolist() == [2, 2, 2]


def test_a_view_that_is_written_to_again_is_rehearsed():
    seen = []

    def rehearse(inputs, written):
        seen.append(len(inputs))

    weight = torch.ones(1, requires_grad=True)
    for again, view, expected in (([0], True, [2]), ([], True, []), ([0], False, [])):
        run = undoing_if_shared(lambda x, w: (), [0], again=again, fixed_sizes=True, rehearse=rehearse)
        run(torch.ones(2)[:1] if view else torch.ones(1), weight)
        assert seen == expected
        seen.clear()


def test_results_pass():
    x = torch.ones(2)
    run = undoing(lambda x: (x.add_(1), 5), [0], draws=True)
    assert run(x)[0] is x
    assert x.tolist() == [2, 2]
