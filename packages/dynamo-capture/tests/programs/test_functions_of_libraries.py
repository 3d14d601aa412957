"""Functions of torch and Python under other names, in decorators of the program, and replaced while they are called."""

import contextlib
import functools
import math
import operator
from unittest import mock

import pytest
import torch

from dynamo_capture import optimize

X = torch.tensor([1.0, -2.0])
RELU, GELU = torch.relu, torch.nn.functional.gelu
LOG = []


def noted(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        LOG.append(function.__name__)
        return function(*args, **kwargs)

    return wrapper


_RELU, _SQRT, _SUM = noted(torch.nn.functional.relu), noted(math.sqrt), noted(torch.Tensor.sum)
_CACHED = functools.lru_cache(noted(math.floor))


def captured(function):
    return optimize(lambda graph, inputs: graph.forward)(function)


def test_a_decorator_that_copies_names_is_the_programs():
    """Functions with the names of torch's were taken for them, and called once more while they were captured."""

    def f(x):
        return _RELU(x), _SQRT(4.0), _SUM(x), _CACHED(1.5)

    _CACHED.cache_clear()
    fast = captured(f)
    for call in range(3):
        LOG.clear()
        assert torch.equal(fast(X)[0], torch.relu(X))
        assert LOG == ["relu", "sqrt", "sum"] + ["floor"] * (call == 0)


def test_a_decorator_that_closes_over_what_changes():
    """Code of libraries does not change, that of a decorator of the program may."""
    factor = 1

    @functools.wraps(torch.nn.functional.relu)
    def scaled(x):
        return x * factor

    fast = captured(lambda x: scaled(x) + 1)
    assert torch.equal(fast(X), X + 1)
    factor = 3
    assert torch.equal(fast(X), X * 3 + 1)
    scaled.__code__ = (lambda x: x * (factor + 1)).__code__
    assert torch.equal(fast(X), X * 4 + 1)


@pytest.mark.parametrize("name", ["relu", "gelu"])
def test_a_function_by_another_name_while_its_own_name_is_replaced(name):
    """A graph runs as a text with names of torch's functions."""
    owner = torch if name == "relu" else torch.nn.functional

    def f(x):
        return RELU(x), GELU(x)

    fast, expected = captured(f), f(X)
    fast(X)
    with mock.patch.object(owner, name, lambda x: x * 0):
        assert all(map(torch.equal, fast(X), expected))
    assert all(map(torch.equal, fast(X), expected))


def test_a_function_that_the_program_replaces_by_a_decorator_of_it():
    def f(x):
        real = torch.nn.functional.relu
        torch.nn.functional.relu = noted(real)
        try:
            return torch.nn.functional.relu(x), torch.nn.ReLU()(x), operator.add(x, 1)
        finally:
            torch.nn.functional.relu = real

    fast = captured(f)
    for _ in range(3):
        LOG.clear()
        assert torch.equal(fast(X)[1], torch.relu(X))
        assert LOG == ["relu", "relu"]


def test_a_mock_is_not_asked_for_its_hash():
    def f(x):
        made = mock.MagicMock(side_effect=[1, 3])
        made.__len__.return_value = 4
        return made(5), len(made), made.mock_calls, x + 1

    assert captured(f)(X)[:3] == (1, 4, [mock.call(5), mock.call.__len__()])


class _Block(contextlib.ContextDecorator):
    def __enter__(self):
        LOG.append("in")

    def __exit__(self, *error):
        LOG.append("out")


_IN_BLOCK = _Block()(torch.nn.functional.relu)


def test_a_block_as_a_decorator_of_a_function_of_torch():
    fast = captured(lambda x: _IN_BLOCK(x) + 1)
    for _ in range(3):
        LOG.clear()
        assert torch.equal(fast(X), torch.relu(X) + 1)
        assert LOG == ["in", "out"]
