"""Sizes and numbers that come from data, through the whole stack: one graph, equal to eager, also for 0 and 1 elements.

PYTEST_DONT_REWRITE: a program here asserts, and is compiled as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import fxstack

X = torch.arange(32.0).view(8, 4).cos()
MASKS = [
    torch.tensor([True, False, True, True, False, False, True, False]),
    torch.zeros(8, dtype=torch.bool),
    torch.arange(8) == 3,
    torch.ones(8, dtype=torch.bool),
]
NUMBERS = [torch.tensor(n) for n in (3, 0, 1, -2, 8)]


def selected(x: torch.Tensor, mask: torch.Tensor) -> Any:
    y = x[mask]
    return (y * (x + 1)[mask]).sum(), y, y.shape[0], len(y) > 2


def experts(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """What a layer of a mixture of experts does for one of them."""
    (index,) = torch.where(mask)
    hidden = F.gelu(x[index] @ x[:4, :4]) * x.sum(1)[index, None]
    return torch.zeros_like(x).index_add_(0, index, hidden)


def written(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    x = x * 1
    x[mask] = x[mask] * 2
    x[~mask] += 1
    x[mask[:, None] & (x > 0)] = x[0, 0] * 1.5
    return x + x.masked_select(x > 0.5).sum()


def counted(x: torch.Tensor, mask: torch.Tensor) -> Any:
    places = mask.nonzero()
    found, back, often = torch.unique(places * 2 + 1, return_inverse=True, return_counts=True)
    return found * 2, back, often, torch.repeat_interleave(x, mask.long() * 2, 0), F.one_hot(mask.sum())


def laid_out(x: torch.Tensor, mask: torch.Tensor) -> Any:
    y = x[mask]
    turned = y.view(-1, 2, 2).transpose(0, 1).contiguous()
    return torch.cat([y, x]), y.t().sum(1), y.softmax(0), turned, y.mean(), y.sort(0)[0]


def sliced(x: torch.Tensor, number: torch.Tensor) -> Any:
    n = number.item()
    return x[:n] * 2, x[n:].sum(), n + 1, n > 3, bool((x[0] > 5).all()), torch.equal(x, x + 1)


def picked(x: torch.Tensor, number: torch.Tensor) -> Any:
    n = int(number)
    torch._check(n < 5, lambda: "too far")
    return x[n] * 2, torch.arange(n), torch.zeros(n, 2) + n


def cut(x: torch.Tensor, number: torch.Tensor) -> Any:
    parts = x.split([*torch.stack([number, 6 - number]).tolist(), 2])
    return torch.cat([part * k for k, part in enumerate(parts)]) + x


def indexed(x: torch.Tensor, number: torch.Tensor) -> Any:
    """Tensors of one integer as Python's integers: among indices, as a bound, as a size."""
    y = x.clone()
    y[number] = y[:, number % 4].mean()
    y[1:, number % 4] *= 2
    rows = x[number, None, number % 4], x[..., number % 4, None], x[number, x[0] > 0]
    cuts = x[: number % 4].sum(), x[number:5].sum(0), x[:, number - 1 : number + 1].sum(0)
    return y, *rows, *cuts, torch.zeros((number % 4, 2)) + 1


def reshaped(x: torch.Tensor, mask: torch.Tensor) -> Any:
    """A size that is left open beside one that may be 0, when torch refuses it; texts that nobody reads."""
    y = x[mask]
    n = y.shape[0]
    text = f"{n} of {len(x)}, {n > 3}"
    places = torch.bucketize(y.detach(), torch.linspace(-1, 1, 5))
    return y.view(n, -1, 2) * 2, torch.reshape(y, [n, -1]).sum(1), y.reshape((n, 2, -1)), places, text


def asserted(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    index = mask.nonzero()[:, 0]
    assert index.shape[0] <= 5, "too many"
    return x[index].amax(0)


def checked(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """What is checked is a size that nothing else asks for."""
    torch._check(torch.unique_consecutive(mask).numel() < 6)
    return x * 2


def refused(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    if not mask.any():
        raise RuntimeError(f"nothing of {mask.shape[0]} is selected")
    torch._assert(mask.sum() < 8, "all are selected")
    return x * mask[:, None]


def complex_numbers(x: torch.Tensor, mask: torch.Tensor) -> Any:
    numbers = torch.complex(x, x * 2)[mask]
    return torch.view_as_real(torch.stack([numbers, numbers * 2], 1)), numbers.abs()


def narrowed(x: torch.Tensor, number: torch.Tensor) -> Any:
    ends = torch.stack([number, number + 2])
    return x.narrow(0, number, 2) * 2, *[part.sum(0) for part in torch.tensor_split(x, ends)]


def filled(x: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
    """The gradient of the value sums over the different indices."""
    index = torch.stack([number % 8, number % 8, number * 0])
    return x.index_fill(0, index, x[1, 0]) * x[0].index_fill(0, index % 4, x[2, 2])


def aligned(x: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
    """The memory that the loss keeps for its gradient is as long as the longest target."""
    lengths = torch.stack([number.clamp(1, 3), number * 0 + 2])
    targets = torch.tensor([[1, 2, 1], [3, 1, 2]])
    odds = torch.stack([x, x.flip(1)], 1).log_softmax(2)
    return F.ctc_loss(odds, targets, torch.tensor([8, 7]), lengths)


def weighted(x: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
    """Torch warns where the divisor is not positive."""
    counts = torch.arange(4) + number * 0
    return torch.cov(x, fweights=counts) + torch.cov(x, fweights=counts, aweights=counts / 2.0)


def multiplied(x: torch.Tensor, mask: torch.Tensor) -> Any:
    """Counts of two masks, of which the products and the view need that they agree."""
    one, other = x[mask], x[mask.roll(1)]
    every = x[x > -9].view(x.shape)
    return one.t() @ other, torch.bmm(one.t()[None], other[None]), every * 2, torch.mv(one.t(), other[:, 0])


def multiplied_by_others(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The counts agree for some masks only: eager raises for the rest."""
    return x[mask].t() @ x[~mask | (x[:, 0] < 0)]


def padded(x: torch.Tensor, mask: torch.Tensor) -> Any:
    y = x[mask]
    n = y.shape[0]
    z = torch.zeros(n + 1, 4)
    z[:n] = y
    return z, z[:n] + y, y.sum()


def degrees(x: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
    """How many counts there are is known to be at least 8; the division needs 8."""
    places = torch.stack([number.abs(), number.abs() * 0, number.abs() + 1])
    return x / torch.bincount(places, minlength=8).clamp(min=1)[:, None]


def stretched(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Rows repeated as often as data say, by a transposed product, as models of speech do it."""
    often = (mask * 2).float()
    places = torch.arange(often.sum().long(), dtype=torch.float32)
    before = (places[None] < often.cumsum(0)[:, None]).float()[None]
    chosen = (before - F.pad(before, [0, 0, 1, 0, 0, 0])[:, :-1])[:, None].transpose(2, 3) * torch.ones(
        1, 1, 1, 8
    )
    return torch.matmul(chosen.squeeze(1), x[None]).transpose(1, 2)


PROGRAMS: list[tuple[Callable[..., Any], list[torch.Tensor]]] = [
    *(
        (program, MASKS)
        for program in (selected, experts, written, counted, laid_out, asserted, checked, reshaped)
    ),
    *(
        (program, MASKS)
        for program in (refused, complex_numbers, multiplied, multiplied_by_others, stretched)
    ),
    *((program, NUMBERS) for program in (sliced, picked, cut, indexed)),
    *((program, NUMBERS) for program in (narrowed, filled, aligned, weighted, degrees)),
]


def outcome(function: Callable[..., Any], x: torch.Tensor, other: torch.Tensor) -> Any:
    """Results and gradient, or the exception."""
    x = x.clone().requires_grad_()
    try:
        found = function(x, other)
    except (AssertionError, RuntimeError, IndexError) as error:
        return type(error), str(error)
    results = found if isinstance(found, tuple) else (found,)
    tensors = [r for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
    sum((t * t).sum() for t in tensors).backward()  # type: ignore[union-attr]
    return results, x.grad


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        alike = isinstance(other, torch.Tensor) and (one.shape, one.dtype) == (other.shape, other.dtype)
        return alike and torch.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


@pytest.mark.parametrize(("program", "others"), PROGRAMS, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_one_graph_for_all_data(
    program: Callable[..., Any], others: list[torch.Tensor], backend: str
) -> None:
    fxstack.reset()
    compiled: Any = fxstack.compile(program, backend=backend, fullgraph=True)
    for other in others:
        expected, found = outcome(program, X, other), outcome(compiled, X, other)
        assert same(expected, found), (other, expected, found)
    assert len(compiled.__fxstack_capture__.report.replacements) == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_beside_sizes_that_vary(backend: str) -> None:
    compiled = fxstack.compile(padded, backend=backend, fullgraph=True, dynamic=True)
    for length in (8, 5):
        for mask in MASKS:
            x = X[:length]
            assert same(outcome(padded, x, mask[:length]), outcome(compiled, x, mask[:length]))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_an_assertion_after_a_write(backend: str) -> None:
    """One graph; where it fails, the write before it is seen and the one after it is not."""

    def program(x: torch.Tensor, number: torch.Tensor, log: list[int]) -> torch.Tensor:
        x.add_(torch.rand(()))
        log.append(1)
        assert number.item() <= 4, "too large"
        log.append(2)
        return x.mul_(2)

    fast = fxstack.compile(program, backend=backend, fullgraph=True)
    for number in (torch.tensor(3), torch.tensor(7), torch.tensor(4)):
        seen = []
        for run in (program, fast):
            torch.manual_seed(0)
            x, log = torch.ones(2), list[int]()
            try:
                run(x, number, log)
            except AssertionError as error:
                log.append(str(error))  # type: ignore[arg-type]
            seen.append((x.tolist(), log, torch.get_rng_state().tolist()))
        assert seen[0] == seen[1]


def test_what_they_decide_breaks_the_graph_there() -> None:
    def program(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        y = x[mask] + 1
        if y.shape[0] > 3:
            return y * 2
        return y.sum()

    compiled: Any = fxstack.compile(program, backend="eager")
    for mask in MASKS:
        assert same(program(X, mask), compiled(X, mask))
    replacements = compiled.__fxstack_capture__.report.replacements
    assert [made.stopped.code for _, made in replacements if made.stopped] == ["CAP217"]


def test_a_graph_that_is_refused_is_captured_without_them() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x.masked_select(x > 0).std() * 2  # the gradient needs the number of elements as a float

    compiled = fxstack.compile(program, backend="aot_eager")
    for x in (X, -X):
        assert same(outcome(lambda x, _: program(x), x, x), outcome(lambda x, _: compiled(x), x, x))


def written_when_shared(x: torch.Tensor, mask: torch.Tensor) -> Any:
    """Of one row, ``contiguous`` gives the memory itself, of several a copy."""
    turned = x[mask].t()
    copied = turned.contiguous()
    copied += 1
    rows = x[mask].view(-1, 2, 2).permute(1, 0, 2)
    reshaped = rows.reshape(2, -1)
    reshaped.add_(1)
    return turned * 1, copied, rows.sum(), reshaped


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_memory_is_shared_where_eager_shares_it(backend: str) -> None:
    compiled = fxstack.compile(written_when_shared, backend=backend)
    for mask in MASKS:
        torch.testing.assert_close(compiled(X, mask), written_when_shared(X, mask))


def test_as_many_numbers_as_a_batch_has_items() -> None:
    def program(x: torch.Tensor, counts: torch.Tensor) -> Any:
        return [part.sum(0) for part in (x + 1).split(counts.sum(1).tolist())]

    fast = fxstack.compile(program, backend="eager", fullgraph=True)
    for n in (2, 3, 4, 3):
        given = torch.randn(4 * n, 5), torch.full((n, 2), 2)
        for found, expected in zip(fast(*given), program(*given), strict=True):
            assert torch.equal(found, expected)


def stored_where(x: torch.Tensor, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    y = torch.zeros_like(x)
    y[mask] = values
    return y


def written_where(x: torch.Tensor, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    y[mask] = values
    return y


def stored_behind_a_break(x: torch.Tensor, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    chosen = x[mask].sin() * values
    fxstack.graph_break()
    y = torch.zeros_like(x)
    y[mask] = chosen
    return y


@pytest.mark.parametrize("program", [stored_where, written_where, stored_behind_a_break])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_as_many_values_as_a_mask_has(
    program: Callable[..., torch.Tensor], backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Autograd requires of the gradient of the values that it has their size: as many as the mask has, by data."""
    fast = fxstack.compile(program, backend=backend)
    torch.manual_seed(0)
    for count in (6, 7, 8, 9):
        x, mask = torch.randn(2, count), torch.rand(2, count) > 0.3
        values = torch.randn(int(mask.sum()), requires_grad=True)
        other = values.detach().clone().requires_grad_()
        result, expected = fast(x, values, mask), program(x, other, mask)
        torch.testing.assert_close(result, expected)
        result.cos().sum().backward()
        expected.cos().sum().backward()
        torch.testing.assert_close(values.grad, other.grad)
        wrong = torch.randn(int(mask.sum()) + 2, requires_grad=True)
        with pytest.raises(RuntimeError) as refused:
            program(x, wrong, mask)
        with pytest.raises(RuntimeError, match=re.escape(str(refused.value))):
            fast(x, wrong, mask)
    assert not fast.__fxstack_capture__.report.eager
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
