"""Whether two tensors may share an element."""

from __future__ import annotations

import pytest
import torch

from aot_autograd.runtime.inputs.overlap import overlapping

BASE = torch.zeros(4, 4)


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        (BASE, BASE.t(), True),
        (BASE[0], BASE[1], False),
        (BASE[:2], BASE[1:], True),
        (BASE[0], BASE[:, 0], True),
        (BASE, torch.zeros(4, 4), False),
        (BASE[:0], BASE, False),
        (torch.zeros(0), torch.zeros(0), False),
        (BASE.view(torch.int32)[0], BASE[0], True),
    ],
)
def test_overlap(one: torch.Tensor, two: torch.Tensor, expected: bool) -> None:
    assert overlapping(one, two) is expected
    assert overlapping(two, one) is expected
