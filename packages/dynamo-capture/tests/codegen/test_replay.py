"""What a captured program has changed is changed when the graph has run: all of it, in the program's order."""

from __future__ import annotations

import pytest
import torch

import dynamo_capture

TABLE = {"old": 1}
told = 0


class Noted:
    def __init__(self):
        self.kept, self.gone = 1, 2


def changes(noted, items, table, chosen, x):
    global told
    told += 1
    noted.kept = x + 1
    del noted.gone
    items.append(x * 2)
    table["new"] = x
    del table["old"]
    chosen.add("b")
    chosen.discard("a")
    return x.sum()


def state():
    return Noted(), [0], {"old": 1}, {"a"}


def seen(noted, items, table, chosen):
    return str((vars(noted), items, table, chosen))


def test_everything_is_changed_once(captured):
    x, given, wanted = torch.arange(2.0), state(), state()
    before = told
    captured(changes, *given, x)
    assert told == before + 1
    changes(*wanted, x)
    assert seen(*given) == seen(*wanted)


def test_nothing_is_changed_by_replaying_where_the_graph_fails():
    """The frame runs again as it is written, so that each change is made once."""

    def failing(graph, examples):
        def run(*args):
            raise RuntimeError("no memory")

        return run

    given, wanted, x = state(), state(), torch.arange(2.0)
    dynamo_capture.optimize(failing)(changes)(*given, x)
    changes(*wanted, x)
    assert seen(*given) == seen(*wanted)


def test_changes_come_in_the_order_of_the_program(captured):
    class Log(list):
        pass

    order = Log()

    class Told:
        def __setattr__(self, name, value):
            order.append(name)
            object.__setattr__(self, name, value)

    def program(one, other, x):
        one.a = 1
        other.b = 2
        one.c = x + 1
        return x

    captured(program, Told(), Told(), torch.ones(1))
    assert order == ["a", "b", "c"]


def test_a_list_of_which_nothing_was_read_is_extended(captured):
    """So one program serves lists of all lengths, whatever they hold."""
    count = 0

    def counting(graph, examples):
        nonlocal count
        count += 1
        return graph.forward

    run = dynamo_capture.optimize(counting, fullgraph=True)(lambda items, x: items.append(x + 1))
    for items in ([], [1], ["a", "b"]):
        length = len(items)
        run(items, torch.ones(1))
        assert len(items) == length + 1
    assert count == 1


@pytest.mark.parametrize("deleted", [False, True])
def test_a_cell_is_written_or_emptied(captured, deleted):
    kept = 1

    def program(x):
        nonlocal kept
        kept = x + 1
        if deleted:
            del kept
        return x

    captured(program, torch.zeros(1))
    if deleted:
        with pytest.raises(NameError):
            kept
    else:
        assert kept.item() == 1
