"""What an operator raises in eager because of its input's content, it raises compiled, whichever the backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import fxstack

FAILING: dict[str, Callable[[torch.Tensor], Any]] = {
    "cholesky": torch.linalg.cholesky,
    "inv": lambda x: torch.linalg.inv(x * 0),
    "solve": lambda x: torch.linalg.solve(x * 0, x),
    "assert_async": lambda x: (torch._assert_async((x > 0).all()), x + 1)[1],
    "multinomial": lambda x: torch.multinomial(x, 1),
    "bernoulli": lambda x: torch.bernoulli(x + 3),
    "index": lambda x: x[torch.tensor([5])],
    "mask": lambda x: x[torch.tensor([True])],
    "mask of elements": lambda x: x[:, :, None][torch.ones(2, 1, dtype=torch.bool)],
    "mask for rows from data": lambda x: x[(x > -9).any(1)][torch.tensor([True])],
    "embedding": lambda x: F.embedding(torch.tensor([7]), x),
    "gather": lambda x: x.gather(0, torch.tensor([[9, 9]])),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor([3, -4])),
    "index_add": lambda x: x.index_add(0, torch.tensor([4]), x[:1]),
    "scatter": lambda x: x.scatter(0, torch.tensor([[9, 9]]), 1.0),
    "scatter_add to few places": lambda x: torch.zeros(2, 9).scatter_add(
        1, torch.tensor([[9], [0]]), x[:, :1]
    ),
    "gather of few numbers": lambda x: x.repeat(1, 40).exp().gather(1, torch.tensor([[80], [0]])),
    "take": lambda x: torch.take(x, torch.tensor([99])),
    "one_hot": lambda x: F.one_hot(torch.tensor([5]), 3) + x.sum(),
    "one_hot_negative": lambda x: F.one_hot(torch.tensor([-1]), 3) + x.sum(),
    "floor_divide": lambda x: x.int() // (x.int() * 0),
    "index_select of -1": lambda x: x.index_select(0, torch.tensor([0, -1])),
    "index_select of rows without elements": lambda x: x[:, :0].index_select(0, torch.tensor([5])),
    "embedding of rows without elements": lambda x: F.embedding(torch.tensor([7]), x[:, :0]),
    "gather of -1": lambda x: x.gather(0, torch.tensor([[0, -1]])),
    "embedding of -1": lambda x: F.embedding(torch.tensor([0, -1]), x),
    "cross_entropy of -1": lambda x: F.cross_entropy(x, torch.tensor([1, -1])),
    "weighted nll_loss of -1": lambda x: F.nll_loss(x, torch.tensor([1, -1]), weight=x.sum(0)),
    "multi_margin_loss of -1": lambda x: F.multi_margin_loss(x, torch.tensor([1, -1])),
    "binary_cross_entropy": lambda x: F.binary_cross_entropy(x, x * x),
    "binary_cross_entropy of NaN": lambda x: F.binary_cross_entropy(x / 0, x * x),
    "binary_cross_entropy's target": lambda x: F.binary_cross_entropy(x * x, x, reduction="none"),
    "quantile": lambda x: torch.quantile(x, x[0]),
    "nanquantile": lambda x: x.nanquantile(x[0]),
    "searchsorted": lambda x: torch.searchsorted(x, x, sorter=torch.full((2, 2), 9)),
    "exponential_": lambda x: x.clone().exponential_(-1.0),
    "uniform_": lambda x: x.clone().uniform_(2.0, 1.0),
    "repeat_interleave": lambda x: torch.repeat_interleave(x, torch.tensor([-1, 2]), dim=0),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_failure_is_eagers(backend: str) -> None:
    for name, function in FAILING.items():
        with pytest.raises(Exception) as expected:  # whatever eager raises
            function(-torch.eye(2))
        with pytest.raises(type(expected.value)) as found:
            fxstack.compile(function, backend=backend)(-torch.eye(2))
        assert type(found.value) is type(expected.value), name


REFUSED: dict[str, Callable[[torch.Tensor], Any]] = {
    "written to integers": lambda x: x.clone().mul_(2.5),
    "written to booleans": lambda x: (x > 1).mul_(2),
    "quotients written to integers": lambda x: x.clone().div_(2),
    "gelu": F.gelu,
    "softmax": lambda x: x.softmax(0),
    "negation": lambda x: -(x > 1),
    "difference": lambda x: (x > 1) - (x > 2),
    "alpha": lambda x: torch.add(x, x, alpha=0.5),
    "batch_norm": lambda x: F.batch_norm(x, torch.zeros(3), torch.ones(3)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_dtypes_that_kernels_refuse(name: str) -> None:
    x = torch.arange(6).view(2, 3)
    with pytest.raises(RuntimeError) as expected:
        REFUSED[name](x)
    with pytest.raises(type(expected.value)) as found:
        fxstack.compile(REFUSED[name])(x)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_effects_end_where_an_operator_fails(backend: str) -> None:
    """In a graph that writes and draws, and does not use what the operator gives."""

    def program(x: torch.Tensor, log: list[str], function: Callable[[torch.Tensor], Any]) -> torch.Tensor:
        log.append("before")
        x.mul_(torch.rand(()) + 1)
        log.append("between")
        function(x)
        log.append("after")
        return x.add_(torch.rand(()))

    for name, function in FAILING.items():
        seen = []
        for run in (program, fxstack.compile(program, backend=backend)):
            torch.manual_seed(0)
            x, log = -torch.eye(2), list[str]()
            with pytest.raises(Exception) as caught:  # whatever eager raises
                run(x, log, function)
            state = torch.get_rng_state().tolist()
            seen.append((type(caught.value), str(caught.value), x.tolist(), log, state))
        assert seen[0] == seen[1], name
        assert seen[1][3] == ["before", "between"]


def test_a_failure_in_training_is_eagers() -> None:
    x = -torch.eye(3, requires_grad=True)
    with pytest.raises(torch.linalg.LinAlgError, match="positive-definite"):
        fxstack.compile(torch.linalg.cholesky)(x).sum().backward()
