"""The code in which frames live while an instruction of the innermost one runs in Python."""

import functools
import sys

import pytest
import torch

from dynamo_capture import _eval_frame, optimize, run_graph
from dynamo_capture._eval_frame import Suspended
from dynamo_capture.bytecode import decode
from dynamo_capture.codegen.bridges import consumed_by_call, first_of_call
from dynamo_capture.hook import frame_hook
from dynamo_capture.runtime.suspension import answered, instance

X = torch.ones(2, 3)


def calls(x):
    return print(x), max(x, x, key=x), max(*x)


def test_a_call_starts_where_it_is_prepared():
    body = decode(calls.__code__)
    for index, instruction in enumerate(body.instructions):
        start = first_of_call(body, index)
        names = [one.opname for one in body.instructions[start:index]]
        assert set(names) <= {"KW_NAMES", "PRECALL"}
        if instruction.opname == "CALL" and sys.version_info < (3, 12):
            assert names[-1] == "PRECALL"


def test_a_call_takes_its_arguments_and_what_it_calls():
    taken = [consumed_by_call(one) for one in decode(calls.__code__).instructions if "CALL" in one.opname]
    assert set(taken) - {0} >= {3}
    assert consumed_by_call(decode(calls.__code__).instructions[0]) == 0


def test_suspended_frames_go_on_when_they_are_called():
    assert Suspended(lambda a, b: a + b, 1, 2)() == 3


class Told:
    def __init__(self, log, name):
        self.log, self.name = log, name

    def __del__(self):
        self.log.append(self.name)


def test_arguments_move_into_the_frame_that_is_called():
    """Nothing but its variables holds them then: what it drops dies there, the rest in the order of the variables."""
    log = []

    def taking(first, second, third):
        del second
        log.append("runs")

    with frame_hook.region(lambda frame, versions: None):
        _eval_frame.rest(taking, *(Told(log, n) for n in range(3)))()
    assert log == [1, "runs", 0, 2]


def test_a_call_is_made_once_and_takes_nothing():
    rest = _eval_frame.rest(lambda a: a, [])
    with pytest.raises(TypeError, match="takes no arguments"):
        rest(1)
    with frame_hook.region(lambda frame, versions: None):
        assert rest() == []
        with pytest.raises(TypeError, match="called once"):
            rest()


def test_what_a_suspended_frame_takes_can_be_read_and_dies_in_its_order():
    log = []
    suspended = Suspended(lambda a, b, c: None, *(Told(log, n) for n in range(3)))
    assert [one.name for one in suspended.args] == [0, 1, 2]
    assert len(suspended.args) == 3
    with pytest.raises(IndexError):
        suspended.args[3]
    del suspended
    assert log == [0, 1, 2]


def test_the_cells_of_a_rest_are_let_go_in_their_order():
    log = []

    def made():
        a, b, c = (Told(log, n) for n in range(3))
        return _eval_frame.rest(lambda: (a, b, c)[0].name)

    assert made()() == 0
    assert log == [0, 1, 2]


def test_a_class_gives_its_instance_whatever_init_is_in_the_middle_of():
    made, log = object(), []
    rest = Suspended(log.append, "rest")
    suspended = answered(lambda: rest, instance, made)
    assert type(suspended) is Suspended
    assert log == []
    assert suspended() is made
    assert log == ["rest"]
    assert answered(lambda: None, instance, made) is made
    with pytest.raises(TypeError, match="should return None, not 'int'"):
        answered(lambda: 3, instance, made)


def test_the_bridges_of_a_break_are_made_once():
    """Later calls run the same code: nothing is asked of the capture any more."""
    asked = []

    def inner(x):
        return x + x.sum().tolist()

    def outer(x):
        return inner(x) * 2

    optimizer = optimize(run_graph)
    fast = optimizer(lambda x: outer(x) - 1)
    for k in range(3):
        fast(X + k)
    callback = optimizer._callback
    original = callback._callback
    callback._callback = lambda frame, count: asked.append(frame.code.co_name) or original(frame, count)
    for k in range(3, 6):
        assert torch.equal(fast(X + k), outer(X + k) - 1)
    assert asked == []


def test_traceback_names_the_users_functions_and_lines():
    def inner(x):
        n = x.sum().tolist()
        return torch.ones(3)[int(n)]

    def outer(x):
        return inner(x) + 1

    fast = optimize(run_graph)(outer)
    with pytest.raises(IndexError) as caught:
        fast(X * 100)
    names = [entry.name for entry in caught.traceback]
    assert "inner" in names
    entry = next(entry for entry in caught.traceback if entry.name == "inner")
    assert entry.lineno + 1 == inner.__code__.co_firstlineno + 2
    assert not frame_hook.is_installed()


def test_partial_functions_and_bound_methods_are_bridged():
    class Thing:
        def method(self, x, n):
            return x * n + x.sum().tolist()

    bound = functools.partial(Thing().method, n=2)
    fast = optimize(run_graph)(lambda x: bound(x) + 1)
    assert torch.equal(fast(X), X * 2 + 7)
    graphs = [r.graph for _, r in fast.__fxstack_capture__.report.replacements if r.graph is not None]
    assert len(graphs) == 2
