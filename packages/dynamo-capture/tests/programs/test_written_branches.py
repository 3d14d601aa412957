"""``if`` on a tensor's content around writes to tensors alone: done in any case, and taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from dynamo_capture import CaptureError, optimize

IDS = [torch.tensor([[0, 1, 2]]), torch.tensor([[0, 0, 7]]), torch.tensor([[3, 4, 9]])]
STATE: dict[str, Any] = {}


def _by_mask(ids, x):
    y = x * 1.0
    for i in range(2):
        mask = ids == i
        if mask.any():
            y[mask] = x[0, i].to(y.dtype)
    return y


def _several(ids, x):
    y, z = x * 2, torch.zeros(3)
    if (ids > 5).any():
        y[:, 0].mul_(3)
        z.fill_(1.0)
        z[1:] += y[0, :2, 0]
    return y, z


def _negated(ids, x):
    y = x.clone()
    view = y[0]
    if not (ids == 7).any():
        y.clamp_(max=0)
    return y, view + 1


def _by_number(ids, x):
    y = ids * 1
    if y.sum() == 3:
        y[y.eq(0)] = 5
    return y * x.shape[1]


def _not_a_number(ids, x):
    y = x + float("nan")
    if y.sum():
        y[:] = 4
    return y


def _once_more(ids, x):
    y = x * 1
    if (ids > 5).any():
        y[0, 0] = 1
    if (ids > 5).any():
        y[0, 0] += y[0, 1]
    return y


CAPTURED = [_by_mask, _several, _negated, _by_number, _not_a_number, _once_more]


@pytest.mark.parametrize("program", CAPTURED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_one_graph(program: Callable[..., Any], dtype: torch.dtype) -> None:
    compiled = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(program)
    for ids in IDS:
        x = torch.linspace(-2, 2, 12).reshape(1, 3, 4).to(dtype)
        torch.testing.assert_close(compiled(ids, x), program(ids, x), rtol=0, atol=0, equal_nan=True)


def _binds(ids, x):
    y = x * 1
    if (ids > 5).any():
        y[0] = 1
        x = x + 1
    return x + y


def _appends(ids, x):
    y = x * 1
    if (ids > 5).any():
        y[0] = 1
        STATE["seen"] = STATE.get("seen", 0) + 1
    return y


def _draws(ids, x):
    y = x * 1
    if (ids > 5).any():
        y.uniform_()
    return y


def _may_raise(ids, x):
    y = x * 1
    if (ids > 5).any():
        y[ids > 5] = x[0]
    return y


def _raises(ids, x):
    y = x * 1
    if (ids > 5).any():
        y[0, 0] = torch.ones(7)
    return y


def _multiplies(ids, x):
    y = x * 1
    if (ids > 5).any():
        y[0] = x[0] @ torch.ones(4, 4)
    return y


def _handles(ids, x):
    y = x * 1
    if (ids > 5).any():
        try:
            y[0] = 1
        except RuntimeError:
            y[0] = 2
    return y


LEFT = [
    _binds, _appends, _draws, _may_raise, _raises, _multiplies, _handles,
]  # fmt: skip


def _outcome(program: Callable[..., Any], ids: torch.Tensor) -> list[str]:
    torch.manual_seed(0)
    STATE.clear()
    x = torch.linspace(-2, 2, 12).reshape(1, 3, 4)
    try:
        found: Any = program(ids, x)
    except RuntimeError as error:
        found = str(error)
    return [str(found), str(x), str(STATE), str(torch.rand(1))]


@pytest.mark.parametrize("program", LEFT)
def test_what_ends_the_graph(program: Callable[..., Any]) -> None:
    compiled = optimize(lambda graph, inputs: graph.forward)(program)
    for ids in IDS:
        assert _outcome(compiled, ids) == _outcome(program, ids)
    with pytest.raises(CaptureError):
        optimize(lambda graph, inputs: graph.forward, fullgraph=True)(program)(IDS[1], torch.ones(1, 3, 4))


def test_what_autograd_follows_ends_the_graph() -> None:
    def program(ids, x):
        y = x * 1
        if (ids > 5).any():
            y[0] = y[0] / 0
        return y

    compiled = optimize(lambda graph, inputs: graph.forward)(program)
    for ids in IDS:
        gradients = []
        for function in (program, compiled):
            x = torch.ones(1, 3, 4, requires_grad=True)
            function(ids, x).sum().backward()
            gradients.append(x.grad)
        torch.testing.assert_close(gradients[1], gradients[0], rtol=0, atol=0, equal_nan=True)


def test_rows_whose_number_data_tell_are_written_to_the_beginning(same) -> None:
    def program(rows, times, length):
        made = torch.zeros(int(length.sum()), 3)
        repeated = rows.repeat_interleave(times, dim=0)
        made[: repeated.size(0)] = repeated
        return made

    rows = torch.randn(40, 3)
    calls = []
    for number, length in [(3, 4), (3, 3), (1, 0), (0, 2), (0, 0), (4, 3), (1, 1)]:
        times, fill = torch.zeros(40, dtype=torch.int64), torch.zeros(40, dtype=torch.int64)
        times[:number], fill[:length] = 1, 1
        calls.append((rows, times, fill))
    same(program, *calls)


def _clipped(grads, most):
    total = sum(grad.norm().item() ** 2 for grad in grads) ** 0.5
    clip = most / (total + 1e-6)
    if clip < 1:
        for grad in grads:
            grad.mul_(clip)
    return total


def _writes_to_an_argument(grads, most):
    if grads[1].sum() > most:
        grads[0][:1] = 1
    return grads[0] * 2


def _unscaled(grads, most):
    found = False
    for grad in grads:
        grad.mul_(1 / 16)
        if not torch.isfinite(grad).all():
            found = True
    if not found:
        for grad in grads:
            grad.sub_(grad * 0.1)
            grad[0] += 1
    return found


def _views_of_an_argument(grads, most):
    first, second = grads[0][:2], grads[0][1:]
    if grads[1].sum() > most:
        first.mul_(2)
        second[:1].add_(1)
        grads[1].zero_()
    return first + second[:2]


def _once_more_behind(grads, most):
    if grads[1].sum() > most:
        grads[0].mul_(2)
    grads[0].add_(1)
    if not grads[1].sum() > most:
        grads[0][:3] += grads[1]
    return grads[0].sum()


def _numbers_decide(grads, most):
    count = (grads[0] > 0).sum().item()
    if count > 2:
        grads[0].neg_()
    return count


EXISTING = [
    _writes_to_an_argument,
    _clipped,
    _unscaled,
    _views_of_an_argument,
    _once_more_behind,
    _numbers_decide,
]


def _grads():
    torch.manual_seed(0)
    for factor in (3.0, 1e-3, 5.0, float("inf"), -2.0):
        yield [torch.randn(4) * factor, torch.randn(3).abs() * factor], 1.0


@pytest.mark.parametrize("program", EXISTING)
def test_writes_to_existing_tensors_are_counted_as_in_eager(same, program) -> None:
    same(program, *_grads(), graphs=1, breaks=0)
    with torch.no_grad():
        same(program, *_grads(), graphs=1, breaks=0)


def test_two_arguments_in_one_memory(same) -> None:
    def program(x, y, most):
        if x.sum() > most:
            x.mul_(2)
            y.add_(1)
        return x + y

    for most in (0.0, 100.0):
        base = torch.arange(4.0)
        same(
            program, (base[:3], base[1:], most), (base[:3], base[:3], most), (base, base.view(2, 2)[0], most)
        )


@pytest.mark.parametrize("is_before", [True, False])
def test_what_autograd_saves_ends_the_graph_at_the_branch(is_before: bool) -> None:
    def program(x, w, most):
        y = w * x if is_before else w
        if x.sum() > most:
            x.mul_(2)
        return y if is_before else y * x

    compiled = optimize(lambda graph, inputs: graph.forward)(program)
    for most in (0.0, 100.0):
        outcomes = []
        for function in (program, compiled):
            x, w = torch.arange(3.0), torch.ones(3, requires_grad=True)
            try:
                function(x, w, most).sum().backward()
            except RuntimeError as error:
                outcomes.append([type(error), x.tolist(), x._version])
            else:
                outcomes.append([w.grad.tolist(), x.tolist(), x._version])
        assert outcomes[0] == outcomes[1]


X, TRUE, FALSE = torch.arange(4.0), torch.tensor(True), torch.tensor(False)


@pytest.mark.parametrize("is_local", [True, False], ids=["local", "given"])
@pytest.mark.parametrize("shape", [(), (1,)], ids=["scalar", "one"])
def test_a_flag_that_its_branch_clears(same, is_local, shape):
    def f(x, flag):
        flag = flag.clone() if is_local else flag
        x = x.clone()
        if flag:
            x.add_(1)
            flag.fill_(False)
        return x + 1, flag & flag

    same(f, *[(X, flag.reshape(shape)) for flag in (TRUE, FALSE)], graphs=1, breaks=0)


def test_a_flag_that_is_changed_behind_its_branch(same):
    def f(x, flag):
        if flag:
            x.add_(1)
        flag.logical_not_()
        if flag:
            x.mul_(2)
        return x, x._version

    same(f, (X, TRUE), (X, FALSE))


def test_a_constant_by_a_flag_that_is_changed_later(same):
    def f(x, flag, number):
        text, other = "no", 1
        if flag:
            text = "yes"
        if number:
            other = 2
        flag.logical_not_()
        number.sub_(1)
        return x + 1, text, other

    same(f, *[(X, flag, torch.tensor(number)) for flag in (TRUE, FALSE) for number in (0.0, 1.0)], breaks=0)


def test_a_buffer_that_is_filled_once(same):
    class Codebook(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("initted", torch.tensor([False]))
            self.register_buffer("codes", torch.zeros(3))

        def forward(self, x):
            if not self.initted:
                self.codes.copy_(x.detach()[0])
                self.initted.fill_(True)
            self.codes.lerp_(x.detach()[1], 0.25)
            return x + self.codes

    same.made(Codebook, (torch.randn(2, 3),), (torch.randn(2, 3),), (torch.randn(2, 3),))
