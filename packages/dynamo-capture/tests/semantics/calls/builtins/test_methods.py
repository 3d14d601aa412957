"""Methods of lists, tuples, deques and dicts, on arguments that are seldom given."""

import collections

import pytest

from dynamo_capture.foundation.errors import GraphBreak


def lists():
    items = [3, 1, 2]
    items.insert(-10, 0)
    items.insert(10, 9)
    items.extend(items)
    items.reverse()
    popped = items.pop(), items.pop(0), items.pop(-2)
    copied = items.copy()
    items.clear()
    return popped, tuple(copied), tuple(items), copied.index(1, 2), copied.count(1)


def made_again():
    items, other = [1, 2], [3]
    items.__init__(items)
    other.__init__((4, 5))
    seen = tuple(other)
    other.__init__()
    return tuple(items), seen, tuple(other)


def sorted_in_place():
    items = [3, -1, 2]
    items.sort(key=abs, reverse=True)
    return tuple(items), tuple(reversed(items))


def deques():
    queue = collections.deque([1, 2, 3], maxlen=3)
    queue.appendleft(9)
    queue.rotate(-1)
    queue.extendleft([7, 8])
    return tuple(queue), queue.maxlen, queue.popleft(), queue.pop()


def dicts():
    table = {1: 2}
    table.update([(3, 4)], a=5)
    seen = (
        table.setdefault(1, 9),
        table.setdefault("b"),
        table.get(7, 8),
        table.pop("zz", "none"),
        table.pop(1),
    )
    return seen, table.popitem(), tuple(table), tuple(table.items()), tuple(dict.fromkeys("ab", 0).items())


def views():
    table = {1: 2, 3: 4}
    return tuple(table.keys() & {1, 5}), (1, 2) in table.items(), table.keys() == {1, 3}, len(table.values())


def ordered():
    table = collections.OrderedDict(a=1, b=2)
    table.move_to_end("a")
    return tuple(table), table.popitem(last=False), tuple(reversed(table))


def default_dicts():
    table = collections.defaultdict(list, a=1)
    table.__init__(int, b=2)
    made, first = table["c"], table.default_factory
    table.__init__()
    return made, first, table.default_factory, tuple(table.items())


PROGRAMS = [default_dicts, lists, made_again, sorted_in_place, deques, dicts, views, ordered]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_results(agrees, program):
    agrees(program)


def test_a_factory_is_called_in_python_where_it_is_refused(agrees):
    """``__init__`` gets the factory first, and not the content."""
    for given in (3, [("a", 1)]):
        with pytest.raises(GraphBreak, match="refuses what it is given"):
            agrees(lambda given: collections.defaultdict(list).__init__(given), given)


@pytest.mark.parametrize(
    "program",
    [
        lambda: [].pop(),
        lambda: [1].pop(5),
        lambda: [1].remove(2),
        lambda: [1].index(2),
        lambda: (1,).index(5),
        lambda: {}.pop(1),
        lambda: {}.popitem(),
        lambda: {}.get([]),
        lambda: [1, "a"].sort(),
        lambda: collections.deque().popleft(),
        lambda: [].nothing(),
    ],
)
def test_what_python_refuses(agrees, program):
    agrees(program)


@pytest.mark.parametrize("name", ["__eq__", "__ne__", "__add__"])
@pytest.mark.parametrize(("one", "other"), [(collections.deque([1], 3), [1]), ([1], collections.deque([1]))])
def test_lists_and_deques_do_not_meet(agrees, name, one, other):
    with pytest.raises(GraphBreak, match=name):
        agrees(lambda: getattr(one, name)(other))
