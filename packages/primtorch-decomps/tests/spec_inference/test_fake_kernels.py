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


_FOR_ALL_DEVICES = {
    "anywhere": lambda x, k: x.t().contiguous()[k:] * 2,
    "data": lambda x: x * 2 if x.sum() > 0 else x[1:],
}


@pytest.fixture(scope="module")
def operators() -> Iterator[Any]:
    library = torch.library.Library("fake_kernel_tests", "DEF")  # type: ignore[no-untyped-call]
    for schema in (
        "pairs(Tensor x, int k) -> (Tensor, Tensor[])",
        "meta(Tensor x) -> Tensor",
        "bare(Tensor x) -> Tensor",
        "anywhere(Tensor x, int k) -> Tensor",
        "data(Tensor x) -> Tensor",
    ):
        library.define(schema)  # type: ignore[no-untyped-call]
        name = schema.partition("(")[0]
        kernel = _FOR_ALL_DEVICES.get(name)
        key = "CPU" if kernel is None else "CompositeExplicitAutograd"
        library.impl(name, kernel or _refuse, key)  # type: ignore[no-untyped-call]
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


def test_a_kernel_for_all_devices_describes_its_result(operators: Any) -> None:
    """As it computes on the device ``meta`` in eager."""
    env = ShapeEnv()
    n = env.create_symbol(6)
    x = _row_major(n, 4, strides=(4, 1))
    assert LIBRARY.infer(operators.anywhere.default, [x, 1], {}, env) == _row_major(3, n, strides=(n, 1))
    with pytest.raises(UnsupportedProgramError, match="does not say what it returns"):
        LIBRARY.infer(operators.data.default, [x], {}, env)


def test_an_operator_without_one_is_not_run(operators: Any) -> None:
    with pytest.raises(UnsupportedProgramError, match="register a fake kernel"):
        LIBRARY.infer(operators.bare.default, [_row_major(2, strides=(1,))], {}, ShapeEnv())
