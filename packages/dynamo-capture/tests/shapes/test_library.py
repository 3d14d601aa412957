"""The default operator library: what an operator returns is learnt by running it."""

from __future__ import annotations

import pytest
import torch

from dynamo_capture.shapes.library import TrialLibrary
from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec

CPU = torch.device("cpu")
SQUARE = TensorSpec((2, 3, 3), (9, 3, 1), torch.float32, CPU)


@pytest.mark.parametrize(
    ("op", "args", "kwargs", "shape"),
    [
        (torch.ops.aten.multinomial.default, (TensorSpec((4, 3), (3, 1), torch.float32, CPU), 2), {}, (4, 2)),
        (torch.ops.aten.linalg_cholesky_ex.default, (SQUARE,), {"check_errors": True}, (2, 3, 3)),
        (torch.ops.aten.linalg_inv_ex.default, (SQUARE,), {"check_errors": True}, (2, 3, 3)),
    ],
)
def test_an_operator_that_refuses_zeros(op, args, kwargs, shape):
    found = TrialLibrary().infer(op, args, kwargs, ShapeEnv())
    assert (found[0] if isinstance(found, tuple) else found).sizes == shape


def test_wrong_arguments_raise_what_the_operator_raises():
    with pytest.raises(RuntimeError, match="matri"):
        TrialLibrary().infer(torch.ops.aten.mm.default, (SQUARE, SQUARE), {}, ShapeEnv())


def test_content_that_a_trial_makes_up_is_refused():
    pointers, columns = (TensorSpec((n,), (1,), torch.int64, CPU) for n in (3, 2))
    checked = torch.sparse.check_sparse_tensor_invariants()
    with checked, pytest.raises(UnsupportedProgramError, match="CAP406"):
        TrialLibrary().infer(
            torch.ops.aten.sparse_compressed_tensor.comp_plain_value_size,
            (pointers, columns, TensorSpec((2,), (1,), torch.float32, CPU), [2, 2]),
            {"layout": torch.sparse_csr},
            ShapeEnv(),
        )


def test_nested_results():
    listed = [TensorSpec((2,), (1,), torch.float32, CPU)]
    with pytest.raises(UnsupportedProgramError, match="CAP405"):
        TrialLibrary().infer(
            torch.ops.aten._nested_tensor_from_tensor_list.default, (listed,), {}, ShapeEnv()
        )
