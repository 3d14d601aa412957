"""The largest of each window: decomposed but for places in channels-last images on a CPU; its gradient on a GPU."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule

from fx_interface.signature import DIALECT_KEY, SHAPE_ENV_KEY
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of
from primtorch_decomps import LIBRARY, decompose
from primtorch_decomps.decomps.neural_networks import max_pooling
from primtorch_decomps.testing import check_operator

POOL = torch.ops.aten.max_pool2d_with_indices.default
IMAGES = [
    torch.randn(2, 3, 8, 6),
    torch.randn(2, 3, 8, 6).to(memory_format=torch.channels_last),
    torch.randn(3, 8, 6),
]
MAXIMA = [
    ([2, 2], {}),
    ([1, 3], {}),
    ([3, 2], {"stride": [4, 2]}),
    ([2], {}),
]


def _largest(x: torch.Tensor, keeps_places: bool, *arguments: Any) -> tuple[GraphModule, bool]:
    """The graph of a pooling in primitives, and whether the library call is still in it."""
    graph = Graph()
    node = graph.placeholder("x")
    node.meta["spec"] = spec_of(x)
    op = torch.ops.aten.max_pool2d_with_indices.default
    env = ShapeEnv()
    pooled = graph.call_function(op, (node, *arguments))
    pooled.meta["spec"] = LIBRARY.infer(op, (spec_of(x), *arguments), {}, env)
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


def test_large_windows_stay_library_calls() -> None:
    assert _largest(IMAGES[0], False, [5, 4], [])[1]


def test_integers_stay_library_calls_where_windows_overlap() -> None:
    assert _largest((IMAGES[0] * 10).long(), False, [3, 3], [2, 2])[1]


def test_places_in_channels_last_images_are_found_by_the_library_on_a_cpu() -> None:
    made, is_called = _largest(IMAGES[1], True, [2, 2], [])
    assert is_called
    want = torch.ops.aten.max_pool2d_with_indices.default(IMAGES[1], [2, 2], [])
    for found, wanted in zip(made(IMAGES[1]), want, strict=True):
        assert torch.equal(found, wanted)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Formulas of a GPU, computed on the CPU."""
    monkeypatch.setattr(max_pooling, "_is_on_a_gpu", lambda x: True)


WINDOWS = [
    ([3, 3], [2, 2], [1, 1]),
    ([3, 3], [1, 1], [1, 1]),
    ([2, 2], [2, 2], [0, 0]),
    ([3, 2], [2, 3], [1, 0]),
    ([2, 4], [3, 1], [1, 2]),
    ([3], [], [1]),
]


def special(x: torch.Tensor) -> torch.Tensor:
    """With NaN, infinities, equal elements, zeros of both signs, and a corner of nothing but infinities."""
    x = x.clone()
    x[..., 0, 5] = x[..., 1, 5] = float("nan")
    x[..., :3, :3] = float("-inf")
    x[..., 4, 4], x[..., 4, 5] = 0.0, -0.0
    x[..., 5, 1:4] = 3.0
    x[..., 7, 0] = float("inf")
    return x


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("image", [0, 2])
@pytest.mark.parametrize("arguments", WINDOWS, ids=str)
def test_places_on_a_cpu(image: int, dtype: torch.dtype, arguments: tuple[Any, ...]) -> None:
    _places_are_torchs(image, dtype, arguments)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("image", range(len(IMAGES)))
@pytest.mark.parametrize("arguments", WINDOWS, ids=str)
def test_places_on_a_gpu(image: int, dtype: torch.dtype, arguments: tuple[Any, ...]) -> None:
    _places_are_torchs(image, dtype, arguments)


def _places_are_torchs(image: int, dtype: torch.dtype, arguments: tuple[Any, ...]) -> None:
    x = special(IMAGES[image]).to(dtype)
    made, is_called = _largest(x, True, *arguments)
    assert not is_called
    for found, wanted in zip(made(x), POOL(x, *arguments), strict=True):
        assert torch.equal(found.nan_to_num(7.0), wanted.nan_to_num(7.0))
        assert found.stride() == wanted.stride()
    made, is_called = _largest(x, False, *arguments)
    assert not is_called
    assert torch.equal(made(x)[0].nan_to_num(7.0), POOL(x, *arguments)[0].nan_to_num(7.0))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("image", range(len(IMAGES)))
@pytest.mark.parametrize(("window", "stride", "padding"), WINDOWS, ids=str)
def test_gradients_on_a_gpu(
    image: int, dtype: torch.dtype, window: list[int], stride: list[int], padding: list[int]
) -> None:
    x = special(IMAGES[image]).to(dtype)
    largest, places = POOL(x, window, stride, padding)
    grad = torch.randn_like(largest)
    backward = "aten.max_pool2d_with_indices_backward.default"
    check_operator(backward, grad, x, window, stride, padding, [1, 1], False, places)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_of_narrow_numbers_are_rounded_once(dtype: torch.dtype) -> None:
    x = torch.randn(2, 3, 8, 6).to(dtype)
    grad, arguments = torch.randn(2, 3, 8, 6).to(dtype), ([3, 3], [1, 1], [1, 1], [1, 1], False)
    places = POOL(x, *arguments)[1]
    op = torch.ops.aten.max_pool2d_with_indices_backward.default
    graph = Graph()
    nodes = [graph.placeholder(name) for name in ("grad", "x", "places")]
    specs = [spec_of(tensor) for tensor in (grad, x, places)]
    result = graph.call_function(op, (*nodes[:2], *arguments, nodes[2]))
    for node, spec in zip((*nodes, result), (*specs, spec_of(x)), strict=True):
        node.meta["spec"] = spec
    graph.output((result,))
    module = GraphModule(torch.nn.Module(), graph)
    module.meta.update({DIALECT_KEY: "aten", SHAPE_ENV_KEY: ShapeEnv()})
    (found,) = decompose(module)(grad, x, places)
    assert torch.equal(found, op(grad.double(), x.double(), *arguments, places).to(dtype))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    "arguments", [([5, 4], []), ([2, 2], [1, 1], [0, 0], [2, 2]), ([3, 3], [2, 2], [1, 1], [1, 1], True)]
)
def test_what_stays_a_library_call_on_a_gpu(arguments: tuple[Any, ...]) -> None:
    assert _largest(IMAGES[0], True, *arguments)[1]
