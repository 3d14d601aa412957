"""Graph breaks in loops: a round is one graph, few pieces are compiled, and iterators are where eager leaves them."""

import collections

import pytest
import torch

import dynamo_capture
from dynamo_capture import graph_break, optimize

X = torch.arange(4.0) / 8


def over_list(x, items):
    for item in items:
        x = x + item
        graph_break()
        x = x * 0.5
    return x


def over_range(x, n):
    for i in range(n):
        x = x + i
        graph_break()
        x = x * 0.5
    return x


def over_enumerate(x, items):
    for number, item in enumerate(items, 2):
        x = x + item * number
        graph_break()
        x = x * 0.5
    return x


def over_zip(x, items):
    for one, two in zip(items, items):  # noqa: B905
        x = x + one
        graph_break()
        x = x * 0.5 + two
    return x


def over_dict(x, table):
    last = None
    for last, value in table.items():  # noqa: B007
        x = x + value
        graph_break()
        x = x * 0.5
    return x if last else None


def over_reversed(x, items):
    for item in reversed(items):
        x = x + item
        graph_break()
        x = x * 0.5
    return x


def over_map(x, items):
    for item in map(torch.sin, filter(lambda item: item is not None, items)):
        x = x + item
        graph_break()
        x = x * 0.5
    return x


def while_loop(x, n):
    i = 0
    while i < n:
        x = x + i
        graph_break()
        x = x * 0.5
        i += 1
    return x


def in_blocks(x, n):
    with torch.no_grad():
        for _ in range(n):
            try:
                x = x + 1
                graph_break()
                x = x * 0.5
            finally:
                x = x - 1
    return x


def broken(x):
    x = x + 1
    graph_break()
    return x * 0.5


def in_callee(x, n):
    for _ in range(n):
        x = broken(x) - 1
    return x


def in_comprehension(x, n):
    return torch.stack([broken(x) for _ in range(n)])


def in_dict_comprehension(x, n):
    return {str(i): broken(x) for i in range(n)}


def tensors(n):
    return [X * i for i in range(n)]


def table(n):
    return {f"{i:2}": X * i for i in range(n)}


OPEN = [
    (over_list, tensors), (over_range, int), (over_enumerate, tensors), (over_zip, tensors), (over_map, tensors),
    (while_loop, int), (in_blocks, int), (in_callee, int),
]  # fmt: skip
"""Programs, what makes their second argument, and where a loop of another number of rounds compiles nothing more."""

ROUNDS = [*OPEN, (over_dict, table), (over_reversed, tensors), (in_comprehension, int)]


class Counting:
    """A backend that counts what it compiles and how often that runs."""

    def __init__(self):
        self.compiled = self.runs = 0

    def __call__(self, graph_module, example_inputs):
        self.compiled += 1

        def run(*inputs):
            self.runs += 1
            return graph_module.forward(*inputs)

        return run


@pytest.mark.parametrize(("program", "make"), ROUNDS)
def test_a_round_is_one_graph_of_a_few_pieces(program, make):
    compiled = {}
    for rounds in (3, 60):
        dynamo_capture.reset()
        backend = Counting()
        fast = optimize(backend)(program)
        assert torch.equal(fast(X, make(rounds)), program(X, make(rounds)))
        compiled[rounds] = backend.compiled
        backend.runs = 0
        assert torch.equal(fast(X, make(rounds)), program(X, make(rounds)))
        assert backend.runs <= rounds + 1
    assert compiled[60] <= compiled[3] + 2


@pytest.mark.parametrize(("program", "make"), OPEN)
def test_loops_of_other_lengths_run_the_same_pieces(program, make):
    backend = Counting()
    fast = optimize(backend)(program)
    for rounds in (5, 7, 9, 30):
        assert torch.equal(fast(X, make(rounds)), program(X, make(rounds)))
    compiled = backend.compiled
    for rounds in (3, 31, 50):
        assert torch.equal(fast(X, make(rounds)), program(X, make(rounds)))
    assert backend.compiled == compiled


def test_inner_loops_with_breaks_in_each_round():
    def program(x, n):
        for _ in range(n):
            x = x - 1
            for _ in range(3):
                x = x + 1
                graph_break()
                x = x * 0.5
            x = x * 2
        return x

    backend = Counting()
    fast = optimize(backend)(program)
    assert torch.equal(fast(X, 5), program(X, 5))
    backend.runs = 0
    assert torch.equal(fast(X, 20), program(X, 20))
    assert backend.runs <= 61
    assert backend.compiled <= 6


def leaving(x, n):
    for i in range(100):
        x = x + 1
        if i == n:
            break
        if i % 3 == 0:
            continue
        graph_break()
        x = x * 0.5
    else:
        x = x - 1
    return x


def test_break_continue_and_else(same):
    same(leaving, (X, 4), (X, 7), (X, 200))


def test_an_iterator_is_left_where_eager_leaves_it(same):
    def program(x, iterator):
        for item in iterator:
            x = x * item
            graph_break()
            if item == 2.0:
                break
        return x, list(iterator)

    for made in (list, tuple, collections.OrderedDict.fromkeys, dict.fromkeys):
        for count in (0, 1, 2, 3, 5):
            items = made([float(i) for i in range(count)])
            plain, fast = iter(items), iter(items)
            expected, actual = program(X, plain), optimize(lambda g, e: g.forward)(program)(X, fast)
            assert torch.equal(expected[0], actual[0])
            assert expected[1] == actual[1]
            assert next(plain, None) == next(fast, None)


def test_iterators_that_are_exhausted_stay_so(same):
    def program(x, items):
        iterator = iter(items)
        for _ in iterator:
            graph_break()
            x = x + 1
        items.append(9)
        return x, next(iterator, None), len(items)

    same(program, (X, []), (X, [1]), (X, [1, 2, 3]))


def test_a_list_that_grows_while_it_is_iterated_over(same):
    def program(x, items):
        for item in items:
            graph_break()
            x = x + item
            if item < 4:
                items.append(item + 2)
        return x, items

    same(program, (X, [1]), (X, [1, 2]), (X, [5]))


def test_items_that_are_replaced_ahead(same):
    def program(x, items, table):
        for place, item in enumerate(items):
            graph_break()
            x = x + item
            if place + 1 < len(items):
                items[place + 1] = item * 2
        for value in map(table.get, table):
            graph_break()
            x = x * value
            table["b"] = value + 1
        return x, items, table

    same(program, (X, [1, 2, 3], {"a": 2, "b": 3}), (X, [1], {"b": 3, "a": 1, "c": 2}))


def test_a_dict_that_changes_its_size_while_it_is_iterated_over(same):
    def program(x, table):
        for key in table:
            graph_break()
            x = x + 1
            table[key + "x"] = x
        return x

    same(program, (X, {"a": 1}), (X, {"a": 1, "b": 2}), (X, {}))


def test_one_iterator_drawn_from_twice(same):
    def program(x, items):
        iterator = iter(items)
        for one, two in zip(iterator, iterator):  # noqa: B905
            x = x * one + two
            graph_break()
            x = x + next(iterator, 7)
        counted = enumerate(iterator, 5)
        for number, item in counted:
            x = x + number
            graph_break()
            x = x * item
            next(iterator, None)
        return x, list(iterator), next(counted, None)

    same(program, *((X, [float(i) for i in range(n)]) for n in (0, 1, 2, 3, 5, 7, 8, 12)))


def test_iterators_kept_by_objects(same):
    class Source:
        def __init__(self):
            self.items = enumerate(zip(range(9), "abcdefghi"))  # noqa: B905

    def program(x, source):
        number, (item, letter) = next(source.items)
        return x * item + number, letter

    def make():
        source = Source()
        return lambda x: program(x, source)

    same.made(make, *[(X,)] * 12)
    assert sum(not code.co_name.startswith("program") for code, _ in same.capture.report.replacements) <= 7


def test_functions_called_for_items(same):
    def program(x, items, log):
        def noted(item):
            log.append(item)
            return x * item

        for value in map(noted, items):
            x = x + value
            graph_break()
            x = x * 0.5
            log.append("round")
        return x, log

    same(program, (X, [1, 2, 3], []), (X, [], []), (X, [1, 2, 3, 4, 5], ["before"]))


def test_loops_whose_rounds_to_the_next_break_vary_are_compiled_seldom():
    def program(x, first):
        for i in range(40):
            x = x + 1
            if i == first:
                graph_break()
        return x

    fast = optimize(lambda graph, examples: graph.forward)(program)
    for first in range(2, 32):
        assert torch.equal(fast(X, first), program(X, first))
    codes = [code for code, _ in fast.__fxstack_capture__.report.replacements]
    assert sum(code is not program.__code__ for code in codes) <= 14


def test_modules_in_a_loop_share_their_pieces():
    layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(20))

    def program(x):
        for layer in layers:
            x = layer(x)
            graph_break()
            x = torch.relu(x)
        return x

    backend = Counting()
    assert torch.equal(optimize(backend)(program)(X), program(X))
    assert backend.compiled <= 4
