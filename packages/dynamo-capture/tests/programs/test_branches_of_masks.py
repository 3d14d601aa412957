"""``if mask.any():`` around what is done for the rows of a mask is part of the graph, whether there are rows or not."""

import pytest
import torch
from torch import nn

from dynamo_capture import optimize

IGNORED = {"own version"}  # what is written to where no row is counts the write


def experts():
    torch.manual_seed(0)
    return nn.ModuleList([nn.Sequential(nn.Linear(3, 4), nn.SiLU(), nn.Linear(4, 3)) for _ in range(3)])


def data(rows, *chosen):
    """Features, and which expert each row goes to, in turn."""
    which = torch.tensor([chosen[row % len(chosen)] for row in range(rows)], dtype=torch.int64)
    return torch.arange(3.0 * rows).reshape(rows, 3) / 7 - 1, which


FEW = [data(5, 0, 1, 2), data(5, 1), data(2, 0, 2), data(1, 1)]


def made(body):
    def make():
        every = experts()

        def f(x, chosen):
            with torch.no_grad():
                return body(every, x, chosen)

        return f

    return make


def added(every, x, chosen):
    out = torch.zeros_like(x)
    for number, expert in enumerate(every):
        mask = chosen == number
        if mask.any():
            out[mask] += x[mask, 0, None] * expert(x[mask])
    return out + 1


def of_a_sum(every, x, chosen):
    out = torch.zeros_like(x)
    for number, expert in enumerate(every):
        mask = chosen == number
        if mask.sum() == 0:
            continue
        out[mask] = expert(x[mask])
    return out


def of_numbers(every, x, chosen):
    out = torch.zeros_like(x)
    for number, expert in enumerate(every):
        mask = chosen == number
        count = mask.sum().item()
        if count > 0:
            out.index_put_((mask,), expert(x[mask]), accumulate=True)
    return out


def of_bools(every, x, chosen):
    out, other = torch.zeros_like(x), torch.ones_like(x)
    for number, expert in enumerate(every):
        mask = chosen == number
        if not torch.any(mask).item():
            continue
        rows = mask.nonzero().squeeze(-1)
        out.index_add_(0, rows, expert(x[rows]))
        other[mask, :] = out[mask, :] * 2
    return out, other


@pytest.mark.parametrize("body", [added, of_a_sum, of_numbers, of_bools])
def test_what_does_nothing_without_rows_is_in_the_graph(whole, body):
    whole.made(made(body), *FEW, ignore=IGNORED)


def written_to_since(every, x, chosen):
    out = torch.zeros_like(x)
    for number, expert in enumerate(every):
        mask = chosen == number
        is_any = mask.any()
        mask[0] = True
        if is_any:
            out[mask] = expert(x[mask])
    return out


def written_to_inside(every, x, chosen):
    out = torch.zeros_like(x)
    for number, expert in enumerate(every):
        mask = chosen == number
        if mask.any():
            mask[0] = True
            out[mask] = expert(x[mask])
    return out


def of_another_mask(every, x, chosen):
    out = torch.zeros_like(x)
    for number, expert in enumerate(every):
        mask, others = chosen == number, chosen != number
        if mask.any():
            out[others] = expert(x[others])
    return out


def of_all(every, x, chosen):
    out = torch.zeros_like(x)
    for number, expert in enumerate(every):
        mask = chosen == number
        if mask.all():
            out[mask] = expert(x[mask])
    return out


def of_several(every, x, chosen):
    out = torch.zeros_like(x)
    for number, expert in enumerate(every):
        mask = chosen == number
        if mask.sum() > 1:
            out[mask] = expert(x[mask])
    return out


def of_a_dimension(every, x, chosen):
    out = torch.zeros_like(x)
    mask = x > 0
    if mask.sum(0)[0] > 0:
        out[mask] = x[mask] * 2
    return out


def elsewhere(every, x, chosen):
    out = torch.zeros_like(x)
    for number, expert in enumerate(every):
        mask = chosen == number
        if mask.any():
            out[mask] = expert(x[mask])
            out += x @ every[0][0].weight.t() @ every[1][0].weight
    return out


def raising(every, x, chosen):
    out = torch.zeros_like(x)
    for number in range(3):
        mask = chosen == number
        if mask.any():
            out[mask] = x[mask] @ torch.ones(2, 3)
    return out


@pytest.mark.parametrize(
    "body",
    [
        written_to_since,
        written_to_inside,
        of_another_mask,
        of_all,
        of_several,
        of_a_dimension,
        elsewhere,
        raising,
    ],
)
def test_what_would_do_something_without_rows_ends_the_graph(same, body):
    same.made(made(body), *FEW, ignore=IGNORED)
    assert any(one.stopped is not None for _, one in same.capture.report.replacements)


def by_index(every, x, chosen):
    out = torch.zeros_like(x)
    for number, expert in enumerate(every):
        (rows,) = torch.where(chosen == number)
        if rows.numel() == 0:
            continue
        out.index_add_(0, rows, expert(x[rows]))
    return out


def with_dropout(every, x, chosen):
    out = torch.zeros_like(x)
    for number, expert in enumerate(every):
        mask = chosen == number
        if mask.any():
            out[mask] += nn.functional.dropout(expert(x[mask]), 0.5)
    return out


MANY = [data(48, 0, 1, 2), data(48, 2), data(48, 1, 0)]
FOLLOWED = [added, of_a_sum, of_numbers, of_bools, by_index, with_dropout]


def trained(body):
    """A step of training, and which gradients there are."""

    def make():
        every = experts()

        def f(x, chosen):
            return body(every, x, chosen)

        return f

    return make


@pytest.mark.parametrize("body", FOLLOWED)
def test_where_autograd_follows_it_the_graph_states_that_there_are_rows(whole, body):
    whole.made(trained(body), MANY[0], data(48, 2, 1, 0))


@pytest.mark.parametrize("body", FOLLOWED)
def test_an_expert_that_no_row_goes_to_has_no_gradient(same, body):
    same.made(trained(body), *MANY, *MANY)


def gradients(f, every, x, chosen):
    every.zero_grad()
    made = f(every, x, chosen)
    if made.requires_grad:
        made.sum().backward()
    return [None if one.grad is None else one.grad.clone() for one in every.parameters()]


def count_of_graphs(every, calls, **options):
    """How many graphs run for each of the calls, compared with eager."""
    ran = []

    def counting(module, inputs):
        def run(*args):
            ran[-1] += 1
            return module(*args)

        return run

    f = optimize(counting, **options)(added)
    for x, chosen in calls:
        ran.append(0)
        found = gradients(f, every, x, chosen)
        expected = gradients(added, every, x, chosen)
        for one, two in zip(found, expected, strict=True):
            assert (one is None) is (two is None)
            if one is not None:
                torch.testing.assert_close(one, two)
    return ran


def test_a_graph_that_fails_often_is_dropped():
    """The second failure is one too many for so few calls: from then on the graph ends at the branch."""
    there, missing = data(48, 0, 1, 2), data(48, 1)
    ran = count_of_graphs(experts(), [there, missing, there, missing, there, missing, there])
    assert ran[:4] == [1, 1, 1, 1]
    assert min(ran[4::2]) > 1


def test_a_graph_that_fails_now_and_then_stays():
    there, missing = data(48, 0, 1, 2), data(48, 1)
    ran = count_of_graphs(experts(), ([there] * 40 + [missing]) * 3)
    assert set(ran) == {1}


def test_with_fullgraph_it_stays():
    missing = data(48, 1)
    ran = count_of_graphs(experts(), [missing] * 4, fullgraph=True)
    assert set(ran) == {1}


def test_of_few_rows_it_is_not_stated(same):
    """One of the experts is too likely to have none."""
    same.made(trained(added), *FEW, data(40, 0, 1, 2))
    assert any(one.stopped is not None for _, one in same.capture.report.replacements)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_the_whole_stack_goes_past_no_rows(backend):
    fxstack = pytest.importorskip("fxstack")
    every = experts()
    f = made(added)()
    fast = fxstack.compile(f, backend=backend, fullgraph=True)
    for x, chosen in FEW:
        torch.testing.assert_close(fast(x, chosen), f(x, chosen))
    fast = fxstack.compile(added, backend=backend, fullgraph=True)
    for x, chosen in MANY:
        for one, two in zip(
            gradients(fast, every, x, chosen), gradients(added, every, x, chosen), strict=True
        ):
            assert (one is None) is (two is None)
            if one is not None:
                torch.testing.assert_close(one, two)
