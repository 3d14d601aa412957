"""``torch.autograd.grad`` and ``backward(inputs=...)``: what leads to no chosen tensor is left alone, as in eager."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from aot_autograd.runtime.hooks import chosen_tensors


def _two(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.sin(), y.cos() * 2


def _linked(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    logits = x * y.exp()
    return (logits.sin() * x).sum(), logits


def _seen(tensor: torch.Tensor, log: list[Any], name: str) -> None:
    tensor.register_hook(lambda g: log.append((name, g.tolist())))


def _results_hooked(compiled: Any, x: Any, y: Any, log: list[Any]) -> Any:
    a, b = compiled(_two)(x, y)
    _seen(a, log, "a")
    _seen(b, log, "b")
    return a, b


def _chosen_input(compiled: Any, x: Any, y: Any, log: list[Any]) -> Any:
    a, b = _results_hooked(compiled, x, y, log)
    return torch.autograd.grad(a.sum() + b.sum(), x)


def _result_at_the_root(compiled: Any, x: Any, y: Any, log: list[Any]) -> Any:
    """The backward begins at the compiled function's node: the engine does not tell that it runs there."""
    a, b = compiled(lambda x, y: (x.sin() * y, y * 2))(x, y)
    _seen(b, log, "b")
    a.register_hook(lambda gradient: gradient * 2)
    return torch.autograd.grad(a, [x, y], torch.ones(2))


def _root_that_leads_nowhere(compiled: Any, x: Any, y: Any, log: list[Any]) -> Any:
    """Of one result alone the hooks are called, of several those that lead to a chosen tensor."""
    a, b = _results_hooked(compiled, x, y, log)
    first = torch.autograd.grad(a, y, torch.ones(2), retain_graph=True, allow_unused=True)
    log.append("both")
    return *first, *torch.autograd.grad([a, b], y, [torch.ones(2)] * 2)


def _later_result_at_the_root(compiled: Any, x: Any, y: Any, log: list[Any]) -> Any:
    loss, logits = compiled(_linked)(x, y)
    for tensor in (loss, logits):
        tensor.register_hook(lambda gradient: gradient * 3)
    return torch.autograd.grad(loss, [y, x])


def _accumulated(compiled: Any, x: Any, y: Any, log: list[Any]) -> Any:
    a, b = _results_hooked(compiled, x, y, log)
    (a.sum() + b.sum()).backward(inputs=[y])
    return x.grad, y.grad


def _chosen_result(compiled: Any, x: Any, y: Any, log: list[Any]) -> Any:
    a, b = _results_hooked(compiled, x, y, log)
    return torch.autograd.grad(a.sum() + b.sum(), a)


def _chosen_result_and_input(compiled: Any, x: Any, y: Any, log: list[Any]) -> Any:
    a, b = _results_hooked(compiled, x, y, log)
    return torch.autograd.grad(a.sum() + b.sum(), [b, x])


def _leaf_inside(compiled: Any, x: Any, y: Any, log: list[Any]) -> Any:
    """Nothing is chosen: a result that leads to a leaf of its own is reached too."""
    a, b = compiled(lambda x, y: (x.sin(), y.detach().requires_grad_().exp()))(x, y)
    _seen(a, log, "a")
    _seen(b, log, "b")
    torch.autograd.backward([a, b], [torch.ones(2), torch.ones(2)])
    return x.grad, y.grad


def _behind_another(compiled: Any, x: Any, y: Any, log: list[Any]) -> Any:
    """What a later compiled function leads to is an earlier one, at an output that leads to no chosen tensor."""
    a, b = compiled(_two)(x, y)
    c, d = compiled(lambda p, q: (p.exp(), q.tanh()))(a, b)
    for name, tensor in (("a", a), ("b", b), ("c", c), ("d", d)):
        _seen(tensor, log, name)
    return torch.autograd.grad(c.sum() + d.sum(), x)


def _several(compiled: Any, x: Any, y: Any, log: list[Any]) -> Any:
    a, b = compiled(_two)(x, y)
    torch.autograd.graph.register_multi_grad_hook(
        (a, b), lambda grads: log.append([g is None for g in grads])
    )
    return torch.autograd.grad(a.sum() + b.sum(), x)


def _chosen_earlier_result(compiled: Any, x: Any, y: Any, log: list[Any]) -> Any:
    loss, logits = compiled(_linked)(x, y)
    return torch.autograd.grad(loss, [logits, y, x])


def _chosen_edge(compiled: Any, x: Any, y: Any, log: list[Any]) -> Any:
    loss, logits = compiled(_linked)(x, y)
    edge = torch.autograd.graph.get_gradient_edge(logits)
    return torch.autograd.grad(loss, [edge, y])


def _hook_of_the_node(compiled: Any, x: Any, y: Any, log: list[Any]) -> Any:
    (a,) = compiled(lambda x, y: (x * y,))(x, y)
    a.grad_fn.register_hook(lambda found, _: log.append([g is None for g in found]))
    return torch.autograd.grad(a.sum(), x)


CASES = {name[1:]: case for name, case in list(globals().items()) if name.startswith("_") and callable(case)}
for other in ("two", "linked", "seen", "results_hooked"):
    del CASES[other]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("history", [False, True], ids=["leaves", "history"])
def test_as_in_eager(compiled: Any, case: Any, history: bool) -> None:
    found = []
    for how in (lambda function: function, compiled):
        x, y = torch.tensor([1.0, 0.5], requires_grad=True), torch.tensor([-1.0, 2.0], requires_grad=True)
        log: list[Any] = []
        given = (x * 1, y * 1) if history else (x, y)
        if history:
            for tensor in given:
                tensor.retain_grad()
        returned = case(how, *given, log)
        found.append(([None if g is None else g.tolist() for g in returned], log))
    assert sorted(map(str, found[0][1])) == sorted(map(str, found[1][1]))  # in another order, perhaps
    for one, two in zip(found[0][0], found[1][0], strict=True):
        assert (one is None) == (two is None)
        if one is not None:
            torch.testing.assert_close(torch.tensor(two), torch.tensor(one), rtol=0, atol=0)


@pytest.mark.parametrize("chosen", [0, 1])
def test_long_chains(compiled: Any, chosen: int) -> None:
    """Each node is asked about once: neither the depth nor the number of ways through the chain matters."""
    cell = compiled(lambda h, c, w: (h * 0.5 + c, c * 0.5 + w))
    state = [torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)]
    w = torch.zeros(1, requires_grad=True)
    h, c = state
    seen: list[Any] = []
    for step in range(1500):
        h, c = cell(h, c, w)
        if step % 500 == 0:
            h.register_hook(seen.append)
    (found,) = torch.autograd.grad((h + c).sum(), state[chosen])
    assert len(seen) == 3
    assert found.item() < 1e-10


def test_the_engine_is_not_asked_about_leaves(compiled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It raises about one that was chosen: a model's parameters would cost an exception each."""
    asked: list[str] = []

    def will_execute(node: Any) -> bool:
        asked.append(node.name())
        return bool(torch._C._will_engine_execute_node(node))

    monkeypatch.setattr(chosen_tensors, "_will_execute", will_execute)
    x, y = (torch.tensor([0.5, 1.5], requires_grad=True) for _ in range(2))
    a, b = compiled(_two)(x, y)
    (gradient,) = torch.autograd.grad(a.sum() + b.sum(), x)
    assert torch.equal(gradient, x.cos())
    assert "torch::autograd::AccumulateGrad" not in asked
    assert "AccumulateGrad" not in asked


def test_what_a_usual_step_costs(compiled: Any) -> None:
    """All leaves are chosen: few functions in Python run around the compiled graphs of a step."""
    function = compiled(lambda x, y: (x * y).sum())
    x, y = (torch.randn(3, requires_grad=True) for _ in range(2))

    def step() -> Any:
        return torch.autograd.grad(function(x, y), (x, y))

    step()
    calls: list[str] = []
    ours = f"{Path(chosen_tensors.__file__).parents[1]}{os.sep}"
    sys.setprofile(
        lambda frame, event, _: (
            calls.append(frame.f_code.co_qualname)
            if event == "call" and frame.f_code.co_filename.startswith(ours)
            else None
        )
    )
    try:
        step()
    finally:
        sys.setprofile(None)
    assert len(calls) <= 32, calls
