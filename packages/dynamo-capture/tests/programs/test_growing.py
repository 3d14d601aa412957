"""Containers that grow from call to call, and from round to round of a loop that breaks: they are compiled once."""

import collections

import pytest
import torch

from dynamo_capture import optimize

X = torch.arange(3.0) + 1


def counted(f):
    """``f`` compiled, and how many pieces of code were made for it."""
    optimizer = optimize(lambda graph, inputs: graph.forward)
    return optimizer(f), lambda: len(optimizer.report.replacements)


class Growing:
    """An object with a log."""

    def __init__(self):
        self.log = []
        self.table = {}


def test_a_log_that_grows_with_each_call_is_not_read():
    def f(x, holder):
        holder.log.append(x.sum())
        holder.table[len(x)] = x
        holder.table["last"] = x
        return x + 1

    compiled, pieces = counted(f)
    holder, twin = Growing(), Growing()
    for step in range(20):
        assert torch.equal(compiled(X + step, holder), f(X + step, twin))
        holder.table[str(step)] = twin.table[str(step)] = step
    assert list(map(float, holder.log)) == list(map(float, twin.log))
    assert list(holder.table) == list(twin.table)
    assert pieces() == 1


@pytest.mark.parametrize("kind", [dict, collections.OrderedDict, lambda: collections.defaultdict(list)])
def test_stored_entries_are_seen_by_later_reads(whole, kind):
    def f(x, d):
        d["new"] = x
        d["a"] = 1
        first = d["a"], "new" in d, d.get("missing"), d["new"] is x
        d["b"] = 2
        del d["a"]
        return first, len(d), list(d), d.pop("new") + 1

    full = kind()
    full.update({"z": 0, "a": 5, "b": 6})
    whole(f, (X, kind()), (X, full))


def test_entries_that_only_are_stored_keep_their_place(whole):
    def f(x, d):
        d["a"] = x
        d[2] = x + 1
        d[True] = 7
        d["a"] = 8

    whole(f, (X, {"b": 1, "a": 2, 1: 3}), (X, {}), (X, {"a": 0, "c": 1, 2: 1}))


def test_appended_items_are_seen_by_later_reads(whole):
    def f(x, a, b):
        a.append(x)
        a += [1, 2]
        b.extend(a)
        b.append(a)
        last = a[-1], len(b), a[0] is b[0]
        a.append(a.pop(0))
        return last, b[-1] is a

    whole(f, (X, [5], []), (X, [], []), (X, [5, 6], []))


def test_an_iterator_over_a_list_sees_what_is_appended(whole):
    def f(x, a):
        seen = []
        for item in a:
            seen.append(item)
            if len(a) < 5:
                a.append(item + 1)
        return seen

    whole(f, (X, [1]), (X, [1, 2]), (X, []))


def test_one_list_under_two_names_is_told_apart_from_two(whole):
    def f(x, a, b):
        a.append(1)
        b.append(2)
        return x + len(a)

    shared = []
    whole(f, (X, [], []), (X, shared, shared), (X, [0], []))


def _rounds_with_print(x, items):
    for item in items:
        x = x + item
        print(end="")
        x = x * 1.01
    return x


def _rounds_with_item(x, items):
    found, table = [], {}
    for step, item in enumerate(items):
        x = x + item
        found.append(x.sum().item())
        table[step] = x.mean().item()
        x = x * 1.01
    return x, found, table


def _numbers():
    yield from range(50)


ITERABLES = {
    "range": lambda: range(50),
    "list": lambda: [0.5] * 50,
    "tensors": lambda: [X] * 50,
    "different": lambda: list(range(50)),
    "zip": lambda: (a * b for a, b in zip(range(50), range(50), strict=True)),
    "values": lambda: {str(n): n for n in range(50)}.values(),
    "generator": _numbers,
}


@pytest.mark.parametrize("body", [_rounds_with_print, _rounds_with_item])
@pytest.mark.parametrize("kind", sorted(ITERABLES))
def test_a_loop_that_breaks_in_each_round_is_compiled_a_few_times(body, kind):
    compiled, pieces = counted(body)
    expected = body(X, ITERABLES[kind]())
    assert str(compiled(X, ITERABLES[kind]())) == str(expected)
    first = pieces()
    assert first <= 12
    assert str(compiled(X, ITERABLES[kind]())) == str(expected)
    assert pieces() <= first + 2


def test_a_bound_method_that_waits_for_its_argument_is_no_constant():
    def f(x):
        results = []
        for _ in range(20):
            results.append(x.sum().item())
            x = x.add(x.max().item())
        return results

    compiled, pieces = counted(f)
    assert compiled(X) == f(X)
    assert pieces() <= 10
