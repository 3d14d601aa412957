"""Specs of operators that others have defined."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps import LIBRARY

CPU = torch.device("cpu")


def _refuse(*args: Any) -> Any:
    raise AssertionError("the operator itself ran")


@pytest.fixture(scope="module")
def operators() -> Iterator[Any]:
    library = torch.library.Library("fake_kernel_tests", "DEF")  # type: ignore[no-untyped-call]
    for schema in (
        "pairs(Tensor x, int k) -> (Tensor, Tensor[])",
        "meta(Tensor x) -> Tensor",
        "bare(Tensor x) -> Tensor",
    ):
        library.define(schema)  # type: ignore[no-untyped-call]
        library.impl(schema.partition("(")[0], _refuse, "CPU")  # type: ignore[no-untyped-call]
    library.impl("meta", lambda x: x.new_empty(x.shape[0] + 1), "Meta")  # type: ignore[no-untyped-call]

    @torch.library.register_fake("fake_kernel_tests::pairs", lib=library)
    def _(x: torch.Tensor, k: int) -> Any:
        return x.t().contiguous().add_(1), [x[:k], (x * 2).sum(1)]

    yield torch.ops.fake_kernel_tests
    library._destroy()  # type: ignore[no-untyped-call]


def _row_major(*sizes: Any, strides: Any) -> TensorSpec:
    return TensorSpec(sizes, strides, torch.float32, CPU)


def test_a_fake_kernel_runs_on_symbolic_sizes(operators: Any) -> None:
    env = ShapeEnv()
    n = env.create_symbol(6)
    x = _row_major(n, 4, strides=(4, 1))
    first, (some, sums) = LIBRARY.infer(operators.pairs.default, [x, 3], {}, env)  # type: ignore[misc,union-attr]
    assert first == _row_major(4, n, strides=(n, 1))
    assert some == _row_major(3, 4, strides=(4, 1))
    assert sums == _row_major(n, strides=(1,))
    assert env.simplify(n) is n
    assert LIBRARY.infer(operators.meta.default, [x], {}, env) == _row_major(n + 1, strides=(1,))


def test_an_operator_without_one_is_not_run(operators: Any) -> None:
    with pytest.raises(UnsupportedProgramError, match="register a fake kernel"):
        LIBRARY.infer(operators.bare.default, [_row_major(2, strides=(1,))], {}, ShapeEnv())
