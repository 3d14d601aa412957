"""Specs of losses with margins, for which torch has kernels of their own."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_open_spec

ROWS = torch.rand(4, 3).t()


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_margins(reduction: int) -> None:
    for x in (ROWS, ROWS.contiguous()):
        grad = torch.rand(3) if reduction == 0 else torch.rand(())
        target = torch.tensor([0, 1, 2])
        check_open_spec("aten.multi_margin_loss.default", x, target, 1, 1, None, reduction)
        check_open_spec("aten.multi_margin_loss_backward.default", grad, x, target, 1, 1.0, None, reduction)
        labels = torch.zeros(3, 4, dtype=torch.int64)
        check_open_spec("aten.multilabel_margin_loss_forward.default", x, labels, reduction)
        places = torch.rand(3, 4)
        check_open_spec("aten.multilabel_margin_loss_backward.default", grad, x, labels, reduction, places)
