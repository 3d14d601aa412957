from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import fxstack
from fxstack.module import CompiledModule, compile_module, original_of

CALLS: list[str] = []


def _noting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Stands for an optimizer: notes each call that goes through it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        CALLS.append(type(function).__name__)
        return function(*args, **kwargs)

    return call


class Scaled(nn.Module):
    """A module with state beside parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.scale = 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.scale


class OfSize(nn.Module):
    """A module whose class wants arguments to make an instance."""

    def __new__(cls, size: int) -> OfSize:
        made = super().__new__(cls)
        object.__setattr__(made, "made_by", "new")
        return made

    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def test_a_class_that_makes_its_instances_itself() -> None:
    plain, x = OfSize(2), torch.ones(1, 2)
    assert fxstack.compile(plain, backend="eager")(x).equal(plain(x))


def test_a_graph_module_follows_its_graph() -> None:
    x = torch.linspace(-1, 1, 4)
    traced = torch.fx.symbolic_trace(nn.Sequential(nn.ReLU()))
    compiled = fxstack.compile(traced, backend="eager", fullgraph=True)
    assert compiled(x).equal(x.relu())
    (call,) = [node for node in compiled.graph.nodes if node.op == "call_module"]
    call.op, call.target = "call_function", torch.tanh
    compiled.recompile()
    assert compiled(x).equal(x.tanh())
    assert traced(x).equal(x.tanh())
    assert copy.deepcopy(compiled)(x).equal(x.tanh())
    call.target = torch.sin
    compiled.graph = compiled.graph
    assert compiled(x).equal(x.sin())


def test_a_call_goes_through_the_optimizer_and_state_is_shared() -> None:
    plain = Scaled()
    twin = compile_module(plain, _noting)
    CALLS.clear()
    x = torch.ones(1, 2)
    torch.testing.assert_close(twin(x), plain(x))
    assert CALLS == ["Scaled"]
    twin.scale = 5.0
    assert plain.scale == 5.0
    twin.register_buffer("offset", torch.ones(1))
    assert "offset" in dict(plain.named_buffers())
    del twin.offset
    assert not hasattr(plain, "offset")


def test_it_is_an_instance_of_the_modules_class_and_named_like_it() -> None:
    twin = compile_module(Scaled(), _noting)
    assert isinstance(twin, Scaled)
    assert isinstance(twin, CompiledModule)
    assert type(twin).__qualname__ == "Scaled"
    assert repr(twin) == repr(original_of(twin))


def test_copies_are_compiled_anew_and_pickles_are_plain() -> None:
    twin = compile_module(Scaled(), _noting)
    deep, shallow = copy.deepcopy(twin), copy.copy(twin)
    CALLS.clear()
    deep(torch.ones(1, 2))
    shallow(torch.ones(1, 2))
    assert CALLS == ["Scaled", "Scaled"]
    assert deep.linear.weight is not twin.linear.weight
    assert shallow.linear is twin.linear
    restored = pickle.loads(pickle.dumps(twin))
    assert type(restored) is Scaled
    torch.testing.assert_close(restored(torch.ones(1, 2)), twin(torch.ones(1, 2)))


def test_a_module_inside_another_is_moved_and_listed_as_usual() -> None:
    inner = compile_module(Scaled(), _noting)
    outer = nn.Sequential(inner, nn.ReLU())
    assert list(outer.state_dict()) == ["0.linear.weight", "0.linear.bias"]
    outer.double()
    assert inner.linear.weight.dtype == torch.float64
    CALLS.clear()
    outer(torch.ones(1, 2, dtype=torch.float64))
    assert CALLS == ["Scaled"]


def test_a_compiled_module_is_not_wrapped_twice() -> None:
    plain = Scaled()
    twin = compile_module(compile_module(plain, _noting), _noting)
    assert original_of(twin) is plain
    CALLS.clear()
    twin(torch.ones(1, 2))
    assert CALLS == ["Scaled"]


def test_a_compiled_module_explains_its_recompilations() -> None:
    class Moded(nn.Module):
        def forward(self, x: torch.Tensor, mode: str) -> torch.Tensor:
            return x * len(mode)

    fast = fxstack.compile(Moded(), backend="eager")
    fast(torch.ones(3), "a")
    fast(torch.ones(3), "bc")
    (entry,) = fxstack.explain_recompiles(fast).entries
    assert entry.new == "'bc'"
