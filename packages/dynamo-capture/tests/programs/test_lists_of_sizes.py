"""Lists that are made of a size, ``list(range(n))``: their length is fixed only where somebody asks."""

from __future__ import annotations

import pytest
import torch

from dynamo_capture import optimize

primtorch_decomps = pytest.importorskip("primtorch_decomps")

ROWS = [(torch.randn(count, 3),) for count in (2, 3, 4, 5, 1, 0)]


def _places(x):
    """As a mask over a prompt that is filled up at its left is made."""
    return x.sum() + torch.tensor(list(range(x.shape[0] - 1))[::-1])


def _handed_out(x):
    count = x.shape[0]
    return (
        x + 1,
        list(range(count)),
        list(range(count - 1, -1, -1))[::-1],
        torch.tensor(list(range(2, count))),
    )


def _changed(x):
    places = list(range(x.shape[0]))
    places.append(7)
    places[0] = 3
    other = list(range(x.shape[0] + 2))
    same = other
    for index in other:
        x = x + index
    other.pop()
    joined = [
        *places,
        *other,
        *other[::2],
        len(places),
        sum(other),
        2 in other,
        places == other,
        same is other,
    ]
    return x, places, other, joined, torch.tensor(other, dtype=torch.float16)


def _read(x):
    places = list(range(x.shape[0]))
    turned = places[::-1]
    return x + 1, turned, sorted(turned), max(turned, default=0), tuple(turned), {*turned}, places * 2


@pytest.mark.parametrize("program", [_places, _handed_out, _changed, _read], ids=lambda one: one.__name__)
def test_they_equal_eagers(same, program):
    same(program, *ROWS, operators=primtorch_decomps.LIBRARY)


def test_they_are_one_graph_for_any_number():
    made = []

    def backend(graph_module, example_inputs):
        made.append(graph_module)
        return graph_module.forward

    compiled = optimize(backend, operators=primtorch_decomps.LIBRARY)(_places)
    for count in (4, 5, 6, 9):
        x = torch.randn(count, 3)
        assert torch.equal(compiled(x), _places(x))
    assert len(made) == 2


def test_they_cross_graph_breaks(same):
    def program(x):
        places = list(range(x.shape[0]))
        y = x * 2
        print(end="")
        return y + len(places), places, torch.tensor(places), [index + 1 for index in places]

    same(program, *ROWS, operators=primtorch_decomps.LIBRARY)


class _Batch:
    def __init__(self, x):
        self.x = x

    def __len__(self):
        return self.x.shape[0] - 2

    def part(self, stop):
        return _Batch(self.x[:stop])


def test_the_length_of_an_object_that_varies(whole):
    calls = [(torch.ones(n),) for n in (5, 6, 7, 9)]
    whole(lambda x: x[: len(_Batch(x)) // 2].sum() / len(_Batch(x)), *calls, graphs=2)
    whole(lambda x: (x * 2, len(_Batch(x)), len(_Batch(x).part(4))), *calls, graphs=2)
    whole(lambda x: x * (2 if _Batch(x) else 3), *calls, graphs=2)


def test_a_length_that_python_refuses(same):
    same(lambda x: x[: len(_Batch(x))] * 2, *((torch.ones(n),) for n in (5, 6, 1, 0, 2, 3)))
    same(lambda x: x * (2 if _Batch(x) else 3), *((torch.ones(n),) for n in (5, 6, 1, 0, 2, 3)))
