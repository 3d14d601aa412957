"""Every ATen call that torch's own operator samples make: spec, symbolic spec and value against eager."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from fx_interface.errors import UnsupportedProgramError
from fx_interface.torch_internals.dispatch_mode import DispatchMode
from primtorch_decomps import DECOMPOSITIONS
from primtorch_decomps.prims import freeze
from primtorch_decomps.testing import check_spec, check_symbolic_spec, check_values, specs_of

pytestmark = pytest.mark.slow
database = pytest.importorskip("torch.testing._internal.common_methods_invocations", exc_type=ImportError)

SAMPLES = 8
PARTIAL = {
    torch.ops.aten.avg_pool2d.default,
    torch.ops.aten._adaptive_avg_pool2d.default,
    torch.ops.aten.gather.default,
    torch.ops.aten.index_select.default,
    torch.ops.aten.addr.default,
    torch.ops.aten.linspace.default,
    torch.ops.aten.max_pool2d_with_indices.default,  # where the places are not read
    torch.ops.aten.max_pool2d_with_indices_backward.default,  # on a GPU
    torch.ops.aten.logspace.default,
    torch.ops.aten.multi_margin_loss.default,
    torch.ops.aten.take.default,
    torch.ops.aten.native_batch_norm.default,
    torch.ops.aten.scatter.src,  # few places of each row
    torch.ops.aten.scatter.value,
    torch.ops.aten.scatter_add.default,
}
"""Operators that are decomposed for some arguments only."""

ROUGH = {torch.ops.aten.linalg_vector_norm.default, torch.ops.aten.pow.Tensor_Tensor}
"""Powers of sums: rounding is magnified."""


class Calls(DispatchMode):
    """Logs the operators that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.logged: list[tuple[Any, Any, Any]] = []

    def dispatch(self, func: Any, args: Any, kwargs: Any) -> Any:
        self.logged.append((func, args, kwargs))
        return func(*args, **kwargs)


def calls_of(info: Any, dtype: torch.dtype) -> Iterator[tuple[Any, Any, Any]]:
    """The distinct functional ATen calls that the first samples of an operator make."""
    seen = set()
    for sample in list(info.sample_inputs("cpu", dtype))[:SAMPLES]:
        with Calls() as calls:
            info(sample.input, *sample.args, **sample.kwargs)
        for op, args, kwargs in calls.logged:
            if usable(op, args, kwargs):
                key = (op, freeze(specs_of(tuple(args))), freeze(specs_of(kwargs)))
                if key not in seen:
                    seen.add(key)
                    yield op, args, kwargs


def usable(op: Any, args: Any, kwargs: Any) -> bool:
    if not isinstance(op, torch._ops.OpOverload) or op._schema.is_mutable or not op._schema.returns:
        return False
    if torch.Tag.nondeterministic_seeded in op.tags or "empty" in op._schema.name:
        return False
    for leaf in pytree.tree_leaves((args, kwargs)):
        if isinstance(leaf, (torch.Generator, complex)):
            return False
        if isinstance(leaf, torch.Tensor) and (leaf.layout is not torch.strided or leaf.dtype.is_complex):
            return False
    return True


def check(op: Any, args: Any, kwargs: Any) -> None:
    try:
        check_spec(op, args, kwargs)
    except UnsupportedProgramError as error:
        if error.code in ("DEC101", "DEC103", "DEC104"):
            return
        raise
    check_symbolic_spec(op, args, kwargs)
    makes_complex = getattr(kwargs.get("dtype"), "is_complex", False)  # such calls stay library calls
    if op in DECOMPOSITIONS and op not in PARTIAL and not makes_complex:
        check_values(op, args, kwargs, slack=256.0 if op in ROUGH else 8.0)


NIGHTLY = {torch.bfloat16: pytest.mark.nightly}
"""Dtypes whose samples take the ways of another one's: those of float32, with other roundings."""
CASES = [
    pytest.param(info, dtype, id=f"{info.formatted_name}-{dtype}", marks=NIGHTLY.get(dtype, ()))
    for info in database.op_db
    if not info.name.startswith("jiterator")  # they exist on CUDA devices only
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool)
    if dtype in info.dtypes
]


@pytest.mark.parametrize("info, dtype", CASES)
def test_samples(info: Any, dtype: torch.dtype) -> None:
    for op, args, kwargs in calls_of(info, dtype):
        if op is not torch.ops.aten._local_scalar_dense.default:
            check(op, args, kwargs)
