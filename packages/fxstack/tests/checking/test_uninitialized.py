"""Memory that nobody wrote to holds what the mode says; what was there before a resize stays."""

from __future__ import annotations

import torch

from fxstack.checking.uninitialized import Filling


def test_fresh_memory_is_filled() -> None:
    with Filling(3) as mode:
        assert torch.empty(2, 2).eq(3).all()
        assert torch.empty_like(torch.ones(2), dtype=torch.int64).eq(3).all()
        assert torch.ones(2).new_empty(3).eq(3).all()
        assert torch.empty_strided((2, 2), (3, 1)).eq(3).all()
    assert mode.met


def test_what_is_written_is_not() -> None:
    with Filling(3) as mode:
        assert torch.zeros(2).eq(0).all()
        torch.arange(4) + 1
    assert not mode.met


def test_resizing_keeps_what_was_there() -> None:
    x = torch.arange(3.0)
    with Filling(7):
        x.resize_(5)
    assert x.tolist() == [0, 1, 2, 7, 7]
