"""``x.data`` counts its writes apart from ``x``, also where a graph hands it on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import fxstack


def _made(x: torch.Tensor) -> Any:
    made = x * 2
    return made, made.data


PROGRAMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "of an input": lambda x: (x, x.data),
    "of a view of an input": lambda x: (x, x.view(-1).data),
    "a view of it": lambda x: (x, x.data.view(-1)),
    "of a computed tensor": _made,
    "a view of a computed tensor's": lambda x: (lambda made: (made, made.data.view(-1)))(x * 2),
    "detached": lambda x: (x, x.detach()),
    "a detached part": lambda x: (x, x.detach()[0]),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("followed", [True, False], ids=["with gradients", "without"])
def test_writes_count(program: Callable[[torch.Tensor], Any], backend: str, followed: bool) -> None:
    told = []
    for function in (program, fxstack.compile(program, backend=backend)):
        x, data = function(torch.ones(2, 2, requires_grad=followed) * 1)
        saved = x.exp()
        before = x._version, data._version
        data.add_(1)
        told.append((x._version - before[0], data._version - before[1], saved.requires_grad))
        assert torch.equal(x.detach().view(-1)[:2], data.view(-1)[:2])
    assert told[0] == told[1]


def _with_its_view(x: torch.Tensor) -> Any:
    data = x.data
    return x, data.view(-1), data


def _parts(x: torch.Tensor) -> Any:
    data = x.data
    return x, data[0], data[1]


def _of_two(x: torch.Tensor) -> Any:
    made = x * 2
    data, other = made.data, made.data
    return data, data[0], data.detach(), other, other[0], made


SEVERAL = [_with_its_view, _parts, _of_two]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", SEVERAL)
@pytest.mark.parametrize("followed", [True, False], ids=["with gradients", "without"])
def test_several_tensors_of_one_count_together(
    program: Callable[[torch.Tensor], Any], backend: str, followed: bool
) -> None:
    told = []
    for function in (program, fxstack.compile(program, backend=backend)):
        results = function(torch.ones(2, 2, requires_grad=followed) * 1)
        told.append([_counts(results), [[one._base is other for other in results] for one in results]])
    assert told[0] == told[1]


def _counts(results: Any) -> list[list[int]]:
    """For each result, how many writes all results count when it is written to."""
    found = []
    for written in results:
        before = [one._version for one in results]
        with torch.no_grad():
            written.add_(1)
        found.append([one._version - version for one, version in zip(results, before, strict=True)])
    return found


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_backward_of_a_view_of_data_is_refused(backend: str) -> None:
    """Silently made with what was written, if the two counted apart."""
    function = fxstack.compile(_with_its_view, backend=backend)
    _, view, data = function(torch.ones(2, 2))
    weight = torch.ones(2, 2, requires_grad=True)
    result = (data * weight).sum()
    view.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_backward_may_follow(backend: str) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        made = x * x
        held = x.data
        print("a graph ends here", end="")
        held.mul_(2)
        return made.sum()

    gradients = []
    for function in (program, fxstack.compile(program, backend=backend)):
        x = torch.ones(2, requires_grad=True)
        function(x * 1).backward()
        gradients.append(x.grad)
    assert torch.equal(gradients[0], gradients[1])
