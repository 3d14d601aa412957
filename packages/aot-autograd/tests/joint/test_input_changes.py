"""Forms and versions of inputs: each write counts once, and so does each change of a form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch


def _own_content(x: torch.Tensor, y: torch.Tensor) -> None:
    x[...] = x


def _twice(x: torch.Tensor, y: torch.Tensor) -> None:
    x[0] = 1
    x += y


PROGRAMS: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "form": lambda x, y: x.unsqueeze_(0),
    "form and back": lambda x, y: x.t_().t_(),
    "form, then content": lambda x, y: x.t_().add_(1),
    "content, then form": lambda x, y: x.add_(1).unsqueeze_(0),
    "form of a view": lambda x, y: x.view(-1).unsqueeze_(0),
    "its own content": _own_content,
    "its own content, copied": lambda x, y: x.copy_(x),
    "two writes": _twice,
    "out": lambda x, y: torch.mul(x, 2, out=y),
    "out, twice": lambda x, y: torch.add(torch.mul(x, 2, out=y), 1, out=y),
    "lists": lambda x, y: torch._foreach_add_([x, y], 1),
    "lists, twice": lambda x, y: (torch._foreach_mul_([x, y], 2), torch._foreach_zero_([y])),
    "detached": lambda x, y: x.detach().add_(1),
    "data": lambda x, y: x.data.add_(1),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
@pytest.mark.parametrize("history", [False, True])
def test_versions_are_eagers(compiled: Any, program: Any, history: bool) -> None:
    def without_result(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor]:
        with torch.no_grad():
            program(x, y)
        return (w * 2,)

    found = []
    for function in (without_result, compiled(without_result)):
        x, y = torch.ones(2, 3), torch.full((2, 3), 2.0)
        function(x, y, torch.ones(2, requires_grad=history))
        found.append((x._version, y._version, x.shape, x.stride(), x.tolist(), y.tolist()))
    assert found[0] == found[1]
