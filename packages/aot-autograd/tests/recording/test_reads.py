"""Which calls that may fail are computed in whole by what reads them, and which become results that nobody reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import symbolic_trace

from aot_autograd import trace_joint

Program = Callable[[torch.Tensor, torch.Tensor], Any]
IN_WHOLE: dict[str, Program] = {
    "returned": lambda x, i: x[i],
    "computed with": lambda x, i: x[i] * 2,
    "reduced": lambda x, i: x[i].sum(),
    "another user": lambda x, i: (x[i][:1] * 2, x[i] * 3),
    "both halves": lambda x, i: x[i][:1] * x[i][1:],
    "halves of one": lambda x, i: (lambda t: t[:1] * t[1:])(x[i]),
    "every other": lambda x, i: (lambda t: t[::2] * t[1::2])(x[i]),
    "all that it selects": lambda x, i: (lambda t: t[0] + t[1])(x[i]),
    "all parts": lambda x, i: (lambda t: t[0] + t[1])(x[i].split(1)),
    "all items": lambda x, i: (lambda t: t[0] + t[1])(x[i].unbind(0)),
    "a slice of all": lambda x, i: x[i][0:2] * 2,
    "multiplied": lambda x, i: (x[i] @ x)[:1] + 1,
    "scattered": lambda x, i: torch.zeros(4, 2).index_put((i,), x)[:1] + 1,
}
IN_PART: dict[str, Program] = {
    "its form": lambda x, i: torch.full_like(x[i], 2),
    "its form, later": lambda x, i: torch.zeros_like(x[i] * 2),
    "a new tensor": lambda x, i: x[i].new_ones(2),
    "a slice": lambda x, i: x[i][:1] * 2,
    "later a slice": lambda x, i: (x[i] * 2)[:1] + 1,
    "one that it selects": lambda x, i: x[i][0] * 3,
    "one part": lambda x, i: x[i].split(1)[0] + 1,
    "nothing": lambda x, i: x[i][:0].sum(),
    "less than nothing around it": lambda x, i: torch.nn.functional.pad(x[i], (0, -1)) * 2,
    "its place beside others": lambda x, i: torch.cat([x[i] + 1, x])[2:3] + 1,
    "the form of what is scattered": lambda x, i: torch.zeros_like(x.index_add(0, i, x)),
}


def unread(program: Program, library: Any) -> int:
    inputs = [torch.ones(2, 2), torch.tensor([1, 1])]
    return trace_joint(symbolic_trace(program), inputs, operators=library).plan.ignored


@pytest.mark.parametrize("name", IN_WHOLE)
def test_what_is_read_in_whole_is_no_result_of_its_own(name: str, library: Any) -> None:
    assert unread(IN_WHOLE[name], library) == 0


@pytest.mark.parametrize("name", IN_PART)
def test_what_is_read_in_part_is_a_result(name: str, library: Any) -> None:
    assert unread(IN_PART[name], library) == 1
