"""Results that go to ``out=``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from fx_interface.errors import UnsupportedProgramError

MADE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "arange": lambda out: torch.arange(1, 7, 2, out=out),
    "full": lambda out: torch.full((3,), 2.5, out=out),
    "eye": lambda out: torch.eye(3, out=out),
    "linspace": lambda out: torch.linspace(0, 1, 3, out=out),
    "ones": lambda out: torch.ones(3, out=out),
    "normal": lambda out: torch.normal(0.0, 1.0, (3,), out=out),
    "rand": lambda out: torch.rand(3, out=out),
    "empty": lambda out: torch.empty(3, out=out),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", MADE)
def test_what_is_made_of_no_tensor_has_the_dtype_of_its_out(
    name: str, dtype: torch.dtype, check: Any
) -> None:
    out = torch.zeros((3, 3) if name == "eye" else 3, dtype=dtype)
    check(lambda out: MADE[name](out) * 2, out)


def test_what_is_drawn_into_gaps_is_refused(compiled: Any) -> None:
    """Eager draws along the memory: a tensor with gaps gets other numbers than one without."""
    with pytest.raises(UnsupportedProgramError, match="AOT105"):
        compiled(lambda out: torch.normal(0.0, 1.0, (20,), out=out))(torch.zeros(40)[::2])


def test_composite_operators_fill_empty_tensors_of_their_own(check: Any) -> None:
    x = torch.randn(3, 3, dtype=torch.float64)
    check(lambda x, out: torch.linalg.det(x, out=out) + 1, x, torch.zeros((), dtype=torch.float64))
    check(lambda x, out: torch.msort(x, out=out) + 1, x, torch.zeros(3, 3, dtype=torch.float64))
    check(lambda x, out: torch.special.ndtr(x, out=out) + 1, x, torch.zeros(3, 3, dtype=torch.float64))


REFUSED: dict[str, tuple[Callable[..., Any], torch.Tensor, torch.Tensor]] = {
    "smaller": (lambda x, out: torch.add(x, 1, out=out), torch.ones(1), torch.zeros(5)),
    "empty": (lambda x, out: torch.add(x, 1, out=out), torch.ones(5), torch.zeros(0)),
    "cast down": (
        lambda x, out: torch.add(x, 1.5, out=out),
        torch.ones(2),
        torch.zeros(2, dtype=torch.int64),
    ),
    "computed in the dtype of out": (
        lambda x, out: torch.sum(x, 0, out=out),
        torch.full((3, 2), 0.5),
        torch.zeros(2, dtype=torch.int64),
    ),
    "never cast": (lambda x, out: torch.mm(x, x, out=out), torch.eye(2), torch.zeros(2, 2).double()),
    "a vector as one row": (
        lambda x, out: torch._C._nn.linear(x, torch.eye(3), out=out),
        torch.ones(3),
        torch.zeros(6)[::2],
    ),
    "forgotten": (
        lambda x, out: torch.linalg.matrix_rank(x, out=out),
        torch.eye(2),
        torch.zeros((), dtype=torch.int64),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_eager_would_resize_or_cast_or_refuse_is_refused(name: str, compiled: Any) -> None:
    function, x, out = REFUSED[name]
    with pytest.raises(UnsupportedProgramError, match=r"AOT105|AOT111"):
        compiled(function)(x, out)


def test_pointwise_results_are_cast(check: Any) -> None:
    check(lambda x, out: torch.add(x, 1, out=out), torch.ones(2), torch.zeros(2, dtype=torch.float64))


def test_what_is_written_beside_out_keeps_its_place(check: Any) -> None:
    def function(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, *outs: torch.Tensor) -> Any:
        out, save_mean, save_invstd = outs
        options = {"out": out, "save_mean": save_mean, "save_invstd": save_invstd}
        op = torch.ops.aten._native_batch_norm_legit.out
        return op(x, None, None, mean, var, True, 0.1, 1e-5, **options)

    new = [torch.zeros(n, dtype=torch.float64) for n in (1, 1, 1, 1)]
    x = torch.randn(4, 1, dtype=torch.float64)
    check(function, x, new[0], new[1] + 1, torch.zeros_like(x), new[2], new[3])
