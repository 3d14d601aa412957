"""Functions that go through now more and now fewer items: their calls are left to Python, what comes after is one graph."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dynamo_capture import optimize

primtorch_decomps = pytest.importorskip("primtorch_decomps")


def _positions(grid):
    """As a vision tower lays out its patches: a loop over images."""
    found = []
    for h, w in grid.tolist():
        rows = torch.arange(h).unsqueeze(1).expand(h, w).reshape(h // 2, 2, w // 2, 2).transpose(1, 2)
        found.append(rows.flatten())
    return torch.cat(found)


class _Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x, ends):
        lengths = ends[1:] - ends[:-1]
        parts = torch.split(self.proj(x), lengths.tolist())
        return torch.cat([part.softmax(0) for part in parts])


class _Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = _Attention()
        self.norm = nn.LayerNorm(4)

    def forward(self, x, ends):
        return x + self.attention(self.norm(x), ends)


class _Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([_Block(), _Block()])

    def forward(self, x, grid):
        positions = _positions(grid)
        ends = nn.functional.pad((grid[:, 0] * grid[:, 1]).cumsum(0), (1, 0))
        x = x + positions[:, None]
        for block in self.blocks:
            x = block(x, ends)
        return x * 2


def _tower():
    torch.manual_seed(0)
    return _Tower()


def _images(*sizes):
    grid = torch.tensor(sizes)
    return torch.randn(int(grid.prod(1).sum()), 4), grid


CALLS = [
    _images((2, 4), (4, 4)),
    _images((2, 4), (4, 4), (2, 2)),
    _images((2, 6), (4, 4), (2, 2), (4, 6)),
    _images((4, 6), (2, 4), (6, 2), (4, 2)),
    _images((4, 6)),
    _images(*[(2, 2)] * 5),
]


def _graphs(program, calls, **options):
    """How many graphs each call brings; the results are eager's."""
    made, counts = [], []

    def backend(graph_module, example_inputs):
        made.append(graph_module)
        return graph_module.forward

    fast = optimize(backend, operators=primtorch_decomps.LIBRARY, **options)(program)
    for call in calls:
        before = len(made)
        torch.testing.assert_close(fast(*call), program(*call))
        counts.append(len(made) - before)
    return counts


def test_a_tower_equals_eager(same):
    same.made(_tower, *CALLS, operators=primtorch_decomps.LIBRARY)


def test_the_third_number_of_images_brings_no_graph():
    with torch.no_grad():
        counts = _graphs(_tower(), CALLS[:4])
    assert counts[0] == 1
    assert counts[2:] == [0, 0]


def test_other_sizes_of_as_many_images_bring_no_graph_after_the_second():
    calls = [
        _images((2, 4), (4, 4)),
        _images((4, 6), (2, 2)),
        _images((6, 2), (4, 4)),
        _images((2, 2), (8, 2)),
    ]
    with torch.no_grad():
        counts = _graphs(_tower(), calls)
    assert counts[0] == 1
    assert counts[2:] == [0, 0]


def test_a_whole_graph_has_a_version_for_each_content():
    with torch.no_grad():
        assert _graphs(_tower(), CALLS[:4], fullgraph=True) == [1, 1, 1, 1]


def test_a_function_that_calls_the_modules_is_not_left_to_python():
    """It would be most of the program."""

    class Reading(_Tower):
        def forward(self, x, grid):
            sizes = grid.tolist()
            for block in self.blocks:
                x = block(x, grid.new_tensor([0, x.shape[0]]))
            return x * sum(h * w for h, w in sizes)

    class Around(nn.Module):
        def __init__(self):
            super().__init__()
            self.tower = Reading()

        def forward(self, x, grid):
            return self.tower(x, grid) + 1

    torch.manual_seed(0)
    with torch.no_grad():
        assert all(_graphs(Around(), CALLS[:4]))


def test_gradients_lead_through_functions_that_are_left(same):
    def program(model, x, grid):
        model(x, grid).sum().backward()
        return [parameter.grad for parameter in model.parameters()]

    fast = _tower()
    compiled = optimize(lambda graph, inputs: graph.forward, operators=primtorch_decomps.LIBRARY)(fast)
    for call in CALLS:
        expected = program(_tower(), *call)
        fast.zero_grad()
        torch.testing.assert_close(program(compiled, *call), expected)


def _joined(x, counts):
    parts = torch.split(x * 2, counts.tolist())
    return torch.cat(parts) + 1


def _counted(*counts):
    return torch.randn(sum(counts), 3), torch.tensor(counts)


def test_parts_that_are_joined_again_are_one_graph_for_any_number():
    calls = [_counted(2, 3), _counted(4, 1, 3), _counted(1, 2, 3, 4), _counted(5, 5, 5, 0, 5)]
    assert _graphs(_joined, calls) == [1, 1, 0, 0]


def test_parts_equal_eager(same):
    calls = [_counted(2, 3), _counted(4, 1, 3), _counted(1, 2, 3, 4), _counted(0, 3)]
    same(_joined, *calls, operators=primtorch_decomps.LIBRARY)
    x, counts = _counted(2, 3)
    same(
        _joined, *calls, (x, counts + 1), (x[:4], torch.tensor([5, -1])), operators=primtorch_decomps.LIBRARY
    )


@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.cat(list(x)),
        lambda x: torch.cat(list(x), -2),
        lambda x: torch.cat(list(x), dim=1),
        lambda x: torch.stack(list(x)),
        lambda x: torch.stack(x.unbind(1), 1),
        lambda x: torch.stack(x.unbind(1), 0),
        lambda x: torch.stack(list(x), -1),
        lambda x: (list(x), x.unbind(1)),
        lambda x: [row * 2 for row in x],
    ],
)
def test_rows_of_now_more_and_now_fewer(same, program):
    same(program, *[(torch.randn(n, n + 1, 2),) for n in (2, 3, 4, 5)], operators=primtorch_decomps.LIBRARY)


def test_rows_that_are_joined_again_are_one_graph_for_any_number():
    assert _graphs(lambda x: torch.cat(list(x)), [(torch.randn(n, 5, 2),) for n in (2, 3, 4, 6)]) == [
        1,
        1,
        0,
        0,
    ]


def test_lists_that_nobody_has_asked_are_made_by_python(same):
    def program(x, counts):
        sizes = counts.tolist()
        parts = x.split(sizes)
        kept = list(x)
        return x * 2, parts, sizes, sizes, iter(parts), kept

    calls = [_counted(2, 3), _counted(4, 1, 3), _counted(1, 2, 3, 4)]
    same(program, *calls, operators=primtorch_decomps.LIBRARY, ignore=("[4]",))


def test_numbers_are_those_before_the_tensor_is_written_to(same):
    def program(x, counts):
        before = counts.tolist()
        counts += 1
        after = counts.tolist()
        before.append(7)
        return x * 2, before, after

    same(program, *[_counted(*range(1, n)) for n in (3, 4, 5, 6)], operators=primtorch_decomps.LIBRARY)


def test_whether_there_is_a_tensor_does_not_tell_its_size():
    class Keeping(nn.Module):
        last = None

        def forward(self, x):
            first = self.last is None
            self.last = x.sum(1)
            return x + (1 if first else 2)

    made = []

    def backend(graph_module, example_inputs):
        made.append(graph_module)
        return graph_module.forward

    plain, fast = Keeping(), optimize(backend, operators=primtorch_decomps.LIBRARY)(Keeping())
    for x in (torch.randn(n, 3) for n in (2, 3, 4, 5)):
        assert torch.equal(fast(x), plain(x))
    assert len(made) == 2  # without a tensor, and with one
