"""Gradients of results that other results are computed from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from aot_autograd.runtime.double_backward.second_derivatives import Repetition

W = torch.linspace(-1, 1, 6, dtype=torch.float64).view(3, 2).requires_grad_()
X = torch.linspace(0, 1, 12, dtype=torch.float64).view(4, 3)


def _hidden_states(x: torch.Tensor, w: torch.Tensor) -> Any:
    first = (x @ w).tanh()
    second = (first * first.sum()).sin()
    return first, second, (second * second + first).sum() + x.sum()


def _with_a_draw(x: torch.Tensor, w: torch.Tensor) -> Any:
    hidden = torch.nn.functional.dropout(x @ w, 0.5)
    return hidden, (hidden * hidden).sum()


def _with_a_leaf(x: torch.Tensor, w: torch.Tensor) -> Any:
    leaf = (x * 2).detach().requires_grad_()
    return leaf, ((leaf @ w) ** 2).sum()


def _with_a_view(x: torch.Tensor, w: torch.Tensor) -> Any:
    view = (x @ w).sum(0).expand(4, 2)
    return view, (view.exp() + x.sum()).sum()


def _with_a_view_of_an_input(x: torch.Tensor, w: torch.Tensor) -> Any:
    view = x.t()
    return view, (view.exp() * w.sum()).sum() + x.sum()


def _with_views_of_views(x: torch.Tensor, w: torch.Tensor) -> Any:
    hidden = x @ w
    turned = hidden.t()
    row = turned[0]
    longer = (row.exp() * turned.sum()).view(-1, 1)
    return row, turned, longer, (longer.sin() + hidden.sum()).sum()


def _with_views_alone(x: torch.Tensor, w: torch.Tensor) -> Any:
    turned = x.t()
    row = turned[0]
    return turned, row, row[1]


PROGRAMS = (
    _hidden_states,
    _with_a_draw,
    _with_a_leaf,
    _with_a_view,
    _with_a_view_of_an_input,
    _with_views_of_views,
    _with_views_alone,
)


def _both(program: Any, compiled: Any, use: Any) -> None:
    found = []
    for function in (program, compiled(program)):
        torch.manual_seed(0)
        x, w = X.clone().requires_grad_(), W.detach().clone().requires_grad_()
        found.append([*use(function(x, w), x, w), x.grad, w.grad])
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("program", PROGRAMS)
def test_kept_gradients(program: Any, compiled: Any) -> None:
    def use(results: Any, x: Any, w: Any) -> Any:
        for result in results:
            result.retain_grad()
        (results[-1] * 2 + results[0].sum() * 3).backward()
        return [result.grad for result in results]

    _both(program, compiled, use)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_backward_to_a_result(program: Any, compiled: Any) -> None:
    def use(results: Any, x: Any, w: Any) -> Any:
        (found,) = torch.autograd.grad(results[-1], results[0], retain_graph=True)
        results[-1].backward()
        return [found]

    _both(program, compiled, use)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_hook_changes_the_gradient(program: Any, compiled: Any) -> None:
    def use(results: Any, x: Any, w: Any) -> Any:
        seen: list[Any] = []

        def hook(grad: Any) -> Any:
            seen.append(grad.clone())
            return grad * 2

        for result in results[:-1]:
            result.register_hook(hook)
        results[-1].backward()
        return seen

    _both(program, compiled, use)


def _with_a_root(x: torch.Tensor) -> Any:
    first = x * 2
    return first, first.sqrt() * 1e8


def _with_a_root_of_a_view(x: torch.Tensor) -> Any:
    first = (x * 2).view(1, -1)
    return first, first.sqrt() * 1e8 + x


@pytest.mark.parametrize("hook", [torch.neg, torch.nan_to_num, lambda g: g.clamp(-1, 1), lambda g: g / 2])
@pytest.mark.parametrize("program", [_with_a_root, _with_a_root_of_a_view])
def test_a_hook_changes_an_infinite_or_a_large_gradient(program: Any, hook: Any, compiled: Any) -> None:
    """What the compiled backward contains already cannot be subtracted from what the hook has made of it."""
    found = []
    for function in (program, compiled(program)):
        x = torch.tensor([0.0, 1.0, 4.0], requires_grad=True)
        first, last = function(x)
        first.register_hook(hook)
        (first.sum() + last.sum()).backward()
        found.append(x.grad)
    assert torch.equal(found[1], found[0])


def test_the_part_that_does_not_go_through_another_result_is_not_a_difference(compiled: Any) -> None:
    def program(x: torch.Tensor) -> Any:
        first = x * 1
        root = first.sqrt()
        return first, root, torch.where(x > 5, x, root)

    def use(function: Any) -> Any:
        x = torch.tensor([0.0, 4.0], requires_grad=True)
        results = function(x)
        for result in results:
            result.retain_grad()
        sum(result.sum() for result in results).backward()
        return [x.grad, *(result.grad for result in results)]

    for found, expected in zip(use(compiled(program)), use(program), strict=True):
        assert torch.equal(found, expected)


def test_a_gradient_that_is_only_looked_at_leaves_the_rest_to_the_compiled_backward(
    compiled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    first, last = compiled(_with_a_root)(x)
    first.retain_grad()
    monkeypatch.delattr(Repetition, "gradients")
    last.sum().backward()
    assert torch.equal(x.grad, torch.autograd.grad(_with_a_root(x)[1].sum(), x)[0])


@pytest.mark.parametrize("program", PROGRAMS)
def test_inputs_with_a_history(program: Any, compiled: Any) -> None:
    found = []
    for function in (program, compiled(program)):
        torch.manual_seed(0)
        x, w = X.clone().requires_grad_(), W.detach().clone().requires_grad_()
        results = function(x * 2, w.sin())
        for result in results[:-1]:
            result.register_hook(lambda gradient: gradient * 3)
        results[-1].backward()
        found.append((x.grad, w.grad))
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)


def _written_under_hooks(program: Any, gone: bool) -> list[Any]:
    leaf, seen = torch.linspace(0, 1, 3).requires_grad_(), []
    x = leaf * 1
    x.register_hook(lambda gradient: seen.append(("before", gradient.tolist())))
    result = program(x)
    x.register_hook(lambda gradient: seen.append(("after", gradient.tolist())) or gradient * 3)
    x.retain_grad()
    if gone:
        del x
        result.sum().backward()
        return [seen, leaf.grad.tolist()]
    (result + x).sum().backward()
    return [seen, leaf.grad.tolist(), x.grad.tolist()]


@pytest.mark.parametrize("gone", [False, True])
def test_an_input_that_is_given_a_history(compiled: Any, gone: bool) -> None:
    def program(x: torch.Tensor) -> Any:
        x.mul_(2)
        return x.exp()

    assert _written_under_hooks(compiled(program), gone) == _written_under_hooks(program, gone)


def test_an_input_that_is_given_a_history_later(compiled: Any) -> None:
    def program(x: torch.Tensor) -> Any:
        factor = x.exp()
        x.mul_(factor)
        return factor

    found = []
    for function in (program, compiled(program)):
        leaf = torch.linspace(0, 1, 3).requires_grad_()
        x = leaf * 1
        factor = function(x)
        x.retain_grad()
        (x.sin() + factor).sum().backward()
        found.append((x.grad, leaf.grad))
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)


def test_a_hook_of_a_result_that_is_gone(compiled: Any) -> None:
    def use(results: Any, x: Any, w: Any) -> Any:
        earlier, later = results[0], results[-1].sum()
        seen: list[Any] = []
        earlier.register_hook(seen.append)
        del earlier, results
        later.backward()
        return [x.grad, w.grad, *seen]

    def program(x: torch.Tensor, w: torch.Tensor) -> Any:
        first = x + w
        return first, first * 2

    def both(function: Any) -> Any:
        x, w = torch.ones(3, requires_grad=True), torch.full((3,), 2.0, requires_grad=True)
        return use(list(function(x, w)), x, w)

    expected, found = both(program), both(compiled(program))
    assert [part.tolist() for part in found] == [part.tolist() for part in expected]


def test_nobody_looks(compiled: Any) -> None:
    """The program must not run again: an input that has changed would make that impossible."""
    x, w = X.clone().requires_grad_(), W.detach().clone().requires_grad_()
    first, _, last = compiled(_hidden_states)(x, w)
    expected = torch.autograd.grad(_hidden_states(x, w)[-1], [x, w])
    with torch.no_grad():
        first.grad_fn.remembered = SimpleNamespace(alive=list)
    assert torch.autograd.grad(last, [x, w], retain_graph=True)[1].equal(torch.autograd.grad(last, w)[0])
    torch.testing.assert_close(
        torch.autograd.grad(compiled(_hidden_states)(x, w)[-1], [x, w]), expected, rtol=0, atol=0
    )


def test_second_derivatives(compiled: Any) -> None:
    def use(results: Any, x: Any, w: Any) -> Any:
        (found,) = torch.autograd.grad(results[-1], results[0], create_graph=True)
        (found * found).sum().backward()
        return [found]

    _both(_hidden_states, compiled, use)


def test_results_may_be_written_to_afterwards(compiled: Any) -> None:
    def use(results: Any, x: Any, w: Any) -> Any:
        results[-1].mul_(3)
        results[-1].backward()
        return results

    _both(_hidden_states, compiled, use)


def test_a_second_backward_needs_the_graph(compiled: Any) -> None:
    first, _, last = compiled(_hidden_states)(X, W.detach().clone().requires_grad_())
    first.retain_grad()
    last.backward()
    with pytest.raises(RuntimeError, match="second time"):
        last.backward()


def test_what_cannot_run_again_says_so(compiled: Any) -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> Any:
        hidden = (x + 1).sin()[:3, :2] * w
        return hidden, hidden.exp().sum()

    x = X.clone()
    first, last = compiled(program)(x, W.detach().clone().requires_grad_())
    x.add_(1)
    first.retain_grad()
    with pytest.raises(RuntimeError, match="AOT303"):
        last.backward()


def test_inputs_that_nobody_else_holds_are_there_to_run_again(compiled: Any) -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> Any:
        hidden = (x + 1).sin()[:3, :2] * w
        return hidden, hidden.exp().sum()

    found = []
    for function in (program, compiled(program)):
        w = W.detach().clone().requires_grad_()
        first, last = function(X.clone(), w)
        first.retain_grad()
        last.backward()
        found.append((first.grad, w.grad))
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)


def test_no_backward_leads_to_an_input_without_a_gradient(compiled: Any) -> None:
    """Its own history may be freed by then."""
    w = W.detach().clone().requires_grad_()
    hidden = (X @ w).tanh()
    hidden.sum().backward()
    last = compiled(lambda x, w: (x.detach() * w.sum()).sum() + x.shape[0])(hidden, w)
    last.backward()
    assert w.grad is not None


def test_what_the_program_copied_may_be_overwritten(compiled: Any) -> None:
    """A queue of keys is copied before it is used, and gets new keys before the backward."""

    def program(x: torch.Tensor, queue: torch.Tensor) -> Any:
        return (x * queue.clone().detach()).sum(), x.exp()

    x, queue = X.clone().requires_grad_(), X.clone()
    total, _ = compiled(program)(x, queue)
    queue.zero_()
    total.backward()
    assert x.grad is not None
    assert torch.equal(x.grad, X)


def test_infinite_parts_meet_at_the_results_that_they_come_from(compiled: Any) -> None:
    """What arrives at ``second`` goes on to ``first`` as a whole: inf - inf is NaN."""

    def program(x: torch.Tensor) -> Any:
        first = x * 2
        second = first.sqrt()
        return first, second, second * 3

    found = []
    for run in (program, compiled(program)):
        x = torch.tensor([0.0, 4.0], requires_grad=True)
        first, second, third = run(x)
        first.retain_grad()
        (third.sum() - 2 * second.sum()).backward()
        found.append((first.grad.tolist(), x.grad.tolist()))
    assert str(found[1]) == str(found[0])


def test_a_hook_that_gives_the_same_numbers_by_another_function(compiled: Any) -> None:
    """``g * g`` is ``g`` where ``g`` is 1, and its derivative is twice that of ``g``."""

    def program(x: torch.Tensor, w: torch.Tensor) -> Any:
        first = x * x
        return first, (first * w).sum()

    found = []
    for run in (program, compiled(program)):
        x, w = torch.tensor([2.0, 3.0], requires_grad=True), torch.ones(2, requires_grad=True)
        first, total = run(x, w)
        first.register_hook(lambda g: g * g)
        (gradient,) = torch.autograd.grad(total, x, create_graph=True)
        found.append([gradient, *torch.autograd.grad(gradient.sum(), (x, w))])
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)


def _scaled_by_a_leaf(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scale = torch.full((3,), 2.0, requires_grad=True)
    return x * scale, scale


@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize("hooked", [False, True])
def test_nothing_arrives_at_a_leaf_where_a_second_backward_is_refused(
    compiled: Any, hooked: bool, chosen: bool
) -> None:
    def steps(function: Any) -> list[Any]:
        x, seen = torch.arange(3.0, requires_grad=True), []
        result, leaf = function(x)
        if hooked:
            leaf.register_hook(lambda gradient: seen.append(gradient.tolist()))
        if chosen:
            seen.append(torch.autograd.grad(result.sum(), leaf)[0].tolist())
        else:
            result.sum().backward()
        with pytest.raises(RuntimeError, match="second time"):
            result.sum().backward()
        return [seen, x.grad, leaf.grad]

    assert repr(steps(compiled(_scaled_by_a_leaf))) == repr(steps(_scaled_by_a_leaf))


def _a_trunk_and_others(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The third is computed from the second, and leads neither to the first nor to ``x``."""
    trunk = w * w
    return x**2, trunk, trunk.exp() * (x**2).detach(), trunk.exp() + x


def _tried(step: Any, *given: Any) -> Any:
    try:
        return step(*given)
    except RuntimeError as error:
        return str(error)[:50]


def _grad(outputs: Any, wanted: Any, **how: Any) -> Any:
    return torch.autograd.grad(sum(t.sum() for t in outputs), wanted, allow_unused=True, **how)


_IN_TURN = {
    "freed, and no chosen tensor behind it": [
        lambda x, w, r: r[2].sum().backward(),
        lambda x, w, r: _grad([r[2], r[0]], [r[0]]),
    ],
    "not freed, as no chosen tensor is behind it": [
        lambda x, w, r: _grad([r[0], r[2]], [r[0]]),
        lambda x, w, r: r[2].sum().backward(retain_graph=True),
        lambda x, w, r: _grad([r[2]], [r[1]]),
        lambda x, w, r: _grad([r[2]], [w]),
    ],
    "one part is freed, another one asked for": [
        lambda x, w, r: _grad([r[3]], [w]),
        lambda x, w, r: _grad([r[3]], [x]),
        lambda x, w, r: _grad([r[3]], [w, x]),
    ],
    "beside a result that is freed up to here": [
        lambda x, w, r: _grad([r[3]], [r[1]]),
        lambda x, w, r: _grad([r[3], r[0]], [x]),
        lambda x, w, r: _grad([r[2]], [w]),
        lambda x, w, r: _grad([r[3], r[0]], [r[1]]),
    ],
}


def _one_after_the_other(program: Any, steps: Any, hooked: bool) -> str:
    x, w = torch.tensor([0.5, 2.0], requires_grad=True), torch.tensor([1.5, -1.0], requires_grad=True)
    results, seen = program(x, w), []
    if hooked:
        for number, result in enumerate(results):
            result.register_hook(lambda g, number=number: seen.append((number, g.tolist())))
    return repr([[_tried(step, x, w, results) for step in steps], seen, x.grad, w.grad])


@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("steps", _IN_TURN.values(), ids=_IN_TURN)
def test_what_no_chosen_tensor_is_behind_is_left_alone(compiled: Any, steps: Any, hooked: bool) -> None:
    expected = _one_after_the_other(_a_trunk_and_others, steps, hooked)
    assert _one_after_the_other(compiled(_a_trunk_and_others), steps, hooked) == expected
