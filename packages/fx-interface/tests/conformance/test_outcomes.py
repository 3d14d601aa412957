"""``observe`` and ``differences``: each kind of difference that a program could notice is noticed, and no other."""

from __future__ import annotations

import math
import warnings

import pytest
import torch

from fx_interface.conformance.outcomes import differences, observe, rounding


def _shared(x):
    y = x * 2
    return y, y.view(-1)


def _apart(x):
    y = x * 2
    return y, (x * 2).view(-1)


def _written(x):
    return x.add_(1), None


def _written_twice(x):
    return x.add_(0).add_(1), None


def _raises(x):
    raise ValueError("bad")


def _raises_from(x):
    try:
        raise KeyError(1)
    except KeyError as error:
        raise ValueError("bad") from error


def _prints(x):
    print("a")
    return x


def _warns(x):
    warnings.warn("a", stacklevel=1)
    return x


def _leaks_a_mode(x):
    torch.set_grad_enabled(False)
    return x


def _same_list(x):
    made = []
    return made, made


PAIRS = {
    "memory": (_shared, _apart),
    "version": (_written, _written_twice),
    "exception": (_raises, lambda x: x),
    "cause": (_raises, _raises_from),
    "output": (_prints, lambda x: x),
    "warning": (_warns, lambda x: x),
    "mode": (_leaks_a_mode, lambda x: x),
    "object": (_same_list, lambda x: ([], [])),
    "small number": (lambda x: x + 1e-6, lambda x: x),
    "large integer": (lambda x: torch.tensor(2**53), lambda x: torch.tensor(2**53 + 1)),
    "imaginary part": (lambda x: torch.tensor(1 + 1j), lambda x: torch.tensor(1 + 5j)),
    "negative zero": (lambda x: torch.tensor(0.0), lambda x: torch.tensor(-0.0)),
    "zero": (lambda x: 0.0, lambda x: -0.0),
    "type of a number": (lambda x: 1, lambda x: True),
    "strides": (lambda x: torch.zeros(2, 3), lambda x: torch.zeros(3, 2).t()),
    "dtype": (lambda x: x.double(), lambda x: x),
    "no gradient": (lambda x: x.clone().requires_grad_(), lambda x: x.clone()),
    "history": (lambda x: x.clone().requires_grad_() * 1, lambda x: x.clone().requires_grad_()),
    "container": (lambda x: (x,), lambda x: [x]),
    "keys": (lambda x: {1: x}, lambda x: {2: x}),
    "random numbers": (lambda x: torch.rand(1) * 0, lambda x: torch.zeros(1)),
}


@pytest.fixture(autouse=True)
def _grad():
    yield
    torch.set_grad_enabled(True)


@pytest.mark.parametrize("name", PAIRS)
def test_a_difference_is_noticed(name):
    one, two = PAIRS[name]
    expected = observe(one, torch.ones(2, 3))
    torch.set_grad_enabled(True)
    assert differences(expected, observe(two, torch.ones(2, 3)))


@pytest.mark.parametrize("name", PAIRS)
def test_a_program_is_like_itself(name):
    for program in PAIRS[name]:
        expected = observe(program, torch.ones(2, 3))
        torch.set_grad_enabled(True)
        assert differences(expected, observe(program, torch.ones(2, 3))) == []
        torch.set_grad_enabled(True)


def test_gradients_are_compared():
    def leaf():
        return torch.ones(3, requires_grad=True)

    expected = observe(lambda x: x * 2, leaf())
    assert differences(expected, observe(lambda x: (x * 2).detach().requires_grad_(), leaf()))
    assert differences(expected, observe(lambda x: x * 3, leaf()))
    assert differences(expected, observe(lambda x: x + x.detach(), leaf()))
    assert differences(expected, observe(lambda x: x * 2, leaf())) == []


def test_nan_is_nan_and_bits_of_it_do_not_count():
    assert differences(observe(lambda: math.nan), observe(lambda: -math.nan)) == []
    one, two = torch.tensor(math.nan), torch.tensor(-math.nan)
    assert differences(observe(lambda: one), observe(lambda: two)) == []
    assert differences(observe(lambda: one), observe(lambda: torch.tensor(1.0)))


def test_rounding_is_allowed_where_it_is_asked_for():
    one, two = observe(lambda: torch.tensor(1.0)), observe(lambda: torch.tensor(1.0 + 1e-6))
    assert differences(one, two)
    assert differences(one, two, values=rounding(1e-5, 0)) == []


def test_other_objects_can_be_watched():
    log: list[int] = []
    expected = observe(lambda: log.append(1), also={"log": log})
    assert differences(expected, observe(lambda: log.append(1), also={"log": log}))


def test_lines_of_a_traceback():
    def one():
        raise ValueError

    def two():
        raise ValueError

    file = __file__
    assert differences(observe(one), observe(two)) == []
    assert differences(observe(one, lines_of=file), observe(two, lines_of=file))


def test_a_backward_that_is_refused_may_pass_but_not_the_other_way_round():
    def refused(x):
        y = x.exp()
        y.detach().zero_()
        torch._C._autograd._unsafe_set_version_counter((y,), (7,))
        return y

    made = [torch.ones(2, requires_grad=True) for _ in range(2)]
    raises, passes = observe(refused, made[0]), observe(torch.exp, made[1])
    left_out = {"result", "arguments", "refused backward"}
    assert differences(raises, passes, ignore={"result", "arguments"})
    assert differences(raises, passes, ignore=left_out) == []
    assert differences(passes, raises, ignore=left_out)
