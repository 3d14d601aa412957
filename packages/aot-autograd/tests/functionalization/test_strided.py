"""Views named by places in memory: they count from where the viewed value lies, wherever a copy of it lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from aot_autograd.functionalization.strided import _is_diagonal
from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec

Program = Callable[[torch.Tensor], Any]
ROWS = torch.arange(72.0, dtype=torch.float64).view(12, 6) + 0.5


def _filled_diagonal(x: torch.Tensor) -> Any:
    y = x.clone()
    y.fill_diagonal_(0)
    return y * x


def _diagonal_of_a_part(x: torch.Tensor) -> Any:
    part = (x * 2)[1:4]
    part.fill_diagonal_(5.0)
    return part @ part.t()


def _from_a_place(x: torch.Tensor) -> Any:
    return (x + 1).as_strided((2, 2), (3, 1), 1).sin()


def _a_copy_of_a_part(x: torch.Tensor) -> Any:
    part = x[1:4].clone()
    part.as_strided((2,), (1,), 0).zero_()
    return part * x[:3]


def _before_the_part(x: torch.Tensor) -> Any:
    return torch.as_strided_copy((x * x)[1:], (2, 2), (3, 1), 2)


def _scattered(x: torch.Tensor) -> Any:
    return torch.as_strided_scatter(x[1:] * 2, x[:2, :2], (2, 2), (3, 1), 2)


def _through_other_views(x: torch.Tensor) -> Any:
    y = x * 3
    column = y.unbind(1)[2].split(2)[1]
    every_other = column.as_strided((2,), (6,), column.storage_offset()) * 2
    y[1:].diagonal(1).as_strided((2,), (7,)).add_(1)
    return y, every_other


def _through_another_dtype(x: torch.Tensor) -> Any:
    parts = torch.view_as_real(torch.complex(x, x * 2)[1])
    return parts.as_strided((3,), (4,), parts.storage_offset() + 1).clone()


PROGRAMS = (
    _filled_diagonal,
    _diagonal_of_a_part,
    _from_a_place,
    _a_copy_of_a_part,
    _before_the_part,
    _scattered,
    _through_other_views,
    _through_another_dtype,
)


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("program", PROGRAMS)
def test_values_and_gradients(program: Program, first: int, check: Any) -> None:
    check(program, ROWS[first : first + 6])
    check(program, ROWS.clone()[first : first + 6].detach().requires_grad_())


def test_a_diagonal_is_filled_in_an_input_that_begins_elsewhere(compiled: Any) -> None:
    def program(x: torch.Tensor) -> Any:
        x.fill_diagonal_(7)
        return x * 2

    fast = compiled(program)
    for first in (2, 0, 2):  # the second and third find compiled code for another place
        one, two = ROWS.clone(), ROWS.clone()
        torch.testing.assert_close(
            fast(one[first : first + 6]), program(two[first : first + 6]), rtol=0, atol=0
        )
        assert torch.equal(one, two)


def test_offsets_of_tensors_are_those_of_eager(check: Any) -> None:
    def program(x: torch.Tensor) -> Any:
        y = x + 1
        views = (
            y[2:, 1],
            y.t()[1],
            y.diagonal(-1),
            *y.split([1, 2, 3]),
            y[-1],
            y[:, -2:][1],
            y.view(-1)[3::2],
        )
        return y.sum() * 0 + torch.tensor([float(view.storage_offset()) for view in views])

    check(program, ROWS[:6])


def test_a_view_that_begins_before_its_input_is_refused(compiled: Any) -> None:
    with pytest.raises(UnsupportedProgramError, match="AOT121"):
        compiled(lambda x: x.as_strided((2,), (1,), 1) * 2)(ROWS[2:])


def test_main_diagonals_are_recognised() -> None:
    spec = TensorSpec((3, 5), (5, 1), torch.float32, torch.device("cpu"))
    assert _is_diagonal(spec, [3], [6], ShapeEnv())
    assert not _is_diagonal(spec, [2], [6], ShapeEnv())
    assert not _is_diagonal(spec, [3], [5], ShapeEnv())


@pytest.mark.parametrize("strides", [(1, 1), (0, 1), (1, 2)], ids=str)
def test_the_gradient_of_a_diagonal_in_shared_memory_is_divided(
    compiled: Any, strides: tuple[int, int]
) -> None:
    """Torch divides the gradient of ``as_strided`` among elements that share memory, and that of ``diagonal`` not."""
    expected, found = (
        torch.arange(9.0).as_strided((2, 3), strides).detach().requires_grad_() for _ in range(2)
    )

    def program(x: torch.Tensor) -> Any:
        return x.as_strided((2,), (sum(strides),))

    (program(expected) * torch.tensor([1.0, 2.0])).sum().backward()
    (compiled(program)(found) * torch.tensor([1.0, 2.0])).sum().backward()
    assert torch.equal(found.grad, expected.grad)
