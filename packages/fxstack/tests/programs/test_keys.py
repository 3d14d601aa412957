"""Keys of stored programs: what must be in them, since tracing reads it, and what may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

import fxstack
from fx_interface import SHAPE_ENV_KEY
from fx_interface.symbols import Relation, symbol
from fx_interface.torch_internals import torch_state
from fxstack.options import Options
from fxstack.programs.keys import program_key


def _captured(function: Any, *args: Any, dynamic: bool | None = None) -> tuple[GraphModule, list[Any]]:
    kept: list[tuple[GraphModule, list[Any]]] = []

    def backend(graph_module: GraphModule, example_inputs: Any) -> Any:
        kept.append((graph_module, list(example_inputs)))
        return graph_module.forward

    fxstack.compile(function, backend=backend, dynamic=dynamic)(*args)
    fxstack.reset()
    (pair,) = kept
    return pair


def test_a_key_is_the_programs_not_the_names() -> None:
    def one(x: torch.Tensor) -> torch.Tensor:
        first = x.sin()
        return first + 1.0

    def other(argument: torch.Tensor) -> torch.Tensor:
        return argument.sin() + 1.0

    def third(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 2.0

    x = torch.ones(3)
    keys = [program_key(*_captured(function, x)) for function in (one, other, third)]
    assert keys[0] is not None
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(torch.ones(4), id="size"),
        pytest.param(torch.ones(3, dtype=torch.float64), id="dtype"),
        pytest.param(torch.ones(3).requires_grad_(), id="requires_grad"),
        pytest.param(torch.ones(6)[::2], id="stride"),
    ],
)
def test_a_key_depends_on_the_inputs(other: torch.Tensor) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    assert program_key(*_captured(function, torch.ones(3))) != program_key(*_captured(function, other))


def test_a_key_depends_on_torchs_state() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    graph_module, inputs = _captured(function, torch.ones(3))
    before = program_key(graph_module, inputs)
    with torch.no_grad():
        assert program_key(graph_module, inputs) != before
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert program_key(graph_module, inputs) != before
    assert program_key(graph_module, inputs) == before


def test_a_key_depends_on_what_the_user_chose() -> None:
    captured = _captured(lambda x: x.sin(), torch.ones(3))
    chosen = (
        None,
        *(Options(**o) for o in ({"mode": "strict"}, {"rng": "counter"}, {"activation_budget": 1.0})),
    )
    assert len({program_key(*captured, options) for options in chosen}) == 4
    assert program_key(*captured) == program_key(*captured, Options(verify=True))


def _leaf() -> torch.Tensor:
    return torch.ones(3).requires_grad_()


def _in_inference_mode() -> torch.Tensor:
    with torch.inference_mode():
        return torch.ones(3)


_MEMORY = torch.ones(8)
_FORMS: dict[str, Callable[[], tuple[torch.Tensor, torch.Tensor]]] = {
    "plain": lambda: (torch.ones(3), torch.ones(3)),
    "leaf": lambda: (_leaf(), torch.ones(3)),
    "other leaf": lambda: (torch.ones(3), _leaf()),
    "not a leaf": lambda: (_leaf() * 2, torch.ones(3)),
    "inference": lambda: (_in_inference_mode(), torch.ones(3)),
    "complex": lambda: (torch.ones(3, dtype=torch.complex64), torch.ones(3)),
    "conjugated": lambda: (torch.ones(3, dtype=torch.complex64).conj(), torch.ones(3)),
    "negated": lambda: (torch.ones(3, dtype=torch.complex64).conj().imag, torch.ones(3)),
    "one memory": lambda: (_MEMORY[:3], _MEMORY[3:6]),
    "one memory, overlapping": lambda: (_MEMORY[:3], _MEMORY[2:5]),
}


def test_a_key_depends_on_all_that_tracing_reads_of_inputs() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.sin() + y

    graph_module, _ = _captured(function, torch.ones(3), torch.ones(3))
    keys = {name: program_key(graph_module, make()) for name, make in _FORMS.items()}
    del keys["complex"]  # the graph's spec says that
    assert None not in keys.values()
    assert len(set(keys.values())) == len(keys)
    assert keys == {name: program_key(graph_module, _FORMS[name]()) for name in keys}


def _other(value: Any) -> Any:
    """Another value of the same kind of setting."""
    match value:
        case list():
            return list(reversed(value))
        case torch.dtype():
            return torch.float64 if value is torch.float32 else torch.float32
        case None:
            return "not here"
        case _:
            return not value


@contextmanager
def _changed(fact: torch_state.Fact) -> Iterator[None]:
    before = fact.read()
    assert fact.setter is not None
    fact.setter(_other(before))
    try:
        yield
    finally:
        fact.setter(before)


@pytest.mark.parametrize(
    "fact", [fact for fact in torch_state.FACTS if fact.setter is not None], ids=lambda fact: fact.name
)
def test_a_key_depends_on_each_switch(fact: torch_state.Fact) -> None:
    graph_module, inputs = _captured(lambda x: x.sin(), torch.ones(3))
    before = program_key(graph_module, inputs)
    with _changed(fact):
        assert program_key(graph_module, inputs) != before
    assert program_key(graph_module, inputs) == before


def test_a_key_depends_on_the_default_device() -> None:
    graph_module, inputs = _captured(lambda x: x.sin(), torch.ones(3))
    before = program_key(graph_module, inputs)
    with torch.device("meta"):
        other = program_key(graph_module, inputs)
    with torch.device("cpu"):
        assert len({before, other, program_key(graph_module, inputs)}) == 3


class _Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def test_under_a_mode_of_the_program_nothing_is_stored() -> None:
    graph_module, inputs = _captured(lambda x: x.sin(), torch.ones(3))
    with _Mode():
        assert program_key(graph_module, inputs) is None


def test_a_graph_that_calls_code_of_the_program_is_not_stored() -> None:
    """The derivative that is registered in Python is traced; another process may register another."""

    @torch.library.custom_op("fxstack_key_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)
    twice.register_autograd(lambda ctx, gradient: gradient * 2)
    assert program_key(*_captured(lambda x: twice(x) + 1, torch.ones(3))) is None
    assert program_key(*_captured(lambda x: x * 2 + 1, torch.ones(3))) is not None


def test_facts_learned_before_compiling_are_in_the_key() -> None:
    """A question about sizes that is answered from such a fact leaves no guard of its own in the stored program."""

    def one(x: torch.Tensor, n: int) -> torch.Tensor:
        return x[:n]

    graph_module, inputs = _captured(one, torch.ones(9), 4, dynamic=True)
    before = program_key(graph_module, inputs)
    env = graph_module.meta[SHAPE_ENV_KEY]
    atom = next(iter(env.symbols))
    env.learn(Relation("<", symbol(atom.name), 1000))
    assert program_key(graph_module, inputs) != before
