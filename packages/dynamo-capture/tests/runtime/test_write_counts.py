"""Counts of writes of tensors to which a branch that is taken back has written."""

from __future__ import annotations

import pytest
import torch

from dynamo_capture.runtime.write_counts import TakenBack


@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize("holds", [True, False])
def test_only_what_is_chosen_counts(answer: bool, holds: bool) -> None:
    tensors = [torch.zeros(2), torch.zeros(3)]
    tensors[0].add_(1)
    before = [tensor._version for tensor in tensors]
    for tensor, count in zip(tensors, (2, 1), strict=True):
        for _ in range(count + 1):
            tensor.add_(1)
    TakenBack(holds, (2, 1))(torch.tensor(answer), *tensors)
    done = [2, 1] if answer is holds else [0, 0]
    assert [tensor._version for tensor in tensors] == [a + b for a, b in zip(before, done, strict=True)]


def test_views_of_one_tensor_count_together() -> None:
    base = torch.zeros(4)
    views = [base[:3], base[1:]]
    for view in views:
        view.add_(1)
        view.add_(1)
    TakenBack(True, (1, 1))(torch.tensor(False), *views)
    assert base._version == 0
