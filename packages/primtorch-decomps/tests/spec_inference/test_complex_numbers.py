"""Complex operators with symbolic sizes: layout as for real numbers, dtype as the kernel has it, no size fixed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of
from primtorch_decomps import LIBRARY
from primtorch_decomps.spec_inference.complex_numbers import spec_of_complex
from primtorch_decomps.testing import SymbolicTwins, check_symbolic_spec

ATEN = torch.ops.aten
Z = torch.complex(torch.randn(4, 6), torch.randn(4, 6))


@pytest.mark.parametrize(
    ("op", "args", "kwargs"),
    [
        (ATEN.mul.Tensor, (Z, torch.ones(6)), {}),
        (ATEN.mul.Scalar, (Z, 2j), {}),
        (ATEN.abs.default, (Z.t(),), {}),
        (ATEN.sum.dim_IntList, (Z, [0], True), {}),
        (ATEN.stack.default, ([Z, Z * 2], 1), {}),
        (ATEN.index.Tensor, (Z, [torch.tensor([1, 0, 3])]), {}),
        (ATEN.eq.Tensor, (Z, Z), {}),
        (ATEN.split.Tensor, (Z, 2), {}),
    ],
    ids=str,
)
def test_layout_and_dtype(op: Any, args: Any, kwargs: Any) -> None:
    check_symbolic_spec(op, args, kwargs)


def test_no_size_is_fixed() -> None:
    twins = SymbolicTwins()
    spec = twins(Z)
    made: Any = LIBRARY.infer(ATEN.exp.default, (spec,), {}, twins.env)
    assert made.sizes == spec.sizes
    assert not twins.env.replacements


def test_what_the_kernel_does_not_confirm_is_not_taken() -> None:
    twins = SymbolicTwins()
    spec = twins(Z)

    def wrong(args: Any, kwargs: Any) -> Any:
        return spec_of(torch.ones(4))

    assert spec_of_complex(ATEN.exp.default, (spec,), {}, twins.env, wrong) is NotImplemented
    assert spec_of_complex(ATEN.exp.default, (spec_of(Z),), {}, ShapeEnv(), wrong) is NotImplemented
