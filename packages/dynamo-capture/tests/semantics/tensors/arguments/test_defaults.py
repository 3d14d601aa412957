"""A graph states the device and the dtype that a default decided on, and makes the same under other defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from dynamo_capture import optimize

MAKERS: tuple[Callable[[], torch.Tensor], ...] = (
    lambda: torch.ones(4),
    lambda: torch.zeros(2, device=None),
    lambda: torch.empty(2, 3),
    lambda: torch.full((2,), 1.5),
    lambda: torch.full((2,), 1),
    lambda: torch.full((2,), 1j),
    lambda: torch.rand(2),
    lambda: torch.randn(2),
    lambda: torch.randint(3, (2,)),
    lambda: torch.randperm(3),
    lambda: torch.normal(0.0, 1.0, (2,)),
    lambda: torch.arange(3),
    lambda: torch.arange(3.0),
    lambda: torch.linspace(0, 1, 3),
    lambda: torch.logspace(0, 1, 3),
    lambda: torch.eye(2),
    lambda: torch.tensor([1.0, 2.0]),
    lambda: torch.tensor(2),
    lambda: torch.as_tensor([1.0]),
    lambda: torch.as_tensor([1.0], dtype=torch.float16),
    lambda: torch.scalar_tensor(2.0),
    lambda: torch.tril_indices(2, 2),
    lambda: torch.hann_window(3),
    lambda: torch.zeros(2, dtype=torch.int32),
    lambda: torch.ones(2, device="cpu"),
)


class Recorder:
    """A backend that keeps the graph."""

    def __call__(self, graph_module: Any, inputs: Any) -> Any:
        self.graph_module = graph_module
        return graph_module.forward


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    yield
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float32)


def facts(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.device, tensor.dtype, tensor.shape, tensor.stride()


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("device", [None, "cpu", "meta"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_graph_needs_no_defaults(
    make: Callable[[], torch.Tensor], device: str | None, dtype: torch.dtype
) -> None:
    torch.set_default_dtype(dtype)
    torch.set_default_device(device)
    backend = Recorder()
    expected = facts(make())
    assert facts(optimize(backend, fullgraph=True)(make)()) == expected
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float32)
    (made,) = backend.graph_module()
    assert facts(made) == expected


def test_initial_defaults_are_not_stated() -> None:
    backend = Recorder()
    optimize(backend, fullgraph=True)(lambda: torch.ones(4))()
    (node,) = (n for n in backend.graph_module.graph.nodes if n.op == "call_function")
    assert node.kwargs == {}


def test_a_tensor_given_as_data_keeps_its_memory() -> None:
    torch.set_default_dtype(torch.float64)
    x = torch.ones(3, dtype=torch.float32)
    assert optimize(Recorder(), fullgraph=True)(lambda: torch.as_tensor(x))().data_ptr() == x.data_ptr()


def test_a_mode_of_the_program_sees_what_the_program_wrote() -> None:
    seen = []

    class Watch(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(sorted(kwargs or {}))
            return function(*args, **(kwargs or {}))

    def program() -> torch.Tensor:
        with Watch():
            return torch.ones(3)

    with torch.device("meta"):
        expected = facts(program())
        wanted = list(seen)
        seen.clear()
        assert facts(optimize(Recorder())(program)()) == expected
    assert seen == wanted


def test_inside_a_block_of_the_program_its_device_is_stated() -> None:
    def program() -> tuple[torch.Tensor, torch.Tensor]:
        with torch.device("cpu"):
            inner = torch.ones(2)
        return inner, torch.ones(3)

    backend = Recorder()
    with torch.device("meta"):
        optimize(backend, fullgraph=True)(program)()
    assert [t.device.type for t in backend.graph_module()] == ["cpu", "meta"]
