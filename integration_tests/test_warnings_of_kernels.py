"""What torch's kernels warn of in each call is warned of, once, at the program's line, by any backend."""

import pytest
import torch

import fxstack
from fx_interface.conformance.outcomes import differences, observe


def deviation(x):
    y = x + 1
    z = y.std()
    return z * 2


def variance(x):
    return torch.var_mean(x * 2, dim=0, correction=2)


def inside(x):
    total = x.sum()
    for one in x:
        total = total + normalized(one)
    return total


def normalized(x):
    return x / x.std()


def chosen(x):
    return (x * 2)[torch.ones_like(x, dtype=torch.uint8)]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "program", [deviation, variance, inside, chosen], ids=lambda program: program.__name__
)
def test_warnings_are_eagers(program, backend):
    compiled = fxstack.compile(program, backend=backend)
    for size in (1, 1, 3):
        expected = observe(program, torch.ones(size), lines_of=__file__)
        assert differences(expected, observe(compiled, torch.ones(size), lines_of=__file__)) == []


def test_a_graph_that_must_not_break_does_not():
    compiled = fxstack.compile(deviation, backend="eager", fullgraph=True)
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert compiled(torch.ones(1)).isnan()
