"""Which operators may raise because of what is in their tensors."""

import pytest
import torch

from fx_interface.attention.operators import ATTENTION
from fx_interface.operator_facts.data_errors import is_opaque, may_fail

aten = torch.ops.aten
INTEGERS = torch.ones(2, dtype=torch.int64)
FLOATS = torch.ones(2)


@pytest.mark.parametrize(
    ("op", "args", "kwargs"),
    [
        (aten.index.Tensor, (FLOATS, [INTEGERS]), {}),
        (aten.index_put_.default, (FLOATS, [INTEGERS], FLOATS), {}),
        (aten.embedding.default, (FLOATS, INTEGERS), {}),
        (aten._linalg_check_errors.default, (INTEGERS, "cholesky"), {}),
        (aten.linalg_eigh.default, (FLOATS,), {}),
        (aten.linalg_inv_ex.default, (FLOATS,), {"check_errors": True}),
        (aten.cholesky_inverse.default, (FLOATS,), {}),
        (aten._assert_scalar.default, (1, ""), {}),
        (aten.floor_divide.default, (INTEGERS, INTEGERS), {}),
        (aten.remainder.Scalar, (INTEGERS, 0), {}),
        (aten.div_.Tensor_mode, (INTEGERS, INTEGERS), {"rounding_mode": "trunc"}),
        (aten.bernoulli.default, (FLOATS,), {}),
        (aten.normal.float_Tensor, (0.0, FLOATS), {}),
        (aten.exponential_.default, (FLOATS, -1.0), {}),
        (aten.uniform.default, (FLOATS, 2.0, 1.0), {}),
        (aten.normal_.default, (FLOATS,), {"std": -1.0}),
        (aten.random_.to, (FLOATS, 0), {}),
        (aten.geometric_.default, (FLOATS, object()), {}),
        (aten.binary_cross_entropy.default, (FLOATS, FLOATS), {}),
        (aten.searchsorted.Tensor, (FLOATS, FLOATS), {"sorter": INTEGERS}),
        (aten.view.dtype, (FLOATS, torch.float64), {}),
        (torch.ops.profiler._record_function_enter_new.default, ("",), {}),
    ],
    ids=lambda part: str(part) if isinstance(part, torch._ops.OpOverload) else "",
)
def test_what_data_decide_about(op, args, kwargs):
    assert may_fail(op, args, kwargs)


@pytest.mark.parametrize(
    ("op", "args", "kwargs"),
    [
        (aten.add.Tensor, (FLOATS, FLOATS), {}),
        (aten.exponential_.default, (FLOATS,), {}),
        (aten.uniform.default, (FLOATS, 1.0, 2.0), {"generator": None}),
        (aten.random_.default, (FLOATS,), {}),
        (aten.random_.to, (FLOATS, 1), {}),
        (getattr(aten.random_, "from"), (FLOATS, 1, 2), {}),
        (aten.linalg_vector_norm.default, (FLOATS,), {}),
        (aten.linalg_inv_ex.default, (FLOATS,), {}),
        (aten.floor_divide.default, (FLOATS, INTEGERS), {}),
        (aten.remainder.Scalar, (INTEGERS, 3), {}),
        (aten.div.Tensor, (INTEGERS, INTEGERS), {}),
        (aten.view.dtype, (FLOATS, torch.int32), {}),
        (aten.bernoulli.p, (FLOATS, 0.5), {}),
        (aten._foreach_add_.List, ([FLOATS], [FLOATS]), {}),
    ],
    ids=lambda part: str(part) if isinstance(part, torch._ops.OpOverload) else "",
)
def test_what_always_works(op, args, kwargs):
    assert not may_fail(op, args, kwargs)


@pytest.mark.parametrize(
    ("program", "fails"), [("op:aten.tanh.default", False), ("op:aten.index.Tensor", True)]
)
def test_attention_fails_where_its_programs_read_at_indices(program: str, fails: bool) -> None:
    tensors = [FLOATS] * 3
    assert may_fail(ATTENTION, (*tensors, [], [], [], program, "", [], [], 1.0, [], False)) is fails
    assert not is_opaque(ATTENTION)
