"""Mean pooling: decomposed where windows tile the input, a library call elsewhere."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator

IMAGES = [
    torch.randn(2, 3, 8, 6),
    torch.randn(2, 3, 8, 6).to(memory_format=torch.channels_last),
    torch.randn(3, 8, 6),
]


@pytest.mark.parametrize("image", range(len(IMAGES)))
def test_tiles(image: int) -> None:
    x = IMAGES[image]
    check_operator("aten.avg_pool2d.default", x, [2, 3])
    check_operator("aten._adaptive_avg_pool2d.default", x, [1, 1])
    check_operator("aten._adaptive_avg_pool2d.default", x, [4, 2])
    check_operator("aten.avg_pool2d.default", x.bfloat16(), [2, 2])
    grad = torch.randn_like(torch.ops.aten.avg_pool2d.default(x, [2, 3]))
    check_operator("aten.avg_pool2d_backward.default", grad, x, [2, 3], [], [0, 0], False, True, None)
    grad = torch.randn_like(torch.ops.aten._adaptive_avg_pool2d.default(x, [4, 2]))
    check_operator("aten._adaptive_avg_pool2d_backward.default", grad, x)
