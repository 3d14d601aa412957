"""Attributes of ``OrderedDict``, as ``state_dict()`` gives its result."""

import collections
import copy

import torch
from torch import nn

import dynamo_capture

X = torch.arange(6.0).reshape(2, 3) + 1


def _whole(function):
    return dynamo_capture.optimize(lambda graph_module, _: graph_module.forward, fullgraph=True)(function)


def test_attributes_are_set_read_and_handed_back():
    def f(x):
        made = collections.OrderedDict(a=x)
        made.note = {"b": x + 1}
        made.note["c"] = made.note["b"] * 2
        return made, copy.copy(made), copy.deepcopy(made), made.copy(), hasattr(made.copy(), "note")

    made, shallow, deep, plain, has = _whole(f)(X)
    torch.testing.assert_close(made.note, {"b": X + 1, "c": (X + 1) * 2})
    assert shallow.note is made.note
    assert deep.note is not made.note
    torch.testing.assert_close(deep.note, made.note)
    assert vars(plain) == {}
    assert has is False


def test_copies_of_an_existing_one():
    def f(x, given):
        return x + 1, copy.copy(given), copy.deepcopy(given)

    compiled = _whole(f)
    given = collections.OrderedDict(c=3)
    assert [vars(copied) for copied in compiled(X, given)[1:]] == [{}, {}]
    for name in ("first", "second"):
        setattr(given, name, [1])
        _, shallow, deep = compiled(X, given)
        assert vars(shallow) == vars(deep) == vars(given)
        assert getattr(shallow, name) is getattr(given, name)
        assert getattr(deep, name) is not getattr(given, name)


def test_one_that_is_its_own_attribute(same):
    def f(x):
        made = collections.OrderedDict(a=x)
        made.itself = made
        return x + 1, made.itself is made, made

    same(f, (X,))


def test_attributes_around_a_break(same, capsys):
    def f(x):
        made = collections.OrderedDict(a=x)
        made.note = [x + 1]
        print(end="")
        made.note.append(2)
        made.other = 3
        return x + 1, made.note, made.other

    same(f, (X,))


def test_the_state_of_modules_is_read(whole):
    def make():
        torch.manual_seed(0)
        one, two = (nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)) for _ in range(2))

        def f(x):
            for new, old in zip(one.state_dict().values(), two.state_dict().values(), strict=True):
                if old.is_floating_point():
                    old.copy_(old * 0.9 + new * 0.1)
            return two(x), one.state_dict()._metadata["1"]

        return f

    whole.made(make, (X,), (X,))


def test_the_state_of_modules_is_loaded(whole):
    def make():
        torch.manual_seed(0)
        one, two = (nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)) for _ in range(2))

        def f(x):
            two.load_state_dict(one.state_dict())
            return two(x)

        return f

    whole.made(make, (X,), (X,))
