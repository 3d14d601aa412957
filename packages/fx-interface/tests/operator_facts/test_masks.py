"""Masks among indices have the sizes of the dimensions that they stand for."""

from __future__ import annotations

import pytest
import torch

from fx_interface.operator_facts.masks import check_masks
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides


def mask(*sizes, dtype=torch.bool):
    return TensorSpec(sizes, contiguous_strides(sizes), dtype, torch.device("cpu"))


@pytest.mark.parametrize(
    "indices",
    [[mask(2)], [None, mask(4)], [None, mask(3), mask(3)], [mask(2, 2)], [mask(1, dtype=torch.uint8)]],
)
def test_others_are_refused_in_torchs_words(indices):
    given = [None if i is None else torch.ones(i.sizes, dtype=i.dtype) for i in indices]
    with pytest.raises(IndexError) as refused:
        torch.ops.aten.index.Tensor(torch.ones(3, 3, 4), given)
    with pytest.raises(IndexError) as found:
        check_masks((3, 3, 4), indices, ShapeEnv())
    assert str(found.value) == str(refused.value)


def test_what_fits_and_what_is_expected_of_sizes_from_data():
    env = ShapeEnv()
    rows = env.create_symbol(None, low=0)
    check_masks((3, 3, rows), [mask(3, 3), mask(4)], env)
    assert [str(relation) for relation in env.expected] == [f"4 == {rows}"]
    check_masks((3,), [mask(9, dtype=torch.int64)], env)
