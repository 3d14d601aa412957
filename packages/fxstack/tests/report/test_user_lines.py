"""Breaks inside of torch's Python code are told with the line of the user's that led there."""

from __future__ import annotations

import torch

import fxstack


def test_an_operator_without_a_fake_is_named_with_the_users_line_and_what_it_lacks() -> None:
    @torch.library.custom_op("fxstack_tests::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    def program(x: torch.Tensor) -> torch.Tensor:
        return doubled(x.sin()).cos()

    x = torch.ones(3)
    told = fxstack.explain(program)(x)
    torch.testing.assert_close(told.result, program(x))
    stop = told.breaks[0]
    assert "register a fake kernel (torch.library.register_fake)" in stop.what
    assert stop.where is not None
    assert (stop.where.filename, stop.where.line) == (__file__, program.__code__.co_firstlineno + 1)
