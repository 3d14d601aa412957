"""``max_pool1d``: what the kernel refuses that eager calls without gradients."""

import pytest
import torch
from torch.nn import functional

from fx_interface.composites.pooling import functional_max_pool1d, max_pool1d

PAIRS = [(max_pool1d, torch.max_pool1d), (functional_max_pool1d, functional.max_pool1d)]


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool, torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("composite", "function"), PAIRS)
def test_dtypes(composite, function, dtype):
    x = torch.ones(1, 2, 4).to(dtype)
    if dtype.is_floating_point:
        assert torch.equal(composite(x, 2), function(x, 2))
        return
    with pytest.raises(NotImplementedError) as expected:
        function(x, 2)
    with pytest.raises(NotImplementedError) as actual:
        composite(x, 2)
    assert str(actual.value) == str(expected.value)


def test_places_of_integers():
    x = torch.arange(8).view(1, 2, 4)
    values, places = functional_max_pool1d(x, 2, return_indices=True)
    assert (values.tolist(), places.tolist()) == ([[[1, 3], [5, 7]]], [[[1, 3], [1, 3]]])
