"""``if rows.numel() == 0: continue``: what would do nothing for no rows is part of the graph."""

import pytest
import torch
from torch import nn

IGNORED = {"own version"}  # what is written to where no row is counts the write


def data(rows, last=None):
    """Features, and which expert each row goes to: all to one of three, the last row perhaps to another."""
    chosen = torch.full((rows,), 1)
    if last is not None:
        chosen[-1] = last
    return torch.arange(3.0 * rows).reshape(rows, 3) / 7 - 1, chosen


CALLS = [data(5, 2), data(5), data(2, 0), data(1)]


def made(loop):
    """A program with three experts, and ``loop`` over them without gradients."""

    def make():
        torch.manual_seed(0)
        experts = [nn.Sequential(nn.Linear(3, 4), nn.SiLU(), nn.Linear(4, 3)) for _ in range(3)]

        def f(x, chosen):
            with torch.no_grad():
                return loop(experts, x, chosen)

        return f

    return make


def continued(experts, x, chosen):
    out = torch.zeros_like(x)
    for number, expert in enumerate(experts):
        (rows,) = torch.where(chosen == number)
        if rows.numel() == 0:
            continue
        made = expert(x[rows])
        out.index_add_(0, rows, made * 2)
    return out


def guarded(experts, x, chosen):
    out = torch.zeros_like(x)
    for number in range(3):
        rows = (chosen == number).nonzero().squeeze(-1)
        if rows.shape[0] > 0:
            out[rows] += experts[number](x[rows])
    return out + 1


def of_a_length(experts, x, chosen):
    out = torch.zeros_like(x)
    for number in range(3):
        rows = torch.where(chosen == number)[0]
        if len(rows):
            for part in (x, x * 2):
                if number != 1:
                    part = part + 1
                out[rows, :] = out[rows, :] + experts[number](part[rows])
    return out


def nested(experts, x, chosen):
    out = torch.zeros_like(x)
    for number in range(3):
        rows = torch.where(chosen == number)[0]
        if not rows.numel():
            continue
        if len(rows) >= 1:
            out.index_copy_(0, rows, experts[number](x[rows]))
        out.scatter_add_(0, rows[:, None].expand(-1, 3), x[rows])
    return out


@pytest.mark.parametrize("loop", [continued, guarded, of_a_length, nested])
def test_what_does_nothing_without_rows_is_in_the_graph(whole, loop):
    whole.made(made(loop), *CALLS, ignore=IGNORED)


def by_places(experts, x, chosen):
    out = torch.zeros_like(x)
    mask = nn.functional.one_hot(chosen, 3).t()
    for number in torch.greater(mask.sum(-1), 0).nonzero():
        rows = torch.where(mask[number].squeeze(0))[0]
        out.index_add_(0, rows, experts[number[0]](x[rows]))
    return out


def by_numbers(experts, x, chosen):
    out = torch.zeros_like(x)
    mask = chosen[None] == torch.arange(3)[:, None]
    for number in mask.any(1).nonzero().flatten().tolist():
        (rows,) = mask[number].nonzero(as_tuple=True)
        if rows.numel() == 0:
            continue
        if number < 2:
            out[rows] += experts[number](x[rows])
        else:
            out[rows] = x[rows]
    return out


def by_items(experts, x, chosen):
    out = torch.zeros_like(x)
    weights = torch.stack([expert[0].weight for expert in experts])
    for place in torch.where(torch.bincount(chosen, minlength=3)[:3] > 0)[0]:
        rows = (chosen == place).nonzero().squeeze(-1)
        out.index_add_(0, rows, x[rows] @ weights[place.item()].t() @ torch.ones(4, 3))
    return out


def by_names(experts, x, chosen):
    out = torch.zeros_like(x)
    named = nn.ModuleDict({f"expert_{number}": expert for number, expert in enumerate(experts)})
    for place in (torch.bincount(chosen, minlength=3)[:3] > 0).nonzero():
        rows = (chosen == place).nonzero().squeeze(-1)
        out.index_add_(0, rows, named[f"expert_{place[0]}"](x[rows]))
    return out


@pytest.mark.parametrize("loop", [by_places, by_numbers, by_items, by_names])
def test_a_loop_over_places_is_in_the_graph(whole, loop):
    whole.made(made(loop), *CALLS, ignore=IGNORED)


def of_another_mask(experts, x, chosen):
    """Where it does not hold that there are no rows elsewhere, the frame runs as it was written."""
    out = torch.zeros_like(x)
    for number in (torch.arange(3) == chosen[-1]).nonzero():
        rows = torch.where(chosen == number)[0]
        out.index_add_(0, rows, experts[number[0]](x[rows]))
    return out


def of_an_overwritten_list(experts, x, chosen):
    out = torch.zeros_like(x)
    places = (torch.bincount(chosen, minlength=3)[:3] > 0).nonzero()
    places.fill_(1)
    for number in places:
        rows = torch.where(chosen == number)[0]
        out.index_add_(0, rows, x[rows])
    return out


def counted(experts, x, chosen):
    out, count = torch.zeros_like(x), 0
    for number in (torch.bincount(chosen, minlength=3)[:3] > 0).nonzero():
        rows = torch.where(chosen == number)[0]
        out.index_add_(0, rows, x[rows])
        count += 1
    return out, count


def handed_out(experts, x, chosen):
    out = torch.zeros_like(x)
    for number in (torch.bincount(chosen, minlength=3)[:3] > 0).nonzero():
        rows = torch.where(chosen == number)[0]
        out.index_add_(0, rows, x[rows])
    return out, number


def left(experts, x, chosen):
    out = torch.zeros_like(x)
    for number in (torch.bincount(chosen, minlength=3)[:3] > 0).nonzero():
        rows = torch.where(chosen == number)[0]
        out.index_add_(0, rows, x[rows])
        if number == 1:
            break
    else:
        out += 1
    return out


def written_everywhere(experts, x, chosen):
    out = torch.zeros_like(x)
    for number in (torch.bincount(chosen, minlength=3)[:3] > 0).nonzero():
        out += number
    return out


@pytest.mark.parametrize(
    "loop", [of_another_mask, of_an_overwritten_list, counted, handed_out, left, written_everywhere]
)
def test_other_loops_over_places(same, loop):
    same.made(made(loop), *CALLS, ignore=IGNORED)


def written_besides(experts, x, chosen):
    out = torch.zeros_like(x)
    for number in range(3):
        rows = torch.where(chosen == number)[0]
        if len(rows):
            out[rows] = experts[number](x[rows])
            out += 1
    return out


def read_behind(experts, x, chosen):
    out, last = torch.zeros_like(x), x
    for number in range(3):
        rows = torch.where(chosen == number)[0]
        if len(rows):
            last = experts[number](x[rows])
            out[rows] = last
    return out, last


def noted(experts, x, chosen):
    out, seen = torch.zeros_like(x), []
    for number in range(3):
        rows = torch.where(chosen == number)[0]
        if len(rows):
            out[rows] = experts[number](x[rows])
            seen.append(number)
    return out, seen


def more_than_one(experts, x, chosen):
    out = torch.zeros_like(x)
    for number in range(3):
        rows = torch.where(chosen == number)[0]
        if len(rows) > 1:
            out[rows] = experts[number](x[rows])
    return out


def drawn(experts, x, chosen):
    out = torch.zeros_like(x)
    for number in range(3):
        rows = torch.where(chosen == number)[0]
        if len(rows):
            out[rows] = torch.rand(3)
    return out


def by_a_mean(experts, x, chosen):
    out = torch.zeros(3, 3)
    for number in range(3):
        rows = torch.where(chosen == number)[0]
        if len(rows):
            out[number] = x[rows].mean(0)
    return out


def to_an_argument(experts, x, chosen):
    for number in range(3):
        rows = torch.where(chosen == number)[0]
        if len(rows):
            x[rows] = experts[number](x[rows])
    return x * 1


def ended(experts, x, chosen):
    out = torch.zeros_like(x)
    for number in range(3):
        rows = torch.where(chosen == number)[0]
        if len(rows):
            out[rows] = experts[number](x[rows])
            break
    return out


def refused(experts, x, chosen):
    out = torch.zeros_like(x)
    for number in range(3):
        rows = torch.where(chosen == number)[0]
        if len(rows):
            out[rows] = x[rows] @ torch.ones(2, 3)
    return out


@pytest.mark.parametrize(
    "loop",
    [
        written_besides,
        read_behind,
        noted,
        more_than_one,
        drawn,
        by_a_mean,
        to_an_argument,
        ended,
        refused,
    ],
)
def test_what_would_do_something_ends_the_graph(same, loop):
    same.made(made(loop), *CALLS, ignore=IGNORED)
    assert any(one.stopped is not None for _, one in same.capture.report.replacements)


def test_what_autograd_follows_ends_the_graph(same):
    """An expert that nothing is asked of has no gradient, and not one of zeros."""

    def make():
        torch.manual_seed(0)
        experts = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])

        def f(x, chosen):
            return continued(experts, x, chosen).sum(), [p.grad for p in experts.parameters()]

        return f

    same.made(make, *CALLS, ignore=IGNORED)
    assert any(one.stopped is not None for _, one in same.capture.report.replacements)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_the_whole_stack_goes_past_no_rows(backend):
    fxstack = pytest.importorskip("fxstack")
    f = made(continued)()
    fast = fxstack.compile(f, backend=backend, fullgraph=True)
    for x, chosen in CALLS:
        torch.testing.assert_close(fast(x, chosen), f(x, chosen))
