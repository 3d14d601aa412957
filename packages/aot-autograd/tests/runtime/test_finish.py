"""The callable wraps the compiled graphs no more than it must."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
import torch
from torch.fx import symbolic_trace

from aot_autograd import compile_joint, finish, trace_joint
from fx_interface.errors import StackError
from fx_interface.execution.undo import is_all_or_nothing


def test_pure_inference_is_the_compiler_s_callable_itself(library: Any) -> None:
    made: list[Any] = []

    def compiler(graph: Any) -> Any:
        made.append(lambda *inputs: ())
        return made[-1]

    run = compile_joint(
        symbolic_trace(lambda x: x.sin()),
        [torch.ones(3)],
        operators=library,
        forward_compiler=lambda graph: pytest.fail("this is inference"),
        inference_compiler=compiler,
    )
    assert run is made[0]


def test_the_backward_has_its_own_compiler(library: Any, interpreter: Any) -> None:
    seen: list[str] = []

    def compiler(name: str) -> Any:
        return lambda graph: (seen.append(name), interpreter(graph))[1]

    compile_joint(
        symbolic_trace(lambda x: x.sin()),
        [torch.ones(3, requires_grad=True)],
        operators=library,
        forward_compiler=compiler("forward"),
        backward_compiler=compiler("backward"),
    )
    assert seen == ["forward", "backward"]


def test_without_a_fallback_overlap_is_an_error(library: Any, interpreter: Any) -> None:
    traced = trace_joint(
        symbolic_trace(lambda x, y: x.mul_(y)), [torch.ones(3), torch.ones(3)], operators=library
    )
    run = finish(traced.plan, interpreter(traced.forward))
    base = torch.ones(4)
    with pytest.raises(StackError, match="AOT302"):
        run(base[:3], base[1:])


def test_a_result_may_require_grad_without_a_gradient(compiled: Any) -> None:
    x = torch.randn(3, requires_grad=True)
    result = compiled(lambda x: x.norm(0))(x)
    assert result.requires_grad
    result.backward()
    assert x.grad is None or not x.grad.any()
    assert torch.autograd.grad(compiled(lambda x: x.norm(0))(x), x, allow_unused=True) == (None,)


@pytest.mark.parametrize("grad", [False, True])
def test_a_call_that_raises_has_changed_nothing(library: Any, interpreter: Any, grad: bool) -> None:
    def program(x: Any, w: Any, i: Any) -> Any:
        x.mul_(2)
        noise = torch.rand(3)
        return w[i] + noise

    x, w = torch.ones(3), torch.ones(3, requires_grad=grad)
    inside, outside = torch.tensor([0]), torch.tensor([7])
    run = compile_joint(
        symbolic_trace(program), [x, w, inside], operators=library, forward_compiler=interpreter
    )
    assert is_all_or_nothing(run)
    state = torch.get_rng_state()
    with pytest.raises(IndexError):
        run(x, w, outside)
    assert x.tolist() == [1, 1, 1]
    assert torch.equal(state, torch.get_rng_state())
    run(x, w, inside)
    assert x.tolist() == [2, 2, 2]


def test_the_fallback_that_raises_has_changed_nothing(library: Any, interpreter: Any) -> None:
    graph = symbolic_trace(lambda x, y, i: (x.mul_(2), y[i]))
    inside, outside = torch.tensor([0]), torch.tensor([7])
    run = compile_joint(
        graph, [torch.ones(3), torch.ones(3), inside], operators=library, forward_compiler=interpreter
    )
    memory = torch.ones(4)
    with pytest.raises(IndexError):
        run(memory[:3], memory[1:], outside)
    assert memory.tolist() == [1, 1, 1, 1]


def test_what_may_fail_runs_although_nobody_reads_it(library: Any, interpreter: Any) -> None:
    def program(x: Any, i: Any) -> Any:
        torch.linalg.eigh(x[i])  # two results, of one that may fail itself
        return x + 1

    inside, outside = torch.tensor([0, 1]), torch.tensor([7, 1])
    for x in (torch.eye(2), torch.eye(2, requires_grad=True)):
        traced = trace_joint(symbolic_trace(program), [x, inside], operators=library)
        assert traced.plan.ignored == 1
        run = finish(
            traced.plan, interpreter(traced.forward), traced.backward and interpreter(traced.backward)
        )
        assert len(run(x, inside)) == 1
        with pytest.raises(IndexError):
            run(x, outside)


def _linked(x: Any, y: Any) -> Any:
    z = x.exp()
    return z, z * 2, z.view(-1)


def _written(x: Any, y: Any) -> Any:
    y.mul_(x)
    return y, x.sin()


@pytest.mark.parametrize(
    "program", [lambda x, y: x.sin() * y, lambda x, y: (x.sin(), y.cos(), x * y), _linked, _written]
)
def test_a_plan_with_a_backward_runs_without(program: Any, library: Any, interpreter: Any) -> None:
    """In a call in which nothing asks for gradients the results have none."""

    def made(trained: bool) -> list[Any]:
        x, y = torch.ones(3, requires_grad=trained) * 0.5, torch.arange(3.0, requires_grad=trained) * 1
        return [x, y]

    traced = trace_joint(symbolic_trace(program), made(True), operators=library)
    assert traced.plan.backward is not None
    run = finish(traced.plan, interpreter(traced.forward), interpreter(traced.backward), fallback=program)
    results = program(*made(False))
    for found, expected in zip(
        run(*made(False)), results if isinstance(results, tuple) else [results], strict=True
    ):
        assert torch.equal(found, expected)
        assert not found.requires_grad
    with torch.no_grad():
        inputs = made(True)
        assert not any(
            found.requires_grad for found in run(*inputs) if all(found is not one for one in inputs)
        )


_FACTORIES = {
    "arange": lambda y: torch.arange(3, out=y),
    "linspace": lambda y: torch.linspace(0, 1, 3, out=y),
    "full": lambda y: torch.full((3,), 2.0, out=y),
    "zeros": lambda y: torch.zeros(3, out=y),
    "eye": lambda y: torch.eye(1, 3, out=y),
    "randperm": lambda y: torch.randperm(3, out=y),
    "heaviside": lambda y: torch.heaviside(torch.ones(3), torch.ones(3), out=y),
}


@pytest.mark.parametrize("make", _FACTORIES.values(), ids=_FACTORIES)
def test_a_result_beside_an_input_without_a_derivative(compiled: Any, make: Any) -> None:
    """Such an ``out=`` has a node whose backward raises: the other result does not lead there."""

    def program(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        y.abs_()
        return x * 2

    found = []
    for run in (program, compiled(program)):
        torch.manual_seed(0)
        x = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
        y = x * 1
        make(y)
        run(y, x).sum().backward()
        with pytest.raises(RuntimeError, match="is not implemented"):
            y.sum().backward()
        found.append((y.tolist(), y.shape, y._version, x.grad.tolist()))
    assert found[1] == found[0]


def _written_without_gradients(v: torch.Tensor) -> torch.Tensor:
    result = v * 3
    with torch.no_grad():
        v.mul_(2)
    return result + v


_PARTS = ("of a leaf, without gradients", "with a history", "of none")


def _part_of(kind: str) -> torch.Tensor:
    leaf = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
    if kind == "of a leaf, without gradients":
        with torch.no_grad():
            return leaf[:2]
    return (leaf * 1)[:2] if kind == "with a history" else leaf.detach()[:2]


@pytest.mark.parametrize("kinds", list(permutations(_PARTS, 2)))
def test_reading_a_view_that_was_made_and_written_without_gradients(compiled: Any, kinds: Any) -> None:
    """Autograd refuses it, in a version for another kind of view too."""
    found = []
    for run in (_written_without_gradients, compiled(_written_without_gradients)):
        seen: list[Any] = []
        for kind in kinds:
            try:
                result = run(_part_of(kind))
            except RuntimeError as error:
                seen.append(str(error))
            else:
                seen.append((result.tolist(), result.requires_grad))
        found.append(seen)
    assert found[1] == found[0]
    assert "created in no_grad mode" in str(found[0]) or "of a leaf, without gradients" not in kinds
