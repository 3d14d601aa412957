"""What ``vjp`` and ``linearize`` return is of the function that they have called, whatever has changed since."""

import warnings

import pytest
import torch
from torch import nn
from torch.func import linearize, vjp

FACTOR = 2.0


def _given():
    return (torch.tensor([0.5, -1.0, 2.0]),)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = 2.0
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x):
        return x.sin() * self.factor * self.weight


SCALED = Scaled()


def variable(x):
    factor = 2.0
    _, pull = vjp(lambda a: a.sin() * factor, x)
    factor = 3.0
    return pull(torch.ones(3))


def global_variable(x):
    global FACTOR
    FACTOR = 2.0
    _, pull = vjp(lambda a: a.sin() * FACTOR, x)
    FACTOR = 3.0
    return pull(torch.ones(3))


def containers(x):
    factors, named = [1.0, 2.0], {"a": 2.0}
    _, pull = vjp(lambda a: a.sin() * len(factors) * named["a"], x)
    factors.append(3.0)
    named["a"] = 5.0
    return pull(torch.ones(3))


def attribute_of_a_new_object(x):
    class Holder:
        factor = 2.0

    holder = Holder()
    _, pull = vjp(lambda a: a.sin() * holder.factor, x)
    holder.factor = 3.0
    return pull(torch.ones(3))


def attribute_of_a_module(x):
    SCALED.factor = 2.0
    _, pull = vjp(SCALED, x)
    SCALED.factor = 3.0
    return pull(torch.ones(3))


def written_argument(x):
    given = x * 1
    _, pull = vjp(lambda a: a.sin() * a, given)
    given.add_(1)
    return pull(torch.ones(3))


def written_tensor_of_the_closure(x):
    factor = x * 1
    _, pull = vjp(lambda a: a.sin() * factor, x)
    try:
        factor[0].add_(1)
        return pull(torch.ones(3))
    except RuntimeError as error:
        return str(error).partition(":")[0]


def written_result(x):
    result, pull = vjp(torch.exp, x)
    try:
        result.add_(1)
        return pull(torch.ones(3))
    except RuntimeError as error:
        return str(error).partition(":")[0]


def autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result, pull = vjp(lambda a: (a * 0.7).outer(a) @ a.outer(a * 0.9), x)
    return pull(torch.full_like(result, 0.37))


def inference(x):
    with torch.inference_mode():
        result, pull = vjp(torch.sin, x)
        (gradient,) = pull(torch.ones(3))
    return result, result.is_inference(), gradient, gradient.is_inference()


def variable_of_a_linear_function(x):
    factor = 2.0
    _, push = linearize(lambda a: a.sin() * factor, x)
    factor = 3.0
    return push(torch.ones(3))


@pytest.mark.parametrize(
    "program",
    [
        variable,
        variable_of_a_linear_function,
        global_variable,
        containers,
        attribute_of_a_new_object,
        attribute_of_a_module,
        written_argument,
        written_tensor_of_the_closure,
        written_result,
        autocast,
        inference,
    ],
)
def test_changes_do_not_count(program, same):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program(*_given())  # torch warns at the first of a process
    same(program, *(_given() for _ in range(3)), ignore={"warnings"})


def other_changes(x):
    """Of what the function does not read."""
    rows, names, total = torch.zeros(3, 3), [], 0.0
    _, pull = vjp(lambda a: a.sin() * a, x)
    for place in range(3):
        seed = torch.zeros(3)
        seed[place] = 1.0
        rows[place] = pull(seed)[0]
        names.append(place)
        total += place
    return rows, names, total


def without_gradients(x):
    result, pull = vjp(lambda a: a.sin() * a, x)
    with torch.no_grad():
        return result, pull(torch.ones(3))


@pytest.mark.parametrize("program", [other_changes, without_gradients])
def test_other_changes_do_not_end_the_graph(program, whole):
    whole(program, *(_given() for _ in range(3)), ignore={"own version"})
