"""Arrays of numpy."""

from __future__ import annotations

import numpy as np
import pytest

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.semantics.calls.arrays.array_tables import SAME
from dynamo_capture.values import Const, TensorValue
from dynamo_capture.values.tensors.array import ArrayValue


def test_known_numbers_are_computed(tx):
    assert Const(np.sqrt).call(tx, [Const(4)], {}).as_constant() == 2
    made = Const(np.arange).call(tx, [Const(3)], {})
    assert isinstance(made, ArrayValue)
    assert made.is_known
    assert tx.operators.binary("*", made, Const(2)).content.tolist() == [0, 2, 4]


def test_known_numbers_are_changed_in_place(tx):
    made = Const(np.arange).call(tx, [Const(3)], {})
    assert tx.operators.binary("+=", made, Const(1)) is made
    made.set_item(tx, Const(0), Const(7))
    assert made.content.tolist() == [7, 2, 3]


def test_other_changes_break(tx):
    made = Const(np.arange).call(tx, [Const(3)], {})
    for change in (
        lambda: made.call_method(tx, "fill", [Const(3)], {}),
        lambda: Const(np.add).call(tx, [made, made], {"out": made}),
        lambda: tx.operators.binary("+=", made, Const(1.5)),
    ):
        with pytest.raises((GraphBreak, UserRaise)):
            change()


def test_a_view_of_known_numbers_shares_memory_in_the_graph(tx):
    made = Const(np.arange).call(tx, [Const(4)], {})
    shown = made.call_method(tx, "reshape", [Const(2), Const(2)], {})
    assert not made.is_known
    assert shown.tensor.memory is made.tensor.memory


def test_functions_of_the_program_are_not_numpy_s():
    assert numpy_types.is_pure_function(np.exp)
    assert not numpy_types.is_pure_function(np.copyto)
    assert not numpy_types.is_pure_function(np.frompyfunc(lambda a: a, 1, 1))


def test_a_tensor_as_an_array(tx, tensor):
    seen = tensor.call_method(tx, "numpy", [], {})
    assert isinstance(seen, ArrayValue)
    assert seen.as_tensor(tx) is tensor
    root = Const(np.sqrt).call(tx, [seen], {})
    assert isinstance(root.tensor, TensorValue)
    mean = Const(np.mean).call(tx, [seen], {})
    assert mean.is_number
    assert mean.python_type() is np.float32
    with pytest.raises(GraphBreak):
        Const(np.unique).call(tx, [seen], {})


@pytest.mark.parametrize("function", [f for f in SAME if isinstance(f, np.ufunc) and f.nin == 1], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_torch_computes_what_numpy_computes(function, dtype):
    import torch

    values = np.array([-2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 3.7, np.inf, -np.inf, np.nan], dtype=dtype)
    with np.errstate(all="ignore"):
        expected = function(values)
    found = SAME[function](torch.from_numpy(values)).numpy()
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5)
