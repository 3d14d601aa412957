"""Objects of ``threading.local``: attributes that each thread has for itself."""

from __future__ import annotations

import threading

import pytest
import torch

from dynamo_capture import optimize

LOCAL = threading.local()


def reading(x):
    return x * LOCAL.scale


def writing(x):
    LOCAL.calls = getattr(LOCAL, "calls", 0) + 1
    LOCAL.__dict__["last"] = x + LOCAL.calls
    del LOCAL.__dict__["old"]
    return LOCAL.last * 2, sorted(vars(LOCAL)), hasattr(LOCAL, "old"), hasattr(LOCAL, "scale")


def broken(x, unknown):
    LOCAL.scale = x.sum()
    y = unknown(x)
    return y, LOCAL.scale, LOCAL.__dict__ is vars(LOCAL)


def looping(x):
    for name in ("a", "b", "a"):
        setattr(LOCAL, name, x + len(vars(LOCAL)))
    del LOCAL.b
    return LOCAL.a


def missing(x):
    try:
        del LOCAL.nothing
    except AttributeError as error:
        first = str(error)
    try:
        return x + LOCAL.nothing
    except AttributeError as error:
        return x + 1, first, str(error)


def attributes():
    return {name: value for name, value in vars(LOCAL).items()}


@pytest.mark.parametrize("program", [reading, writing, looping, missing])
def test_attributes_of_this_thread(whole, program):
    for scale in (2.0, 2.0, 3.0):
        results = []
        for run in (program, optimize(lambda gm, _: gm.forward, fullgraph=True)(program)):
            vars(LOCAL).clear()
            vars(LOCAL).update(scale=scale, old=1)
            results.append(
                (run(torch.ones(2)), run(torch.ones(3)) if program is reading else None, attributes())
            )
        expected, actual = results
        assert str(actual) == str(expected)


def test_break_between_a_write_and_a_read(same, unknown):
    vars(LOCAL).clear()
    same(broken, (torch.ones(2), unknown), (torch.ones(2), unknown), breaks=1)


def test_each_thread_reads_its_own(forward):
    fast = optimize(forward, fullgraph=True)(reading)
    found = {}

    def run(number):
        LOCAL.scale = number
        found[number] = [fast(torch.ones(2)) for _ in range(2)]

    def run_without():
        with pytest.raises(AttributeError, match="scale"):
            fast(torch.ones(2))
        found["without"] = True

    for number in (2.0, 5.0, 2.0):
        thread = threading.Thread(target=run, args=(number,))
        thread.start()
        thread.join()
        assert all(torch.equal(y, torch.full((2,), number)) for y in found[number])
    thread = threading.Thread(target=run_without)
    thread.start()
    thread.join()
    assert found["without"]


class Counted(threading.local):
    def __init__(self):
        self.calls = 0


COUNTED = Counted()


def of_a_class_with_init(x):
    COUNTED.calls += 1
    return x + COUNTED.calls


def test_classes_made_from_it_are_left_to_python(forward):
    fast = optimize(forward)(of_a_class_with_init)
    for run in (of_a_class_with_init, fast, fast):
        COUNTED.calls = 4
        assert torch.equal(run(torch.ones(2)), torch.full((2,), 6.0))
        assert COUNTED.calls == 5
