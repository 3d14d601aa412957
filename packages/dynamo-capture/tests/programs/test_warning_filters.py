"""Blocks of ``warnings.catch_warnings``, and changes of the filters."""

from __future__ import annotations

import warnings

import pytest
import torch

from dynamo_capture import optimize

START = """\
import warnings
import torch
CALLS = [lambda: (torch.ones(2),), lambda: (torch.ones(2),), lambda: (torch.ones(3),)]
def told(text="here"):
    warnings.warn(text)
def kept():
    return [f[0] for f in warnings.filters]
"""

PROGRAMS = {
    "a block that records and hears nothing": """
def program(x):
    with warnings.catch_warnings(record=True) as found:
        y = x.sin()
    return y, found
""",
    "a block that records": """
def program(x):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        y = x.sin()
        told("one")
        y = y + 1
        told("two")
    return y * 2, [str(f.message) for f in found], kept()
""",
    "a block that makes exceptions of warnings": """
def program(x):
    before = kept()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            x = x + 1
            told()
    except UserWarning as error:
        return x * 2, str(error), kept() == before
""",
    "a block in a block, and a warning after it": """
def program(x):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="h.*")
        with warnings.catch_warnings(record=True):
            x = x + 1
        x = x * len(kept())
    told("after")
    return x
""",
    "a filter that stays": """
def program(x):
    warnings.simplefilter("ignore", ResourceWarning)
    return x + 1, kept()[:1]
WATCHED = {"kept": kept}
""",
    "a block that an exception leaves": """
def program(x):
    before = warnings.filters
    try:
        with warnings.catch_warnings():
            x = x + 1
            raise ValueError
    except ValueError:
        return x, warnings.filters is before
""",
    "a block around a graph break": """
def program(x):
    before = warnings.filters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = x + 1
        print(x.sum().item())
        told()
        x = x * 2
    return x, warnings.filters is before
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    with warnings.catch_warnings():
        as_in_eager(START + PROGRAMS[name])


@pytest.mark.parametrize("record", [False, True])
def test_a_block_is_in_the_graph(record, forward):
    def program(x):
        with warnings.catch_warnings(record=record):
            warnings.simplefilter("ignore")
            return x.sin() + 1

    before = list(warnings.filters)
    fast = optimize(forward, fullgraph=True)(program)
    for size in (2, 3):
        assert torch.equal(fast(torch.ones(size)), program(torch.ones(size)))
    assert warnings.filters == before


def test_an_attribute_of_tensors_that_warns(same):
    def program(x):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            found = x.volatile
        return found, [str(warning.message) for warning in seen], x + 1

    same(program, (torch.ones(2),))
