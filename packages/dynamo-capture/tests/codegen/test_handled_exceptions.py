"""A graph break in a block that handles an exception: the exception is handled as ever, and the rest is compiled."""

import sys
import traceback

import pytest
import torch

from dynamo_capture import optimize

X = torch.arange(3.0) + 1


class Oops(Exception):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code


def handled(x):
    try:
        x = x + 1
        raise Oops(3)
    except Oops as error:
        total = x.sum().item()
        found = sys.exc_info()[1] is error, error.code, total
    return x * 2, found


def raised_again(x):
    try:
        x = x + 1
        raise Oops(4)
    except Oops:
        print(end="")
        try:
            raise
        except Oops as again:
            return x * 2, again.code


def context(x):
    try:
        x = x + 1
        raise KeyError("first")
    except KeyError:
        print(end="")
        try:
            raise Oops(5)
        except Oops as error:
            return x * 2, repr(error.__context__)


def escapes(x):
    try:
        try:
            x = x + 1
            raise KeyError("first")
        finally:
            print(end="")
            x = x * 2
    except KeyError as error:
        x = x + len(error.args)
    return x.cos()


def nested(x):
    try:
        x = x + 1
        raise KeyError("outer")
    except KeyError as outer:
        try:
            x = x * 2
            raise Oops(6)
        except Oops as inner:
            print(end="")
            found = inner.__context__ is outer, sys.exc_info()[1] is inner
        found += (sys.exc_info()[1] is outer,)
    return x + 1, found, sys.exc_info()


def in_a_loop(x):
    codes = []
    for number in range(6):
        try:
            x = x + 1
            if number % 2:
                raise Oops(number)
        except Oops as error:
            codes.append(error.code)
            print(end="")
            continue
        x = x * 2
    return x, codes


def unbound_name(x):
    try:
        x = x * 3
        raise Oops(7)
    except Oops as error:
        print(end="")
        x = x + error.code
    try:
        return x, error  # noqa: F821
    except UnboundLocalError as missing:
        return x, type(missing).__name__


def inner_function(x):
    return handled(x * 2)[0] + 1


class Manager:
    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        print(end="")
        self.seen = kind, value.args, trace is None
        return True


def left_by_a_manager(x):
    manager = Manager()
    with manager:
        x = x + 1
        raise Oops(8)
    return x * 2, manager.seen


def line_of_the_error(x):
    try:
        x = x + 1
        raise Oops(9)
    except Oops as error:
        print(end="")
        frames = traceback.extract_tb(error.__traceback__)
    return x, [(frame.name, frame.lineno) for frame in frames]


def called_in_a_handler(x):
    try:
        raise Oops(10)
    except Oops as error:
        result = handled(x)
        return result, sys.exc_info()[1] is error


PROGRAMS = [
    handled, raised_again, context, escapes, nested, in_a_loop, unbound_name, inner_function, left_by_a_manager,
    line_of_the_error, called_in_a_handler,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_eager(program):
    optimizer = optimize(lambda graph, inputs: graph.forward)
    compiled = optimizer(program)
    for step in range(3):
        assert str(compiled(X + step)) == str(program(X + step))
        assert sys.exc_info() == (None, None, None)
    assert not optimizer.report.eager
    assert any(replacement.graph is not None for _, replacement in optimizer.report.replacements)


def test_what_the_caller_handles_is_handled_afterwards():
    compiled = optimize(lambda graph, inputs: graph.forward)(handled)
    seen = []
    try:
        raise KeyError("caller")
    except KeyError as error:
        compiled(X)
        seen.append(sys.exc_info()[1] is error)
    assert seen == [True]


def test_the_rest_after_the_block_is_compiled():
    def f(x):
        try:
            x = x + 1
            raise Oops(12)
        except Oops:
            print(end="")
        return x.sin().cos()

    optimizer = optimize(lambda graph, inputs: graph.forward)
    assert torch.equal(optimizer(f)(X), f(X))
    sizes = [len(r.graph.graph.nodes) for _, r in optimizer.report.replacements if r.graph is not None]
    assert sizes == [3, 4]


def test_what_leaves_the_function_has_its_chain():
    def f(x):
        try:
            x = x + 1
            raise KeyError("first")
        except KeyError as error:
            print(end="")
            raise Oops(11) from error

    compiled = optimize(lambda graph, inputs: graph.forward)(f)
    for run in (f, compiled):
        with pytest.raises(Oops) as caught:
            run(X)
        assert repr(caught.value.__cause__) == repr(caught.value.__context__) == "KeyError('first')"
