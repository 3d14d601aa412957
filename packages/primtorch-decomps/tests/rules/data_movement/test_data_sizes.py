"""Specs with sizes that only data tell, against real results: sizes above, at and below 2."""

from __future__ import annotations

import pytest
import torch

from fx_interface.errors import UnbackedSymbolError
from fx_interface.symbols import Relation, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, spec_of
from primtorch_decomps import LIBRARY
from primtorch_decomps.strides import view_strides
from primtorch_decomps.testing import check_spec, check_symbolic_spec

ATEN = torch.ops.aten
MANY = torch.tensor([[0.0, 1, 2], [3, 0, 3]])
LOGITS = torch.randn(4, 2, 3).log_softmax(2)
NUMBERS = torch.tensor([3, 1, 1, 5, 1])


@pytest.mark.parametrize(
    ("op", "args", "kwargs"),
    [
        *[
            (op, (x,), {})
            for op in (ATEN.nonzero.default, ATEN.argwhere.default)
            for x in (MANY, MANY * 0, MANY == 1)
        ],
        *[(ATEN.masked_select.default, (MANY, MANY > limit), {}) for limit in (0, 2, 9)],
        (ATEN.masked_select.default, (MANY, torch.tensor([True, False, True])), {}),
        (ATEN._unique.default, (NUMBERS,), {"return_inverse": True}),
        (ATEN._unique2.default, (NUMBERS, True, True, True), {}),
        (ATEN._unique2.default, (NUMBERS * 0,), {}),
        (ATEN.unique_consecutive.default, (NUMBERS, True, True), {}),
        (ATEN.unique_consecutive.default, (NUMBERS,), {"dim": 0}),
        (ATEN.unique_dim.default, (torch.arange(24.0).view(2, 3, 4), 1, True, True, True), {}),
        (ATEN.unique_dim_consecutive.default, (torch.arange(24.0).view(2, 3, 4), -1), {}),
        (ATEN.bincount.default, (NUMBERS,), {}),
        (ATEN.bincount.default, (NUMBERS, torch.ones(5)), {"minlength": 9}),
        (ATEN.repeat_interleave.Tensor, (NUMBERS,), {}),
        (ATEN.repeat_interleave.Tensor, (NUMBERS,), {"output_size": 11}),
        (
            ATEN._ctc_loss.Tensor,
            (LOGITS, torch.tensor([[1, 2], [2, 1]]), torch.tensor([4, 4]), torch.tensor([2, 1])),
            {},
        ),
        (ATEN._local_scalar_dense.default, (torch.tensor(-5),), {}),
        (ATEN._local_scalar_dense.default, (torch.tensor(200, dtype=torch.uint8),), {}),
    ],
    ids=str,
)
def test_specs(op, args, kwargs) -> None:
    check_spec(op, args, kwargs)
    if op is not ATEN.repeat_interleave.Tensor or not kwargs:
        check_symbolic_spec(op, args, kwargs)


def test_each_call_has_symbols_of_its_own() -> None:
    env, spec = ShapeEnv(), spec_of(MANY)
    one, other = (LIBRARY.infer(ATEN.nonzero.default, (spec,), {}, env) for _ in range(2))
    assert one.sizes[0] is not other.sizes[0]


def counted(env: ShapeEnv, *rest: int) -> TensorSpec:
    size = env.create_symbol(None, low=0, high=8)
    strides = [1]
    for n in reversed(rest):
        strides.insert(0, strides[0] * n)
    return TensorSpec((size, *rest), tuple(strides), torch.float32, torch.device("cpu"))


def test_what_goes_on_with_such_sizes() -> None:
    env = ShapeEnv()
    x = counted(env, 4)
    size = x.sizes[0]
    assert LIBRARY.infer(ATEN.add.Tensor, (x, x), {}, env).sizes == (size, 4)
    assert LIBRARY.infer(ATEN.view.default, (x, [-1, 2]), {}, env).sizes == (size * 2, 2)
    assert LIBRARY.infer(ATEN.t.default, (x,), {}, env).strides == (1, 4)
    assert LIBRARY.infer(ATEN.mm.default, (x, spec_of(torch.ones(4, 3))), {}, env).sizes == (size, 3)
    assert not env.expected


def test_columns_of_at_most_one_row() -> None:
    """A number that is 0 or 1 is no reason to ask whether it is more."""
    env = ShapeEnv()
    rows = LIBRARY.infer(ATEN.nonzero.default, (spec_of(torch.ones(1)),), {}, env)
    column = LIBRARY.infer(ATEN.slice.Tensor, (rows, 1, 0, 1), {}, env)
    assert view_strides(column.sizes, column.strides, rows.sizes[:1], env) == (1,)


def test_one_element_picked_by_an_index_from_data() -> None:
    env = ShapeEnv()
    index = LIBRARY.infer(ATEN._unique.default, (spec_of(torch.tensor([0, 0])),), {}, env)[0]
    assert (
        LIBRARY.infer(ATEN.index_select.default, (spec_of(torch.tensor(1.0)), 0, index), {}, env).sizes == ()
    )
    assert env.expected == [Relation("==", index.sizes[0], 1)]


def test_a_slice_up_to_a_number_is_cut_as_python_cuts_it() -> None:
    env = ShapeEnv()
    end = LIBRARY.infer(ATEN._local_scalar_dense.default, (spec_of(torch.tensor(1)),), {}, env).expr
    found = LIBRARY.infer(ATEN.slice.Tensor, (spec_of(torch.ones(8)), 0, 0, end), {}, env)
    for number in (-20, -8, -3, 0, 5, 8, 30):
        (size,) = found.sizes
        assert Relation("==", size, len(range(8)[:number])).holds({end.as_symbol: number})


@pytest.mark.parametrize(
    ("op", "args"),
    [
        (ATEN.amax.default, lambda x: (x, [0])),
        (ATEN.select.int, lambda x: (x, 0, 3)),
        (ATEN.split_with_sizes.default, lambda x: (x, [2, 3])),
    ],
    ids=["amax", "select", "split"],
)
def test_what_operators_require_is_expected(op, args) -> None:
    env = ShapeEnv()
    x = counted(env)
    if op is ATEN.select.int:
        with pytest.raises(UnbackedSymbolError):
            LIBRARY.infer(op, args(x), {}, env)
        return
    LIBRARY.infer(op, args(x), {}, env)
    assert [relation.op for relation in env.expected] == ["<=" if op is ATEN.amax.default else "=="]


def test_broadcasting_of_different_sizes_has_no_answer() -> None:
    env = ShapeEnv()
    x, y = counted(env), counted(env)
    with pytest.raises(UnbackedSymbolError):
        LIBRARY.infer(ATEN.add.Tensor, (x, y), {}, env)
    env.learn(Relation("==", x.sizes[0], y.sizes[0]))
    assert LIBRARY.infer(ATEN.add.Tensor, (x, y), {}, env).sizes == x.sizes
