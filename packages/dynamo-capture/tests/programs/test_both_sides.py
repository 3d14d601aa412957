"""``if`` with ``else``, or with a result, that data alone decide: both sides are done, and one of them counts."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dynamo_capture import optimize

UP, DOWN = torch.tensor([1.0, 2.0, -0.5]), torch.tensor([-1.0, -2.0, 0.5])


def _writes_on_both_sides(x, y):
    if x.sum() > 0:
        x.add_(y, alpha=2)
        y.zero_()
    else:
        x.sub_(y)
    return x.div_(3), y


def _one_side_reads_what_the_other_writes(x, y):
    z, w = x.clone(), y.clone()
    if x.sum() > 0:
        z.mul_(2)
        w[:] = z
    else:
        w.copy_(z)
        z[0] = w[1]
    return z + 1, w + 1


def _a_number(x, y):
    ratio = (x.sum() / y.sum()).item() if x.sum() > 0 else 1.0
    return x * ratio, ratio


def _a_number_or_the_one_before(x, y):
    ratio = 1.0
    if x.sum() > 0 and y.sum() != 0:
        ratio = (x.sum() / (y.sum() + 1e-6)).item()
    return x.add(y, alpha=-0.1 * ratio), ratio


def _a_tensor(x, y):
    z = x * 2 if x.sum() > 0 else y + 1
    return z.reshape(3, 1)[1:], z


def _the_same_object_or_a_new_one(x, y):
    z = x
    if x.sum() > 0:
        z = z * 2
    return z + 1, z is x, z


def _objects(x, y):
    z = x if x.sum() > 0 else y
    return z, z * 2


def _a_bool(x, y):
    found = False
    if x.sum() > 0:
        found = bool((y > 0).any())
    return found, x + 1


def _a_word_and_a_tensor(x, y):
    if x.sum() > 0:
        name, z = "up", x.exp()
    else:
        z, name = y.exp(), "down"
    return name, z


def _nothing_or_a_tensor(x, y):
    z = None
    if x.sum() > 0:
        z = x * 2
    return z, y + 1


def _writes_and_a_number(x, y):
    scale = 0.5
    if x.max() > 1:
        x.clamp_(max=1)
        scale = x.sum().item()
    else:
        y.neg_()
    return x * scale, y, scale


def _a_view_of_what_is_written(x, y):
    z = x.clone()
    if x.sum() > 0:
        part = z[:2]
        z.mul_(2)
    else:
        part = z[1:]
    return part + 1, z + 1


def _in_a_loop(x, y):
    best, count = y.clone(), 0.0
    for row in torch.stack([x, y, x * 3]).unbind():
        if row.sum() > 0:
            best.add_(row)
            count = row.sum().item()
        else:
            best.sub_(row)
            continue
        best.mul_(0.5)
    return best + 1, count


def _at_the_end_of_a_loop(x, y):
    for row in (x, y):
        if row.sum() > 0:
            row.mul_(2)
        else:
            row.div_(2)
    return x + y


def _one_behind_the_other(x, y):
    norm = x.norm()
    scale = (1 / norm).item() if norm > 1 else 2.0
    x.mul_(scale)
    if x.sum() > y.sum():
        x.sub_(y)
    else:
        y.sub_(x)
    other = x.mean().item() if y.sum() > 0 else scale
    return x, y, scale, other


def _a_flag_that_both_sides_change(x, y):
    flag = (x.sum() > 0).clone()
    if flag:
        flag.fill_(False)
        z = x * 2
    else:
        flag.fill_(True)
        z = x * 3
    return ~flag, z


def _a_given_flag(x, y):
    y.copy_(x > 0)
    first = y[:1].bool()
    name = "none"
    if first:
        name = "some"
        first.logical_not_()
    else:
        x.neg_()
    return name, ~first, x


ONE_GRAPH = [
    _writes_on_both_sides,
    _one_side_reads_what_the_other_writes,
    _a_number,
    _a_number_or_the_one_before,
    _a_tensor,
    _objects,
    _a_bool,
    _a_word_and_a_tensor,
    _nothing_or_a_tensor,
    _writes_and_a_number,
    _a_view_of_what_is_written,
    _in_a_loop,
    _at_the_end_of_a_loop,
    _one_behind_the_other,
    _a_flag_that_both_sides_change,
    _a_given_flag,
]


def _calls() -> list[tuple[torch.Tensor, torch.Tensor]]:
    infinite = torch.tensor([float("inf"), float("nan"), 0.0])
    kinds = [UP, DOWN, torch.zeros(3), infinite]
    return [(one.clone(), other.clone()) for one, other in itertools.product(kinds, kinds)]


@pytest.mark.parametrize("program", ONE_GRAPH)
@pytest.mark.parametrize("order", [1, -1], ids=["", "backwards"])
def test_both_sides_are_one_graph(same: Any, program: Callable[..., Any], order: int) -> None:
    same(program, *_calls()[::order], graphs=1, breaks=0)
    with torch.no_grad():
        same(program, *_calls()[::order], graphs=1, breaks=0)


def _shown(values: list[Any]) -> list[Any]:
    return [(one.tolist(), one.requires_grad) if isinstance(one, torch.Tensor) else one for one in values]


@pytest.mark.parametrize("program", [*ONE_GRAPH, _the_same_object_or_a_new_one])
def test_histories_and_gradients_are_those_of_the_side_that_was_chosen(program: Callable[..., Any]) -> None:
    compiled = optimize(lambda graph, inputs: graph.forward)(program)
    for x, y in [*_calls(), *_calls()[::-1]]:
        outcomes = []
        for function in (program, compiled):
            leaves = [one.clone().requires_grad_() for one in (x, y)]
            found: list[Any] = []
            try:
                found = [*function(*(leaf * 1 for leaf in leaves))]
                followed = [one.sum() for one in found if isinstance(one, torch.Tensor) and one.requires_grad]
                if followed:
                    sum(followed).backward()
            except RuntimeError as error:
                found = [str(error)]
            outcomes.append(str([_shown(found), _shown([leaf.grad for leaf in leaves])]))
        assert outcomes[1] == outcomes[0]


STATE: dict[str, Any] = {}


def _appends(x, y):
    if x.sum() > 0:
        z = x + 1
    else:
        STATE["seen"] = STATE.get("seen", 0) + 1
        z = x + 2
    return z


def _prints(x, y):
    z = 1.0
    if x.sum() > 0:
        print("up")
        z = x.sum().item()
    return x * z


def _draws(x, y):
    return torch.rand(3) if x.sum() > 0 else y * 2


def _divides(x, y):
    return 1.0 / y.sum().item() if x.sum() > 0 else 2.0


def _raises_by_form(x, y):
    if x.sum() > 0:
        z = x + 1
    else:
        z = x + torch.ones(7)
    return z


def _raises_by_content(x, y):
    z = x.clone()
    if x.sum() > 0:
        z[y > 1] = x[x > 1]
    else:
        z[:] = 0
    return z


def _unbound(x, y):
    if x.sum() > 0:
        z = x + 1
    return z * 2


def _sets_an_attribute(x, y):
    if x.sum() > 0:
        y.mark = 1
    else:
        x = x + 1
    return x, hasattr(y, "mark")


def _returns(x, y):
    if x.sum() > 0:
        y.add_(1)
        return y
    y.sub_(1)
    return x


def _breaks_out(x, y):
    for row in (x, y, x * 2):
        if row.sum() > 0:
            y.add_(1)
            break
        y.sub_(row)
    else:
        y.mul_(2)
    return y


def _has_many(x, y):
    best = x
    for row in (x + i for i in range(-6, 6)):
        if row.sum() > best.sum():
            best = row
    return best * 2


def _by_while(x, y):
    while x.sum() < 4:
        if x[0] > 0:
            x.mul_(2)
        else:
            x.add_(1)
        if bool(x.isnan().any()):
            break
    return x


ENDS = [
    *(_appends, _prints, _draws, _divides, _raises_by_form, _raises_by_content, _unbound, _sets_an_attribute),
    *(_returns, _breaks_out, _has_many, _by_while, _the_same_object_or_a_new_one),
]


@pytest.mark.parametrize("program", ENDS)
@pytest.mark.parametrize("order", [1, -1], ids=["", "backwards"])
def test_what_a_side_does_not_do_is_not_done(same: Any, program: Callable[..., Any], order: int) -> None:
    STATE.clear()
    same(program, *_calls()[::order])
    with torch.no_grad():
        same(program, *_calls()[::order])


def test_effects_of_a_side_are_done_as_often_as_in_eager() -> None:
    compiled = optimize(lambda graph, inputs: graph.forward)(_appends)
    STATE.clear()
    for x, y in _calls():
        _appends(x, y)
    expected = STATE.pop("seen")
    for x, y in _calls():
        compiled(x, y)
    assert STATE["seen"] == expected


def _shows_its_variables(x, y):
    if x.sum() > 0:
        one = 1
        y.add_(one)
    else:
        two = 2
        y.sub_(two)
    return y, sorted(locals())


def test_variables_that_a_side_sets_are_shown(same: Any) -> None:
    same(_shows_its_variables, *_calls())
