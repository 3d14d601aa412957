"""Graphs that change for good what they were given, and then fail: effects before, handlers and lines are eager's."""

import pytest
import torch

import fxstack
from fx_interface.conformance.outcomes import differences, observe


def multiplied(x, w, index, log):
    log.append("before")
    x.mul_(w)
    log.append("after")
    found = x[index]
    log.append("never")
    return found


def caught(x, w, index, log):
    log.append("before")
    x.mul_(w)
    try:
        x[index]
    except IndexError:
        log.append("caught")
    return x * 2


def transposed(x, w, index, log):
    x.t_()
    log.append("after")
    return (x * w)[index]


def drawn(x, w, index, log):
    x.mul_(w).add_(torch.rand(3))
    log.append("after")
    return x[index]


def of_a_view(x, w, index, log):
    part = x[1:]
    part.mul_(w)
    log.append("after")
    return x[index]


PROGRAMS = [multiplied, caught, transposed, drawn, of_a_view]
INPUTS = {
    "no history": lambda: torch.ones(3, 3),
    "computed": lambda: torch.ones(3, 3, requires_grad=True) * 1,
    "view": lambda: (torch.ones(4, 3, requires_grad=True) * 1)[1:],
    "view of a constant": lambda: torch.ones(4, 3)[1:],
    "shared": lambda: torch.ones(3, requires_grad=True).expand(3, 3) * 1,
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_outcomes_are_eagers(program, kind, backend):
    compiled = fxstack.compile(program, backend=backend)
    for index in (1, 7, 2, 9):  # found and not found, in turn
        outcomes = []
        for run in (program, compiled):
            torch.manual_seed(1)
            weight = torch.tensor(2.0, requires_grad=True)
            outcomes.append(
                observe(run, INPUTS[kind](), weight, torch.tensor([index]), [], lines_of=__file__)
            )
        assert differences(*outcomes) == []
