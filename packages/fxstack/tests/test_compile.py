from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.flop_counter import FlopCounterMode

import fxstack
from fxstack.compile import original


def _counting() -> tuple[Any, list[torch.fx.GraphModule]]:
    graphs: list[torch.fx.GraphModule] = []

    def backend(graph_module: torch.fx.GraphModule, example_inputs: Any) -> Any:
        graphs.append(graph_module)
        return graph_module.forward

    return backend, graphs


def test_dynamic_decides_when_sizes_become_symbolic() -> None:
    for dynamic, compilations in ((True, 1), (None, 2), (False, 3)):
        backend, graphs = _counting()
        compiled = fxstack.compile(lambda x: x.sin() * 2.0, backend=backend, dynamic=dynamic)
        for length in (3, 5, 7):
            x = torch.randn(length)
            torch.testing.assert_close(compiled(x), x.sin() * 2.0)
        assert len(graphs) == compilations, dynamic


def test_reset_forgets_what_was_compiled() -> None:
    backend, graphs = _counting()
    compiled = fxstack.compile(lambda x: x + 1.0, backend=backend)
    compiled(torch.ones(2))
    compiled(torch.ones(2))
    assert len(graphs) == 1
    fxstack.reset()
    torch.testing.assert_close(compiled(torch.ones(2)), torch.full((2,), 2.0))
    assert len(graphs) == 2


def test_a_graph_break_is_an_error_with_fullgraph_and_nothing_ran() -> None:
    seen: list[int] = []

    def breaks(x: torch.Tensor) -> torch.Tensor:
        seen.append(1)
        return x + float(x.sum().item())

    with pytest.raises(Exception, match="CAP"):
        fxstack.compile(breaks, backend="eager", fullgraph=True)(torch.ones(2))
    assert seen == []
    torch.testing.assert_close(fxstack.compile(breaks, backend="eager")(torch.ones(2)), torch.full((2,), 3.0))
    assert seen == [1]


def test_methods_and_callable_objects_compile() -> None:
    class Scaler:
        def __init__(self) -> None:
            self.factor = 3.0

        def scale(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.factor

        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.factor + 1.0

    scaler = Scaler()
    x = torch.randn(4)
    method, whole = fxstack.compile(scaler.scale, backend="eager"), fxstack.compile(scaler, backend="eager")
    torch.testing.assert_close(method(x), x * 3.0)
    torch.testing.assert_close(whole(x), x * 3.0 + 1.0)
    scaler.factor = 5.0
    torch.testing.assert_close(method(x), x * 5.0)
    torch.testing.assert_close(whole(x), x * 5.0 + 1.0)


def test_torchs_own_function_compiles_as_a_call_of_it_does() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2.0

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient * 3.0

    x = torch.ones(2, requires_grad=True)
    fxstack.compile(Twice.apply, fullgraph=True)(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.full((2,), 3.0))


def test_signatures_are_those_of_what_was_compiled() -> None:
    class Scaler:
        def __call__(self, x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
            return x * factor

    scaler = Scaler()
    for plain in (scaler, scaler.__call__, functools.partial(scaler, factor=3.0), torch.nn.functional.relu):
        assert inspect.signature(fxstack.compile(plain)) == inspect.signature(plain)


def test_torch_compile_is_ours_inside_of_a_block() -> None:
    stock = torch.compile
    graphs: list[torch.fx.GraphModule] = []

    def backend(graph_module: torch.fx.GraphModule, example_inputs: Any) -> Any:
        graphs.append(graph_module)
        return graph_module.forward

    model = nn.Linear(2, 2)
    with fxstack.in_place_of_torch_compile():
        model.compile(backend=backend, fullgraph=True)
        function = torch.compile(torch.sin, mode="default")
    assert torch.compile is stock
    x = torch.randn(3, 2)
    torch.testing.assert_close(model(x), nn.functional.linear(x, model.weight, model.bias))
    torch.testing.assert_close(function(x), x.sin())
    assert len(graphs) == 1
    assert hasattr(function, "__fxstack_capture__")


@pytest.mark.parametrize(
    "other",
    [lambda x: torch.cat([x, x]), lambda x: x.double(), lambda x: max(x, x + 1)],
    ids=["other sizes", "another dtype", "raises"],
)
def test_eager_control_flow_runs_what_no_graph_holds(other: Callable[..., Any]) -> None:
    """In eager ``torch.cond`` compiles itself, as one graph; what is no graph runs all the same."""
    with fxstack.in_place_of_torch_compile():
        x = torch.ones(2, 3)
        assert torch.equal(torch.cond(torch.tensor(True), torch.sin, other, (x,)), x.sin())


def test_eager_control_flow_may_not_change_what_is_outside() -> None:
    seen: list[int] = []

    def changes(x: torch.Tensor) -> torch.Tensor:
        seen.append(1)
        return x + 1

    with fxstack.in_place_of_torch_compile(), pytest.raises(RuntimeError, match="CAP242"):
        torch.cond(torch.tensor(True), changes, torch.sin, (torch.ones(2),))
    assert not seen


def test_eager_control_flow_is_seen_by_modes() -> None:
    linear, x = nn.Linear(4, 4), torch.ones(4, 4)
    with fxstack.in_place_of_torch_compile(), FlopCounterMode(display=False) as counted:
        torch.cond(torch.tensor(True), linear, lambda x: linear(linear(x)), (x,))
    assert counted.get_total_flops() == 256  # of the branch with more


def test_backends_are_listed() -> None:
    assert {"aot_eager", "eager", "inductor"} <= set(fxstack.list_backends())


def test_compiling_what_is_compiled_starts_from_the_original() -> None:
    def plain(x: torch.Tensor) -> torch.Tensor:
        return x - 1.0

    once = fxstack.compile(plain, backend="eager")
    backend, graphs = _counting()
    twice = fxstack.compile(once, backend=backend)
    assert original(once) is plain
    assert original(twice) is plain
    torch.testing.assert_close(twice(torch.ones(2)), torch.zeros(2))
    assert len(graphs) == 1
    model = nn.Linear(2, 2)
    assert original(fxstack.compile(fxstack.compile(model))) is model


class _Packed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.GRU(2, 3, batch_first=True)

    def forward(self, x, lengths):
        made, _ = self.layer(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
        return made.data


@pytest.mark.parametrize(
    ("settings", "own"),
    [
        ({}, True),
        ({"mode": "strict"}, False),
        ({"backend": "aot_eager"}, False),
        ({"backend": "eager"}, False),
    ],
    ids=["default", "strict", "aot_eager", "eager"],
)
def test_packed_layers_have_gradients_of_their_own_where_roundings_may_differ(settings, own):
    torch.manual_seed(0)
    module = _Packed()
    x, lengths = torch.randn(3, 20, 2), torch.tensor([20, 2, 13])
    fast = fxstack.compile(module, **settings)

    def run(program):
        module.zero_grad()
        rows = program(x, lengths)
        (rows * rows).sum().backward()
        return rows, [one.grad for one in module.parameters()]

    (expected, exact), (found, gradients) = run(module), run(fast)
    assert torch.equal(expected, found)
    assert ("_Layer" in found.grad_fn.name()) is own
    if own:
        torch.testing.assert_close(gradients, exact)
    else:
        assert all(map(torch.equal, gradients, exact))
