"""Functions of ``math`` are given tensors, which they ask for a float."""

from __future__ import annotations

import math

import pytest
import torch

from dynamo_capture import optimize
from primtorch_decomps import LIBRARY

PROGRAMS = [
    lambda x: x * math.sqrt(x.sum()),
    lambda x: x * math.sqrt(x.long().sum()),
    lambda x: x + math.sqrt(torch.tensor(4.0)),
    lambda x: x * math.floor(x.sum()),
    lambda x: x * math.ceil(x.max()),
    lambda x: (x, math.fabs(x.sum()), math.isnan(x[0]), math.isfinite(x[0])),
    lambda x: (x * 2, math.exp(x.mean()), math.log(x.sum())),
]
REFUSED = [
    lambda x: math.sqrt(x),
    lambda x: math.sqrt(-1 - x.sum()),
    lambda x: math.trunc(x.sum()),
    lambda x: math.sqrt((x * 1j).sum()),
]


def outcome(function, x):
    try:
        found = function(x)
    except Exception as error:
        return type(error), str(error)
    return [part.tolist() if isinstance(part, torch.Tensor) else part for part in found]


@pytest.mark.parametrize("program", PROGRAMS)
def test_they_stay_in_the_graph(program):
    captured = optimize(lambda graph, examples: graph.forward, operators=LIBRARY, fullgraph=True)(program)
    for seed in (1, 2):
        x = torch.rand(3, generator=torch.Generator().manual_seed(seed))
        assert outcome(captured, x) == outcome(program, x)


@pytest.mark.parametrize("program", REFUSED)
def test_what_python_refuses_is_refused(program):
    captured = optimize(lambda graph, examples: graph.forward, operators=LIBRARY)(program)
    assert outcome(captured, torch.ones(3)) == outcome(program, torch.ones(3))
