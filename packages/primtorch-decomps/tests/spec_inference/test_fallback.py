"""Operators without a rule: trial runs, their limits and their errors."""

from __future__ import annotations

import pytest
import torch

from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import Relation, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides, spec_of
from primtorch_decomps import LIBRARY
from primtorch_decomps.spec_inference.fallback import run_for_spec
from primtorch_decomps.testing import check_spec

ATEN = torch.ops.aten
ENV = ShapeEnv()


@pytest.mark.parametrize(
    ("op", "args"),
    [
        (ATEN.linspace.default, (0.0, 1.0, 7)),
        (ATEN.upsample_bilinear2d.default, (torch.randn(1, 2, 3, 3), [6, 6], False)),
        (ATEN.linalg_cholesky_ex.default, (torch.eye(3),)),
        (ATEN.linalg_inv_ex.default, (torch.eye(3).expand(2, 3, 3),)),
        (ATEN._linalg_solve_ex.default, (torch.eye(3), torch.randn(3, 2))),
        (ATEN.complex.default, (torch.randn(2), torch.randn(2))),
        (ATEN.view_as_real.default, (torch.randn(2, dtype=torch.complex64),)),
        (ATEN.linalg_lstsq.default, (torch.randn(4, 2), torch.randn(4, 2), None)),
        (ATEN.linalg_lstsq.default, (torch.randn(2, 4), torch.randn(2, 2), None)),
        (
            ATEN._ctc_loss.default,
            (torch.randn(4, 2, 3).log_softmax(2), torch.tensor([[1, 2], [2, 1]]), [4, 4], [2, 1]),
        ),
    ],
    ids=str,
)
def test_specs(op, args) -> None:
    check_spec(op, args, {})


def test_shapes_that_depend_on_data() -> None:
    args = (spec_of(torch.zeros(4, 2)), spec_of(torch.ones(4, 2)))
    with pytest.raises(UnsupportedProgramError) as raised:
        LIBRARY.infer(ATEN.linalg_lstsq.default, args, {"driver": "gelsd"}, ENV)
    assert raised.value.code == "DEC101"
    assert "torch.where" in str(raised.value)


def test_masks_as_indices() -> None:
    with pytest.raises(UnsupportedProgramError, match="DEC101"):
        LIBRARY.infer(ATEN.index.Tensor, (spec_of(torch.ones(3)), [spec_of(torch.ones(3) > 0)]), {}, ENV)


def test_huge_inputs() -> None:
    huge = TensorSpec((1 << 20, 1 << 14), (1 << 14, 1), torch.float32, torch.device("cpu"))
    with pytest.raises(UnsupportedProgramError, match="DEC102"):
        run_for_spec(ATEN.linalg_inv_ex.default, (huge,), {}, ENV)


def test_numbers_that_depend_on_data() -> None:
    x = spec_of(torch.ones(3))
    with pytest.raises(UnsupportedProgramError, match="DEC103"):
        LIBRARY.infer(ATEN.equal.default, (x, x), {}, ENV)


def test_sparse_results() -> None:
    with pytest.raises(UnsupportedProgramError, match="DEC104"):
        LIBRARY.infer(ATEN._to_sparse.default, (spec_of(torch.ones(3, 3)),), {}, ENV)


def test_quantized_results() -> None:
    """A quantized tensor's numbers lie beside its memory: a spec could not say what it is."""
    arguments = (spec_of(torch.ones(3)), 0.1, 3, torch.quint8)
    with pytest.raises(UnsupportedProgramError, match="DEC104"):
        LIBRARY.infer(ATEN.quantize_per_tensor.default, arguments, {}, ENV)


def test_the_random_state_is_put_back() -> None:
    before = torch.get_rng_state()
    run_for_spec(ATEN.rand.default, ([3],), {}, ENV)
    run_for_spec(ATEN.randperm.default, (5,), {}, ENV)
    assert torch.equal(torch.get_rng_state(), before)


def test_symbolic_sizes_become_constants() -> None:
    env = ShapeEnv()
    n = env.create_symbol(6)
    spec = TensorSpec((n, n), (n, 1), torch.float32, torch.device("cpu"))
    found = run_for_spec(ATEN.linalg_inv_ex.default, (spec,), {}, env)
    assert isinstance(found, tuple)
    assert isinstance(found[0], TensorSpec)
    assert found[0].sizes == (6, 6)
    assert [str(guard.relation) for guard in env.guards] == ["s0 == 6"]


def test_memory_that_overlaps() -> None:
    check_spec(
        ATEN.upsample_bilinear2d.default, (torch.randn(1, 1, 3, 3).expand(1, 2, 3, 3), [6, 6], False), {}
    )


def test_strides_of_new_results_leave_sizes_open() -> None:
    """The last column of a matrix of any width: only its layout matters, not how far apart its elements are."""
    env = ShapeEnv()
    width = env.create_symbol(6, None, low=2)
    column = TensorSpec((2, 1), (width, 1), torch.int64, torch.device("cpu"))
    found = run_for_spec(ATEN.isin.Tensor_Tensor, (column, spec_of(torch.tensor([1, 2]))), {}, env)
    assert (found.sizes, found.strides) == ((2, 1), (1, 1))
    assert not env.guards, "that the width is at least 2 was known"


def test_strides_of_views_are_fixed() -> None:
    env = ShapeEnv()
    width = env.create_symbol(6, None, low=2)
    pairs = TensorSpec((3, 2), (width, 1), torch.float32, torch.device("cpu"))
    run_for_spec(ATEN.view.dtype, (pairs, torch.float64), {}, env)
    assert Relation("==", width, 6) in [guard.relation for guard in env.guards]


def test_pivots_of_several_matrices_are_tried_as_ones() -> None:
    def spec(*sizes: int, dtype: torch.dtype = torch.float32) -> TensorSpec:
        return TensorSpec(sizes, contiguous_strides(sizes), dtype, torch.device("cpu"))

    args = (spec(2, 4, 4), spec(2, 4, dtype=torch.int32), spec(2, 4, 3))
    found = run_for_spec(torch.ops.aten.linalg_lu_solve.default, args, {}, ShapeEnv())
    assert isinstance(found, TensorSpec)
    assert found.sizes == (2, 4, 3)


def test_content_that_a_trial_makes_up_is_refused() -> None:
    """Neither zeros nor ones are row pointers of two elements: it is not the program's content that is refused."""
    pointers, columns = torch.zeros(3, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)
    args = (spec_of(pointers), spec_of(columns), spec_of(torch.ones(2)), [2, 2])
    checked = torch.sparse.check_sparse_tensor_invariants()
    with checked, pytest.raises(UnsupportedProgramError, match="DEC108"):
        run_for_spec(
            ATEN.sparse_compressed_tensor.comp_plain_value_size, args, {"layout": torch.sparse_csr}, ENV
        )


def test_what_is_refused_of_equal_numbers_is_tried_with_different_ones() -> None:
    """Zeros and ones name one diagonal twice."""
    args = (spec_of(torch.zeros(3, 3)), spec_of(torch.zeros(3, dtype=torch.int64)), [3, 3])
    with pytest.raises(UnsupportedProgramError, match="DEC104"):
        run_for_spec(ATEN._spdiags.default, args, {}, ENV)


def test_what_an_operator_that_is_not_known_refuses_of_stand_ins() -> None:
    handle = spec_of(torch.ones(()))
    with pytest.raises(UnsupportedProgramError, match="DEC108"):
        run_for_spec(torch.ops.profiler._record_function_exit.default, (handle,), {}, ENV)


def test_nested_results() -> None:
    with pytest.raises(UnsupportedProgramError, match="DEC104"):
        run_for_spec(ATEN._nested_tensor_from_tensor_list.default, ([spec_of(torch.ones(2))],), {}, ENV)
