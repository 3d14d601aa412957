"""Specs of collectives: none is run. There is no process group here, so that each would raise."""

from __future__ import annotations

import pytest
import torch

from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps import LIBRARY

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="torch without torch.distributed"
)
CPU = torch.device("cpu")


def spec(*sizes, strides=None) -> TensorSpec:
    return TensorSpec(sizes, strides or contiguous_strides(sizes), torch.float32, CPU)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("all_reduce", (spec(4, 3), "sum", "0"), spec(4, 3)),
        ("all_reduce", (spec(4, 3, strides=(1, 4)), "sum", "0"), spec(4, 3)),
        ("broadcast", (spec(4, 3), 0, "0"), spec(4, 3)),
        ("all_gather_into_tensor", (spec(4, 3), 2, "0"), spec(8, 3)),
        ("reduce_scatter_tensor", (spec(4, 3), "sum", 2, "0"), spec(2, 3)),
        ("all_to_all_single", (spec(4, 3), [1, 2], [2, 2], "0"), spec(3, 3)),
        ("wait_tensor", (spec(4, 3, strides=(1, 4)),), spec(4, 3, strides=(1, 4))),
        ("all_gather_into_tensor_coalesced", ([spec(4), spec(2)], 3, "0"), [spec(12), spec(6)]),
    ],
    ids=str,
)
def test_specs(name, args, expected) -> None:
    op = getattr(torch.ops._c10d_functional, name).default
    assert LIBRARY.infer(op, args, {}, ShapeEnv()) == expected


def test_a_varying_size_is_gathered() -> None:
    env = ShapeEnv()
    rows = env.create_symbol(4, low=2)
    op = torch.ops._c10d_functional.all_gather_into_tensor.default
    assert LIBRARY.infer(op, (spec(rows, 3), 2, "0"), {}, env).sizes == (rows * 2, 3)


@pytest.mark.parametrize(
    ("name", "args"),
    [("isend", (spec(4), 1, 0, "0")), ("all_gather_into_tensor", (spec(), 2, "0"))],
    ids=str,
)
def test_what_no_rule_covers_is_refused(name, args) -> None:
    with pytest.raises(UnsupportedProgramError, match="DEC107"):
        LIBRARY.infer(getattr(torch.ops._c10d_functional, name).default, args, {}, ShapeEnv())
