"""Hooks that a compiled function registers on tensors: called by its backward as in eager, in one graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

import fxstack

Program = Callable[[Tensor, list[Any]], Any]


def _given(requires_grad: bool = True) -> Tensor:
    return torch.linspace(-1, 1, 6).view(2, 3).requires_grad_(requires_grad)


def scaled(factor: float, grad: Tensor) -> Tensor:
    return grad * factor


def on_an_input(x: Tensor, log: list[Any]) -> Any:
    x.register_hook(lambda grad: log.append(("x", grad.clone())))
    x.register_hook(functools.partial(scaled, 3.0))
    return (x * 2).sum()


def on_what_is_computed(x: Tensor, log: list[Any]) -> Any:
    y = x.exp()
    y.register_hook(lambda grad: log.append(("first", grad.clone())))
    y.register_hook(lambda grad: grad * 10)
    y.register_hook(lambda grad: log.append(("last", grad.clone())))
    return (y.sin() + y).sum()


def on_both(x: Tensor, log: list[Any]) -> Any:
    y = x * x
    x.register_hook(lambda grad: log.append("x"))
    y.register_hook(lambda grad: log.append("y"))
    z = y.cos()
    z.register_hook(lambda grad: log.append("z"))
    return z.sum(), y


def taken_off_again(x: Tensor, log: list[Any]) -> Any:
    handle = x.register_hook(lambda grad: grad * 100)
    y = x * 2
    handle.remove()
    kept = y.register_hook(lambda grad: grad * 3)
    return y.sum(), handle, kept


def when_accumulated(x: Tensor, log: list[Any]) -> Any:
    x.register_post_accumulate_grad_hook(lambda leaf: log.append(leaf.grad.clone()))
    return (x * 3).sum()


def before_and_after_a_write(x: Tensor, log: list[Any]) -> Any:
    y = x * 2
    y.register_hook(lambda grad: log.append(("before", grad.clone())))
    y.mul_(5)
    y.register_hook(lambda grad: log.append(("after", grad.clone())))
    return y.sum()


def differentiated_inside(x: Tensor, log: list[Any]) -> Any:
    y = x * 2
    y.register_hook(lambda grad: grad * 7)
    (grad,) = torch.autograd.grad((y * y).sum(), x, retain_graph=True)
    return (y * grad).sum()


def on_a_constant(x: Tensor, log: list[Any]) -> Any:
    try:
        x.detach().register_hook(print)
    except RuntimeError as error:
        log.append(str(error))
    try:
        (x * 2).register_post_accumulate_grad_hook(print)
    except RuntimeError as error:
        log.append(str(error))
    return x.sum()


def _outcome(program: Program, run: Callable[..., Any]) -> Any:
    x, log = _given(), []
    found: Any = []
    for _ in range(2):
        result = run(x, log)
        parts = result if isinstance(result, tuple) else (result,)
        tensors = [part for part in parts if isinstance(part, Tensor)]
        sum(part.sum() for part in tensors).backward()
        found.append([part.detach().clone() for part in tensors])
        for handle in parts[len(tensors) :]:
            handle.remove()
    return found, x.grad, log


WHOLE = (
    on_an_input,
    on_what_is_computed,
    on_both,
    taken_off_again,
    when_accumulated,
    on_a_constant,
)
BROKEN = (before_and_after_a_write, differentiated_inside)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", [*WHOLE, *BROKEN], ids=lambda program: program.__name__)
def test_hooks_do_what_they_do_in_eager(program: Program, backend: str) -> None:
    compiled = fxstack.compile(program, backend=backend, fullgraph=program in WHOLE)
    expected, actual = _outcome(program, program), _outcome(program, compiled)
    one, other = pytree.tree_leaves(expected), pytree.tree_leaves(actual)
    assert len(one) == len(other)
    for wanted, found in zip(one, other, strict=True):
        if isinstance(wanted, Tensor):
            torch.testing.assert_close(found, wanted)
        else:
            assert found == wanted


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_a_hook_that_closes_over_what_changes(backend: str) -> None:
    """The object that a hook reads is the program's own, as it is when the backward runs."""

    def program(x: Tensor, box: dict[str, float]) -> Tensor:
        y = x * 2
        y.register_hook(lambda grad: grad * box["factor"])
        box["factor"] += 1.0
        return y.sum()

    grads = []
    for run in (program, fxstack.compile(program, backend=backend, fullgraph=True)):
        x, box = _given(), {"factor": 2.0}
        result = run(x, box)
        box["factor"] *= 2
        result.backward()
        grads.append((x.grad, box))
    torch.testing.assert_close(grads[1], grads[0])


def _old_one_taken_off_before(x: Tensor, handle: Any, log: list[Any]) -> Tensor:
    handle.remove()
    x.register_hook(lambda grad: log.append("new"))
    return x * 2


def _old_one_taken_off_after(x: Tensor, handle: Any, log: list[Any]) -> Tensor:
    x.register_hook(lambda grad: log.append("new"))
    handle.remove()
    return x * 2


@pytest.mark.parametrize("program", [_old_one_taken_off_before, _old_one_taken_off_after])
@pytest.mark.parametrize("method", ["register_hook", "register_post_accumulate_grad_hook"])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_hooks_that_were_there_before(program: Any, method: str, backend: str) -> None:
    found = []
    for function in (program, fxstack.compile(program, backend=backend)):
        x = _given()
        log: list[Any] = []
        handle = getattr(x, method)(functools.partial(lambda log, _: log.append("old"), log))
        function(x, handle, log).sum().backward()
        found.append((log, x.grad.tolist(), len(x._backward_hooks or ())))
    assert found[0] == found[1]


def test_a_hook_between_two_layers_does_not_run_the_program_again() -> None:
    seen: list[Tensor] = []
    layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))

    def program(x: Tensor) -> Tensor:
        for place, layer in enumerate(layers):
            x = layer(x).tanh()
            if place == 1:
                x.register_hook(lambda grad: seen.append(grad.clone()))
        return x.sum()

    compiled = fxstack.compile(program, fullgraph=True)
    x = torch.linspace(-1, 1, 8).view(2, 4)
    expected = torch.autograd.grad(program(x), list(layers.parameters()))
    for _ in range(2):
        loss = compiled(x)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            found = torch.autograd.grad(loss, list(layers.parameters()))
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other)
        assert "aten::tanh" not in {event.key for event in profile.key_averages()}
    assert len(seen) == 3
    torch.testing.assert_close(seen[1], seen[0])


@pytest.mark.parametrize("is_nested", [False, True])
def test_backward_hooks_of_modules_in_autocast(is_nested: bool) -> None:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4), torch.nn.Linear(4, 4)]
    model = torch.nn.Sequential(*layers)
    seen: list[tuple[torch.dtype, Tensor]] = []
    for place in (0, 2):
        model[place].register_full_backward_hook(
            lambda module, inputs, outputs: seen.append((outputs[0].dtype, outputs[0].float()))
        )

    def program(x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = model[:2](x)
            with torch.autocast("cpu", enabled=not is_nested):
                y = model[2](y.float() if is_nested else y)
            y = model[3](y)
        return y.float().sin().sum()

    compiled = fxstack.compile(program, fullgraph=True)
    x = torch.linspace(-1, 1, 16).view(2, 8)
    for one in (program, compiled, compiled):
        one(x).backward()
    for found, expected in ((seen[2], seen[0]), (seen[3], seen[1]), (seen[4], seen[0])):
        assert found[0] is expected[0]
        torch.testing.assert_close(found[1], expected[1], rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_hooked_tensor_that_the_program_differentiates_is_not_cut_off(backend: str) -> None:
    def program(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor | None]:
        product = x * y
        (found,) = torch.autograd.grad(product.sum(), x, retain_graph=True, allow_unused=True)
        product.register_hook(lambda grad: grad * 2)
        return product.sin(), found

    found = []
    for run in (program, fxstack.compile(program, backend=backend)):
        x, y = _given(), _given(False) + 2
        result, inside = run(x, y)
        result.sum().backward()
        found.append((result.detach(), inside, x.grad))
    assert found[0][1] is not None
    torch.testing.assert_close(found[1], found[0])
