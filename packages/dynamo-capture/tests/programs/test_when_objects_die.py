"""What a program lets go dies then, whatever the translator has raised and caught meanwhile: no exception of its own, and
no frame of one, keeps the program's objects until Python searches for cycles."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

from dynamo_capture import optimize
from primtorch_decomps import LIBRARY

LOG: list[str] = []


def broken(value=None):
    print(end="")
    return value


def rounds(x):
    """A generator that says when it ends."""
    try:
        while True:
            yield x
    finally:
        LOG.append("ends")


def of_data(x, q):
    it = rounds(x + 1)
    y = next(it)
    broken()
    return y * (1 / int(q.sum()))


def in_parts(x, q):
    it = rounds(x + 1)
    y = next(it)
    broken()
    for _ in range(int(q.sum())):
        y = y + 1
    broken()
    return y, [n for n in q.tolist() if n]


def closed_while_captured(x, q):
    for n in q.tolist():
        it = rounds(x * n)
        next(it)
    return x + 1


def fails_on_its_data(x, q):
    it = rounds(x + 1)
    y = next(it)
    broken()
    try:
        y = torch.linalg.cholesky(y @ y.T - 9)
    except RuntimeError as error:
        LOG.append(type(error).__name__)
    return y


def of_a_box(x, q):
    it = rounds(x)
    next(it)
    box = {"it": it}
    broken()
    total = sum(sorted(q.tolist(), key=lambda n: broken(-n)))
    return x * total, len(box)


PROGRAMS = (of_data, in_parts, closed_while_captured, fails_on_its_data, of_a_box)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_locals_die_when_the_call_ends(program):
    told = []
    for called in (program, optimize(lambda module, examples: module.forward)(program)):
        LOG.clear()
        gc.collect()
        gc.disable()
        try:
            for numbers in ([1, 2], [2, 2], [3, 1, 1]):
                called(torch.ones(2, 2), torch.tensor(numbers))
                LOG.append("called")
        finally:
            gc.enable()
        told.append(list(LOG))
    assert told[0] == told[1]
    assert "ends" in told[0]


def raises_after_a_break(x, q):
    it = rounds(x)
    next(it)
    broken()
    return x / 0 if q.sum() > 0 else [][int(q[0])]


def raised_in_finally(x, q):
    try:
        x = x + 1
        1 / (int(q.sum()) - 3)
    finally:
        broken()
        it = rounds(x)
        next(it)
    return x


def raised_again(x, q):
    it = rounds(x)
    next(it)
    try:
        [][int(q[0])]
    except IndexError:
        broken()
        raise


def fails_whole(x, q):
    it = rounds(x)
    next(it)
    broken()
    return torch.linalg.cholesky(x @ x.T - int(q.sum()))


RAISING = (raises_after_a_break, raised_in_finally, raised_again, fails_whole)


@pytest.mark.parametrize("program", RAISING, ids=lambda program: program.__name__)
def test_locals_die_with_the_traceback_of_an_exception(program):
    told = []
    for called in (program, optimize(lambda module, examples: module.forward)(program)):
        LOG.clear()
        gc.collect()
        gc.disable()
        try:
            for numbers in ([1, 2], [-1, -2], [1, 2]):
                try:
                    called(torch.ones(2, 2), torch.tensor(numbers))
                except (ValueError, ZeroDivisionError, IndexError, RuntimeError) as error:
                    LOG.append(type(error).__name__)
                LOG.append("called")
        finally:
            gc.enable()
        told.append(list(LOG))
    assert told[0] == told[1]
    assert told[0].count("ends") == 3


def test_the_frame_that_handles_an_exception_is_in_its_traceback():
    """Its variables live as long as the exception does."""

    def program(x, kept):
        local = [x.sum().item()]
        try:
            x = x + 1
            raise ValueError("kept")
        except ValueError as error:
            broken()
            kept.append(error)
            local.append(2)
        return x

    kept: list[ValueError] = []
    optimize(lambda module, examples: module.forward)(program)(torch.ones(2), kept)
    entry = kept[0].__traceback__
    assert entry is not None, "what the program handles is not the translator's"
    assert entry.tb_next is None
    assert entry.tb_frame.f_locals["local"] == [2.0, 2]


class Box:
    """What a weak reference is made to."""


def told_at_the_end(x):
    box = Box()
    ref = weakref.ref(box, lambda dead: LOG.append("gone"))
    return x + 1


def asked_before_the_end(x):
    box = Box()
    ref = weakref.ref(box, lambda dead: LOG.append("gone"))
    LOG.append(ref() is box)
    return x + 1


def held_twice(x):
    box = Box()
    ref = weakref.ref(box, lambda dead: LOG.append("gone"))
    other = box
    return x + 1


def of_two_boxes(x):
    first, second = Box(), Box()
    refs = (
        weakref.ref(second, lambda dead: LOG.append("second")),
        weakref.ref(first, lambda dead: LOG.append("first")),
    )
    broken()
    return x + len(refs)


@pytest.mark.parametrize(
    ("program", "logged"),
    [(told_at_the_end, True), (asked_before_the_end, True), (held_twice, False), (of_two_boxes, True)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_locals_die_in_the_order_of_the_variables(program, logged):
    """A callback is called where the object dies before the reference to it."""
    told = []
    for called in (program, optimize(lambda module, examples: module.forward)(program)):
        LOG.clear()
        for _ in range(3):
            called(torch.ones(2))
        told.append(list(LOG))
    assert told[0] == told[1]
    assert any(isinstance(entry, str) for entry in told[0]) is logged


class Told:
    """It says when it dies."""

    def __del__(self):
        LOG.append("dies")


def holds_one(x):
    told = Told()
    broken()
    return x + 1


def gives_one_away(x):
    told = Told()
    broken()
    x = x + 1
    broken()
    del told
    LOG.append("deleted")
    return x


def leaves_a_loop(x):
    for y in rounds(x):
        if broken(y).sum() > 0:
            break
    LOG.append("left")
    return y


def calls(function):
    def program(x):
        y = function(x)
        LOG.append("returned")
        return y * 2

    program.__name__ = function.__name__
    return program


@pytest.mark.parametrize(
    "program", [*map(calls, (holds_one, gives_one_away, leaves_a_loop))], ids=lambda p: p.__name__
)
def test_what_a_called_function_holds_dies_when_it_lets_go(program):
    """Also where the graph ended in the call, and the function went on inside of a graph that follows."""
    told = []
    for called in (program, optimize(lambda module, examples: module.forward)(program)):
        LOG.clear()
        for _ in range(3):
            called(torch.ones(2))
        told.append(list(LOG))
    assert told[0] == told[1]
    assert {"dies", "ends"} & set(told[0])


class Own(Exception):
    pass


def asked(p):
    try:
        if p > 1:
            raise Own(p)
    except Own as e:
        p = broken(p)
        return repr(e)


def handled_in_a_call(x, p):
    told = asked(p)
    return x + len(told)


def left_by_an_exception(x, p):
    try:
        if len((x > 0).tolist()) > 1:
            raise Own(int((x > 0).sum()))
    except Own as e:
        LOG.append(repr(e))
        held = Own(int(p.sum()) % 4)
        weakref.finalize(held, LOG.append, "dies")
    x()


def found_by_data(x, p):
    held = Own()
    weakref.finalize(held, LOG.append, "dies")
    broken()
    it = rounds(x * 2)
    next(it)
    broken()
    try:
        if x.sum() > 0:
            raise Own(p)
    except Own as e:
        LOG.append(str(len(e.args)))


@pytest.mark.parametrize(
    ("program", "given"),
    [(handled_in_a_call, 3), (left_by_an_exception, torch.arange(3)), (found_by_data, 3)],
)
def test_a_frame_that_a_traceback_keeps_holds_what_eagers_holds(program, given):
    """A frame that hands over drops what the rest replaces; what a handler stored goes on to the rest, and what a frame
    is run again with dies in the order of its variables."""
    told = []
    for called in (program, optimize(lambda module, examples: module.forward)(program)):
        for _ in range(3):
            LOG.clear()
            gc.collect()
            gc.disable()
            try:
                called(torch.ones(2), given)
            except TypeError as error:
                LOG.append("raised")
                del error
            LOG.append(str(sum(type(found) is Own for found in gc.get_objects())))
            gc.enable()
            told.append(list(LOG))
    assert told[0]
    assert all(one == told[0] for one in told)


def deleted_tensor():
    x, told = torch.ones(2), []
    reference = weakref.ref(x, lambda _: told.append(1))
    del x
    return list(told), reference() is None


def replaced_tensor():
    x, told = torch.ones(2), []
    reference = weakref.ref(x, lambda _: told.append(1))
    x = x + 1
    return list(told), reference() is None, x.tolist()


def held_twice():
    x, told = torch.ones(2), []
    reference = weakref.ref(x, lambda _: told.append(1))
    other = x
    del x
    seen = list(told)
    del other
    return seen, list(told), reference() is None


def left_at_return():
    def called():
        x, told = torch.ones(2), []
        return weakref.ref(x, lambda _: told.append(1)), x + 1, told

    reference, result, told = called()
    return reference() is None, list(told), result.tolist()


@pytest.mark.parametrize("program", [deleted_tensor, replaced_tensor, held_twice, left_at_return])
@pytest.mark.parametrize("is_inlined", [False, True])
def test_a_tensor_dies_where_the_program_drops_it(program, is_inlined):
    """So its weak references and their callbacks say, in the compiled function and in one that it calls."""

    def calling():
        return program()

    compiled = optimize(lambda module, examples: module.forward)(calling if is_inlined else program)
    expected = program()
    assert [compiled(), compiled()] == [expected, expected]


class Thing:
    pass


@pytest.mark.parametrize("make", [Thing, lambda: torch.ones(2)], ids=["object", "tensor"])
def test_whether_an_object_is_weakly_referenced_may_change(make):
    def f(x, things, log):
        thing = things.pop()
        broken()
        y = x + 1
        del thing
        log.append("after")
        return y

    logs = []
    for program in (f, optimize(lambda graph, inputs: graph.forward)(f)):
        log: list[str] = []
        for is_known in (False, True, False):
            things = [make()]
            known = weakref.ref(things[0], lambda _, log=log: log.append("died")) if is_known else None
            program(torch.ones(2), things, log)
            assert known is None or known() is None
        logs.append(log)
    assert logs[0] == logs[1] == ["after", "died", "after", "after"]


@pytest.mark.parametrize("make", [Thing, lambda: torch.ones(2)], ids=["object", "tensor"])
def test_what_a_dropped_object_held_is_gone(make):
    def wrapped():
        return inner()

    def inner():
        holder, held = make(), Thing()
        holder.held = held
        known = weakref.ref(held)
        del held
        before = known() is not None
        del holder
        return before, known() is None

    assert optimize(lambda graph, inputs: graph.forward)(wrapped)() == wrapped() == (True, True)


LAYER = torch.nn.LSTM(3, 3)


def holder_is_dropped(x):
    held = broken([x])
    y = x + 1
    held = None
    return LAYER(y)[0], held


def test_what_a_variable_has_cannot_have_died(same):
    """A layer with weights of one memory has weak references to them, and a variable for each that it asks."""
    same(holder_is_dropped, (torch.ones(2, 1, 3),), operators=LIBRARY, breaks=1)


def list_is_overwritten(x):
    thing = Thing()
    known, held = weakref.ref(thing), [thing]
    del thing
    broken()
    held = None  # nothing reads it any more
    return known() is None, x + 1


def holder_is_overwritten(x):
    holder, thing = Thing(), Thing()
    holder.thing, known = thing, weakref.ref(thing)
    del thing
    broken()
    y = x * 2
    holder = 3
    return known() is None, y


@pytest.mark.parametrize("program", [list_is_overwritten, holder_is_overwritten])
def test_what_is_overwritten_is_let_go_where_the_graph_ends(program):
    """Whether a variable is deleted or has another value that nothing reads: what it held dies before the next call."""
    captured = optimize(lambda graph, inputs: graph.forward)(program)
    for _ in range(2):
        assert captured(torch.ones(2))[0] is program(torch.ones(2))[0] is True
