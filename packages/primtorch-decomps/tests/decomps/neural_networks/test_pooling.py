"""Mean pooling: decomposed where windows tile the input, a library call elsewhere."""

from __future__ import annotations

import operator

import pytest
import torch
from torch.fx import Graph, GraphModule

from fx_interface.signature import DIALECT_KEY, SHAPE_ENV_KEY
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of
from primtorch_decomps import LIBRARY, decompose
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


MAXIMA = [
    ([2, 2], {}),
    ([1, 3], {}),
    ([3, 2], {"stride": [4, 2]}),
    ([2], {}),
]


def _largest(
    x: torch.Tensor, keeps_places: bool, window: list[int], stride: list[int]
) -> tuple[GraphModule, bool]:
    """The graph of a pooling in primitives, and whether the library call is still in it."""
    graph = Graph()
    node = graph.placeholder("x")
    node.meta["spec"] = spec_of(x)
    op = torch.ops.aten.max_pool2d_with_indices.default
    env = ShapeEnv()
    pooled = graph.call_function(op, (node, window, stride))
    pooled.meta["spec"] = LIBRARY.infer(op, (spec_of(x), window, stride), {}, env)
    results = []
    for index in range(1 + keeps_places):
        item = graph.call_function(operator.getitem, (pooled, index))
        item.meta["spec"] = pooled.meta["spec"][index]
        results.append(item)
    graph.output(tuple(results))
    module = GraphModule(torch.nn.Module(), graph)
    module.meta.update({DIALECT_KEY: "aten", SHAPE_ENV_KEY: env})
    made = decompose(module)
    return made, any(node.target is op for node in made.graph.nodes)


@pytest.mark.parametrize("image", range(len(IMAGES)))
@pytest.mark.parametrize(("window", "options"), MAXIMA, ids=str)
def test_the_largest_of_a_window(image: int, window: list[int], options: dict[str, list[int]]) -> None:
    x = IMAGES[image].clone()
    x[..., 0, 0] = float("nan")
    x[..., 2, 2:4] = float("-inf")
    x[..., 3, 2:4] = float("-inf")
    x[..., 4, 4], x[..., 4, 5] = 0.0, -0.0
    x[..., 5, 4:6] = -1
    stride = options.get("stride", [])
    want = torch.ops.aten.max_pool2d_with_indices.default(x, window, stride)[0]
    made, is_called = _largest(x, False, window, stride)
    (found,) = made(x)
    assert not is_called
    assert torch.equal(found.nan_to_num(7.0), want.nan_to_num(7.0))
    assert found.stride() == want.stride()


@pytest.mark.parametrize(
    ("window", "stride"),
    [([3, 3], [2, 2]), ([5, 4], []), ([2, 2], [2, 1])],
    ids=["overlap", "large", "one overlaps"],
)
def test_other_windows_stay_library_calls(window: list[int], stride: list[int]) -> None:
    assert _largest(IMAGES[0], False, window, stride)[1]


def test_places_are_found_by_the_library() -> None:
    made, is_called = _largest(IMAGES[0], True, [2, 2], [])
    assert is_called
    want = torch.ops.aten.max_pool2d_with_indices.default(IMAGES[0], [2, 2], [])
    for found, wanted in zip(made(IMAGES[0]), want, strict=True):
        assert torch.equal(found, wanted)
