"""Gradients that are sparse tensors: made of the same parts, in the same order, as by torch."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from aot_autograd.pipeline import trace
from aot_autograd.plan_json import plan_from_data, plan_to_data
from fx_interface.errors import UnsupportedProgramError
from fx_interface.signature import InputDecl, InputKind
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of

PICKS = torch.tensor([[1, 2, 2], [0, 4, 1]])
BAGS = torch.tensor([0, 2, 2, 5])


def _bag(table: torch.Tensor, picks: torch.Tensor, mode: str, **options: Any) -> torch.Tensor:
    return F.embedding_bag(picks.reshape(-1), table, BAGS, mode=mode, sparse=True, **options).sin()


PROGRAMS = {
    "lookup": lambda w, i: F.embedding(i, w, sparse=True).sin(),
    "of a computed index": lambda w, i: F.embedding((i + 1) % 5, w, sparse=True).sin(),
    "of one index": lambda w, i: F.embedding(i[0, 0], w, sparse=True).sin(),
    "of integers of 32 bits": lambda w, i: F.embedding(i.int(), w, sparse=True).sin(),
    "with padding": lambda w, i: F.embedding(i, w, padding_idx=1, sparse=True).sin(),
    "with padding from the end": lambda w, i: F.embedding(i, w, padding_idx=-4, sparse=True).sin(),
    "of padding alone": lambda w, i: F.embedding(i[:, :1] * 0, w, padding_idx=0, sparse=True).sin(),
    "of nothing": lambda w, i: F.embedding(i[:0], w, sparse=True).sin(),
    "twice": lambda w, i: F.embedding(i, w, sparse=True).sin() + F.embedding(i * 0, w, sparse=True).cos(),
    "beside a product": lambda w, i: (F.embedding(i, w, sparse=True) @ w.t()).sin(),
    "before a sum": lambda w, i: F.embedding(i, w, sparse=True).sin() * w.sum(),
    "of a multiple": lambda w, i: F.embedding(i, w * 2, sparse=True).sin(),
    "sums": lambda w, i: _bag(w, i, "sum"),
    "means": lambda w, i: _bag(w, i, "mean"),
    "sums with padding": lambda w, i: _bag(w, i, "sum", padding_idx=2),
    "gather": lambda w, i: torch.gather(w, 0, i, sparse_grad=True).sin(),
}


def _described(gradient: torch.Tensor | None) -> Any:
    if gradient is None or not gradient.is_sparse:
        return gradient
    return gradient._indices(), gradient._values(), gradient.is_coalesced(), gradient.shape


def _gradients(function: Any, used: tuple[int, ...] = (0,)) -> list[Any]:
    """The gradient of a table after each of two backwards."""
    table = torch.linspace(-1, 1, 20).reshape(5, 4).requires_grad_()
    found = []
    for _ in range(2):
        results = function(table, PICKS)
        results = results if isinstance(results, tuple) else (results,)
        sum(results[n].square().sum() for n in used).backward()
        gradient = table.grad
        found.append(_described(gradient.clone() if gradient is not None else None))
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_agree(compiled: Any, name: str) -> None:
    expected, found = _gradients(PROGRAMS[name]), _gradients(compiled(PROGRAMS[name]))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
def test_what_has_not_arrived_is_not_part_of_it(compiled: Any, used: tuple[int, ...]) -> None:
    def program(w: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.embedding(i, w, sparse=True).sin(), F.embedding(i + 0 * i, w, sparse=True)[:1].cos()

    torch.testing.assert_close(_gradients(compiled(program), used), _gradients(program, used))


def test_memory_of_the_index(compiled: Any) -> None:
    table = torch.randn(5, 4, requires_grad=True)
    compiled(PROGRAMS["lookup"])(table, PICKS).sum().backward()
    assert table.grad is not None
    assert table.grad._indices().data_ptr() == PICKS.data_ptr()


def test_second_derivatives(compiled: Any) -> None:
    found = []
    for function in (PROGRAMS["lookup"], compiled(PROGRAMS["lookup"])):
        table = torch.linspace(-1, 1, 20).reshape(5, 4).requires_grad_()
        (gradient,) = torch.autograd.grad(function(table, PICKS).square().sum(), table, create_graph=True)
        gradient.to_dense().sum().backward()
        found.append(_described(table.grad))
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize(
    "program",
    [
        lambda w, i: F.embedding(i, w.clamp(-1, 1), sparse=True),
        lambda w, i: F.embedding(i, w.t(), sparse=True),
        lambda w, i: F.embedding(i, w.double(), sparse=True),
        lambda w, i: F.embedding(i[0, 0], w, padding_idx=1, sparse=True),
    ],
)
def test_what_torch_refuses(compiled: Any, program: Any) -> None:
    table = torch.randn(5, 4, requires_grad=True)
    with pytest.raises((RuntimeError, IndexError)):
        program(table, PICKS).sum().backward()
    with pytest.raises(UnsupportedProgramError, match="AOT1"):
        compiled(program)(table, PICKS)


def test_a_plan_survives_json(library: Any) -> None:
    table = torch.randn(5, 4, requires_grad=True)
    declared = [InputDecl(f"x{n}", InputKind.USER, spec_of(t)) for n, t in enumerate((table, PICKS))]

    def program(recorder: Any, inputs: Any) -> list[Any]:
        return [PROGRAMS["with padding"](*inputs)]

    plan = trace(program, declared, (table, PICKS), operators=library, env=ShapeEnv()).plan
    assert plan.backward is not None
    assert plan.backward.behind
    assert plan_from_data(json.loads(json.dumps(plan_to_data(plan)))).backward == plan.backward
