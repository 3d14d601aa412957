"""Operators whose schema does not tell the whole story."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fx_interface.errors import UnsupportedProgramError


def test_shapes_of_computed_tensors_change_in_place(check: Any) -> None:
    def program(x: torch.Tensor) -> Any:
        y = (x * 2).t_()
        z = (x + 1).unsqueeze_(0)
        z.squeeze_(0).transpose_(0, 1)
        w = x.sin().unsqueeze_(1).squeeze_()
        return y * 3, z + y, w, y

    check(program, torch.randn(2, 3, dtype=torch.float64))
    check(program, torch.randn(2, 3, dtype=torch.float64, requires_grad=True))


def test_a_view_and_its_base_keep_their_own_shapes(check: Any) -> None:
    def program(x: torch.Tensor) -> Any:
        base = x * 2
        view = base[1:]
        view.t_()
        view.add_(1)
        return base, view

    check(program, torch.randn(3, 2, dtype=torch.float64))


def test_a_write_after_a_change_of_shape(check: Any) -> None:
    def program(x: torch.Tensor) -> Any:
        y = x * 2
        y.t_()
        y[0] = 5
        return y, y.sum()

    check(program, torch.randn(3, 2, dtype=torch.float64))
    check(program, torch.randn(3, 2, dtype=torch.float64, requires_grad=True))


def test_the_shape_of_an_input_stays(compiled: Any) -> None:
    with pytest.raises(UnsupportedProgramError) as refusal:
        compiled(lambda x: x.t_())(torch.randn(3, 2))
    assert refusal.value.code == "AOT112"


def test_polygamma_in_place(check: Any) -> None:
    check(lambda x: x.clone().polygamma_(1), torch.rand(4, dtype=torch.float64) + 1)


def test_content_that_a_kernel_reads_is_refused(compiled: Any) -> None:
    with pytest.raises(UnsupportedProgramError) as refusal:
        compiled(lambda x, places: torch.tensor_split(x, places))(torch.randn(6), torch.tensor([2, 4]))
    assert refusal.value.code == "AOT106"
