"""Groups on a CPU whose rows lie side by side and are long."""

from __future__ import annotations

import pytest
import torch

from inductor_codegen.lower.values import Lowered, Value
from inductor_codegen.schedule.fusion.cpu_groups import has_long_columns
from inductor_codegen.schedule.fusion.domain import Domain
from inductor_codegen.schedule.fusion.groups import Group, Position

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("strides", "size", "expected"),
    [
        ((16 * 80 * 80, 1, 16 * 80, 16), 80, True),
        ((16 * 80 * 80, 80 * 80, 80, 1), 80, False),
        ((16 * 4 * 4, 1, 16 * 4, 16), 4, False),
    ],
)
def test_which_have(strides: tuple[int, ...], size: int, expected: bool) -> None:
    sizes = (2, 16, size, size)
    lowered = Lowered()
    lowered.values.append(Value(0, "x", sizes, strides, torch.float32, CPU, None))
    group = Group(0, Domain(sizes, [False, True, False, False]), CPU)
    group.stored[0] = Position.FULL
    assert has_long_columns(group, lowered) is expected


def test_without_rows() -> None:
    assert not has_long_columns(Group(0, Domain((8000, 80)), CPU), Lowered())
