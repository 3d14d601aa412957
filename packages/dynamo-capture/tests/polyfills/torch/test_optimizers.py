"""What stands for the C functions that ``torch.optim`` calls."""

from __future__ import annotations

import pytest
import torch

from dynamo_capture import optimize

ONE, TWO = torch.ones(2), torch.ones(2, dtype=torch.float64)
LISTS = [
    [],
    [[]],
    [[], [ONE]],
    [[ONE], []],
    [[ONE, TWO], [ONE]],
    [[ONE, None]],
    [[ONE], [None]],
    [[ONE, ONE], [TWO, None]],
]


def _outcome(function, lists, with_indices):
    try:
        return repr(function(lists, with_indices))
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("with_indices", [False, True])
@pytest.mark.parametrize("lists", LISTS, ids=range(len(LISTS)))
def test_lists_are_grouped_or_refused_as_by_torch(lists, with_indices):
    def grouped(lists, with_indices):
        return torch.utils._foreach_utils._group_tensors_by_device_and_dtype(lists, with_indices)

    captured = optimize(lambda graph, _: graph.forward)(grouped)
    assert _outcome(captured, lists, with_indices) == _outcome(grouped, lists, with_indices)


def test_clipping_without_gradients_raises_what_it_raises():
    def clip(x):
        torch.nn.utils.clip_grad_value_([x], 0.5)

    captured = optimize(lambda graph, _: graph.forward)(clip)
    with pytest.raises(RuntimeError) as raised:
        clip(torch.ones(2))
    with pytest.raises(RuntimeError) as found:
        captured(torch.ones(2))
    assert str(found.value) == str(raised.value)
