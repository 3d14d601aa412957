"""Programs that decide on the numbers in a small tensor: a version for each content, a few of them."""

from __future__ import annotations

import itertools

import numpy
import pytest
import torch

from dynamo_capture import optimize

X = torch.arange(48.0).view(24, 2)
GRIDS = [torch.tensor(rows) for rows in ([[1, 4, 6]], [[2, 2, 6]], [[1, 4, 2], [1, 4, 4]], [[1, 4, 6]])]


def _windows(x, grid):
    """As a vision tower lays out its patches."""
    positions, lengths = [], torch.repeat_interleave(grid[:, 1] * grid[:, 2], grid[:, 0])
    for t, h, w in grid.tolist():
        rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        blocks = (h // 2, 2, w // 2, 2)
        rows = rows.reshape(blocks).transpose(1, 2).flatten()
        columns = columns.reshape(blocks).transpose(1, 2).flatten()
        positions.append(torch.stack([rows, columns], -1).repeat(t, 1))
    ends = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
    parts = x.split((ends[1:] - ends[:-1]).tolist())
    return torch.cat(positions) * x, [part.sum() for part in parts]


def _count_graphs():
    made = []

    def backend(graph_module, example_inputs):
        made.append(graph_module)
        return graph_module.forward

    return made, backend


def test_a_table_of_sizes(same):
    same(_windows, *[(X, grid) for grid in GRIDS])


def test_a_table_of_sizes_is_one_graph_for_each_content():
    made, backend = _count_graphs()
    compiled = optimize(backend, fullgraph=True)(_windows)
    for grid in (*GRIDS, *GRIDS):
        compiled(X, grid)
    assert len(made) == 3


def test_sizes_that_no_loop_goes_through_have_a_version_for_each_content():
    def program(x, grid):
        h, w = grid.tolist()
        return x[:h].repeat(1, 2 if h > w else 3)

    made, backend = _count_graphs()
    compiled = optimize(backend)(program)
    contents = [torch.tensor(row) for row in ([4, 6], [8, 6], [4, 4])]
    for grid in (*contents, *contents):
        compiled(X, grid)
    assert len(made) == 3


def test_many_contents_get_no_version_each(same):
    def program(x, n):
        if n.item() > 3:
            return x + n
        return x.sum() * n

    made, backend = _count_graphs()
    compiled = optimize(backend)(program)
    for n in range(12):
        compiled(X, torch.tensor(n))
    assert len(made) < 10
    same(program, *[(X, torch.tensor(n)) for n in (1, 5, 2, 7, 3, 9, 1, 4)])


def test_contents_that_are_of_no_use_are_not_guarded():
    def program(x, n):
        y = x + n.item()
        if y.sum() > 10:
            return y * 2
        return y

    session_made, backend = _count_graphs()
    compiled = optimize(backend)(program)
    for n in range(5):
        assert torch.equal(compiled(X, torch.tensor(n)), program(X, torch.tensor(n)))
    assert len(session_made) == 2


def test_contents_that_change_in_between(same):
    def program(x, n, array):
        if n[0].item() > 1:
            x = x + 1
        n.add_(1)
        if n[0].item() > 2:
            x = x * 3
        array[0] = 7
        return x * len(range(n[1].item())), n

    def arguments(first):
        array = numpy.array([first, 2])
        return X.clone(), torch.from_numpy(array), array

    same(program, *[arguments(first) for first in (1, 2, 1, 5)])


def test_sizes_that_follow_from_known_contents(same):
    def program(x):
        counts, mask = torch.tensor([2, 0, 1]), torch.tensor([True, False, True])
        rows = torch.repeat_interleave(x[:3], counts, 0)
        places = torch.arange(64)
        even = places[places % 2 == 0]
        return (
            rows.reshape(3, -1),
            x[:3][mask] + x[:2],
            even.tolist()[-1],
            x[mask.nonzero().squeeze(1)] + x[:2],
        )

    same(program, (X.clone().requires_grad_(),), (X + 1,), graphs=2, breaks=0)


def test_the_numbers_of_a_view_are_not_taken_for_those_of_the_call(same):
    def program(x, table):
        first = table[0]
        return x[: first.item()].view(first.item() // 2, 2, 2) if first.item() % 2 == 0 else x

    table = torch.tensor([[4, 2], [6, 3]])
    same(program, (X, table[1]), (X, table[0]), (X, table[1, 1:]), (X, table[0]))


class _Table:
    """As solvers keep their coefficients."""

    def __init__(self, *numbers):
        self.numbers = torch.tensor(numbers)


def _stages(x, table):
    y = x
    for number in table.numbers:
        y = y.sin() if number == 1.0 else y * number
    if (table.numbers[:-1] > 0).all():
        y = y + 1
    return y


def test_truths_that_follow_from_the_floats_of_an_object(same):
    same(_stages, (X, _Table(0.5, 1.0, 2.0)), (X, _Table(1.0, -1.0)), (X, _Table(0.5, 1.0, 2.0)))
    same(_stages, (X, _Table(0.0, 1.0)), (X, _Table(-0.0, 1.0)), (X, _Table(float("nan"), 1.0)))


def test_floats_of_an_object_are_one_graph_for_each_content():
    made, backend = _count_graphs()
    compiled = optimize(backend)(_stages)
    for _ in range(2):
        for table in (_Table(0.5, 1.0, 2.0), _Table(0.5, 1.0, 3.0)):
            assert torch.equal(compiled(X, table), _stages(X, table))
    assert len(made) == 2
    optimize(backend, fullgraph=True)(_stages)(X, _Table(0.5, 1.0))


def test_floats_that_change_with_every_call_get_no_version_each():
    class Average(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(()))

        def forward(self, x):
            self.mean.mul_(0.9).add_(x.mean() * 0.1)
            return x * 2 if self.mean > 1.5 else x - self.mean

    made, backend = _count_graphs()
    modules = [Average(), Average()]
    compiled = optimize(backend)(modules[0])
    for n in range(12):
        assert torch.equal(compiled(X + n), modules[1](X + n))
    assert len(made) < 10


def test_a_number_of_an_object_that_ends_no_graph_is_no_constant():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.ones(()))

        def forward(self, x):
            return x * self.scale.item() + (self.scale > 0)

    made, backend = _count_graphs()
    module = Scaled()
    compiled = optimize(backend)(module)
    for n in range(4):
        module.scale.fill_(n)
        assert torch.equal(compiled(X), module(X))
    assert len(made) == 1


def _placed(x, kinds):
    """Where in a prompt which kind of token begins and ends, as models with images count positions."""
    rows = []
    for row in kinds:
        groups = []
        for kind, group in itertools.groupby(enumerate(row.tolist()), lambda pair: pair[1]):
            found = list(group)
            groups.append(torch.arange(found[-1][0] + 1 - found[0][0]) + kind)
        rows.append(torch.cat(groups))
    return torch.stack(rows) + x.sum()


def test_a_long_row_of_kinds(same):
    first = torch.tensor([[0, 0, 1, 1, 1, 0] * 20, [0] * 119 + [1]])
    made, backend = _count_graphs()
    compiled = optimize(backend, fullgraph=True)(_placed)
    for kinds in (first, first.flip(0), first):
        assert torch.equal(compiled(X, kinds), _placed(X, kinds))
    assert len(made) == 2
    same(_placed, *[(X, kinds) for kinds in (first, first.flip(0), first[:, :100])])


def test_contents_that_are_too_long_are_not_read(same):
    kinds = torch.zeros(2, 600, dtype=torch.int64)
    same(_placed, (X, kinds), (X, kinds + 1))


@pytest.mark.parametrize("number", [0, 1])
def test_a_byte_without_dimensions_is_a_mask(whole, number):
    """As an index it is none of the numbers that other integers are."""

    def program(x, byte):
        y = x + 1
        y[torch.tensor(1, dtype=torch.uint8)] = 5
        return x[byte], x[byte, 1:], x[torch.tensor(number, dtype=torch.int32)], y, y.sum()[byte]

    whole(program, (torch.arange(3.0), torch.tensor(number, dtype=torch.uint8)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_what_is_stored_by_a_known_mask_is_not_converted(same, dtype):
    """Torch refuses another dtype, and would convert it for ``y[True] = ...``."""

    def program(x):
        y = torch.tensor(1.5)
        try:
            y[y > 0] = x.sum()
        except RuntimeError as error:
            return y, str(error)
        return y

    same(program, (torch.ones(3, dtype=dtype),), breaks=None)
