"""Mean pooling: decomposed where windows tile the input, a library call elsewhere."""

from __future__ import annotations

import pytest
import torch

from fx_interface import GraphBuilder
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps import decompose
from primtorch_decomps.testing import aten_graph, check_operator, check_spec, check_values

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


@pytest.mark.parametrize("image", range(len(IMAGES)))
def test_windows_that_leave_a_border_at_the_end(image: int) -> None:
    op = torch.ops.aten.avg_pool2d.default
    x = IMAGES[image]
    for args in ((x, [3, 4]), (x, [3, 3], [3, 3], [0, 0], False, False), (x.bfloat16(), [4, 4])):
        check_spec(op, args, {})
        check_values(op, args, {})
        assert op not in calls(aten_graph(op, args, {})[0])
    assert op in calls(aten_graph(op, (x, [3, 4], [], [0, 0], True), {})[0])
    assert op in calls(aten_graph(op, (x, [3, 4], [2, 2]), {})[0])
    assert op in calls(aten_graph(op, (x, [5, 5]), {})[0])


def calls(module: torch.fx.GraphModule) -> list[object]:
    """What the graph calls when it is decomposed."""
    return [node.target for node in decompose(module).graph.nodes]


def test_windows_of_images_of_any_size() -> None:
    op = torch.ops.aten.avg_pool2d.default
    builder = GraphBuilder("aten")
    height, width = builder.size(8), builder.size(6)
    sizes, pooled = (2, 3, height, width), (2, 3, height // 3, width // 3)
    image, result = (
        TensorSpec(each, contiguous_strides(each), torch.float32, torch.device("cpu"))
        for each in (sizes, pooled)
    )
    module = builder.build(builder.call(op, builder.input(image), [3, 3], spec=result))
    assert op not in calls(module)
    assert not builder.env.guards
