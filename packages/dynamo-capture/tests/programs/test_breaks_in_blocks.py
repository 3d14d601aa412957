"""Graph breaks inside ``with`` and ``try``, of the frame that breaks and of those that called it."""

import contextlib
import sys

import pytest
import torch

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) + 1


class Oops(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def test_break_in_with(same):
    def f(x):
        with torch.no_grad():
            y = x * 2
            n = unknown(y.sum())
            z = y + n
        return z, x * n

    same(f, (X.clone().requires_grad_(),))


def test_break_in_a_context_manager_of_the_program(same, recorder):
    def f(x):
        r = recorder()
        with r:
            x = x + unknown(x.sum())
        return x, r.log

    same(f, (X,))


def test_break_in_a_generator_context_manager(same, noted):
    def f(x):
        log = []
        with noted(log):
            x = x + unknown(x.sum())
        return x, log

    same(f, (X,))


def test_break_in_try(same):
    def f(x, n):
        log = []
        try:
            y = x + unknown(x.sum())
            log.append("try")
            if n:
                raise Oops(1, "after the break")
            log.append("no raise")
        except Oops as error:
            log.append(error.code)
            y = x - unknown(x.sum())
        finally:
            log.append("finally")
        return y, log

    same(f, (X, 0), (X, 1))


def test_break_in_except_and_finally(same):
    def f(x):
        log = []
        try:
            raise ValueError("v")
        except ValueError as error:
            log.append(str(error))
            x = x + unknown(x.sum())
        finally:
            x = x * unknown(x.mean())
            log.append("f")
        return x, log

    same(f, (X,))


def test_what_is_deleted_before_a_break_in_a_handler_stays_so(same):
    def f(x, deletes):
        try:
            raise ValueError(1)
        except ValueError:
            y = x * 2
            if deletes:
                del x
            unknown(y)
            return x

    same(f, (X, False), (X, True))


def test_a_variable_that_nothing_reads_is_passed_on_only_if_it_has_a_value(same):
    def f(x):
        for _number in [p for p in range(3) if unknown(x[0, p])]:
            with torch.no_grad():
                unknown(x.sum())
                x = x + 1
        return x

    same(f, (X,))


def unknown(value):
    """Something that no graph expresses."""
    return value.tolist()


def scaled(x):
    y = x * 2
    return y + unknown(y.sum())


def pick(items, x):
    y = x + 1
    n = items[int(unknown(x.sum())) - 21]
    return y * n


def test_the_caller_catches(same):
    def f(x, items):
        log = []
        try:
            log.append("try")
            z = pick(items, x)
            log.append("ok")
        except IndexError as error:
            log.append(str(error))
            z = x
        else:
            log.append("else")
        finally:
            log.append("finally")
        return z * 2, log

    same(f, (X, [1]), (X, []), (X + 1, [1, 2]))


def test_the_callers_caller_catches(same):
    def g(x, items, log):
        try:
            return pick(items, x) + 1
        finally:
            log.append("g")

    def f(x, items):
        log = []
        try:
            z = g(x, items, log)
        except LookupError as error:
            log.append(type(error).__name__)
            z = g(x, [5], log)
        return z, log

    same(f, (X, [1]), (X, []))


def test_nobody_catches(same):
    class Thing:
        pass

    def g(x, thing):
        thing.a = 1
        n = unknown(x.sum())
        thing.b = n
        raise ValueError("half-way")

    def f(x, thing):
        thing.log = ["before"]
        y = g(x, thing)
        thing.log.append("never")
        return y

    thing = Thing()
    with pytest.raises(ValueError, match="half-way"):
        optimize(lambda module, inputs: module.forward)(f)(X, thing)
    assert vars(thing) == {"log": ["before"], "a": 1, "b": 21.0}


def test_raised_after_the_break_and_caught_outside(same):
    def g(x, kind):
        n = unknown(x.sum())
        if kind:
            raise KeyError(n)
        return x + n

    def f(x, kind):
        try:
            return g(x, kind) * 2
        except KeyError as error:
            return x - error.args[0]

    same(f, (X, 0), (X, 1))


def test_inside_with_of_the_caller(same, recorder):
    def f(x, swallow, items):
        noting = recorder(swallow)
        z = None
        with noting as r:
            r.log.append("body")
            z = pick(items, x)
            r.log.append("after")
        return z, noting.log

    same(f, (X, True, [1]), (X, True, []), (X, False, [2]), (X, False, []))


def test_inside_no_grad_of_the_caller(same):
    def f(x):
        with torch.no_grad():
            y = scaled(x)
            inside = torch.is_grad_enabled()
        return y, x * 2, inside, torch.is_grad_enabled()

    same(f, (X.clone().requires_grad_(),))


def test_inside_no_grad_of_the_callee(same):
    def g(x):
        with torch.no_grad():
            n = unknown(x.sum())
            y = x * n
        return y + x

    same(lambda x: g(x) * 2, (X.clone().requires_grad_(),))


def test_inside_with_of_both(same):
    def g(x, log):
        with noted(log, "g"):
            return x + unknown(x.sum())

    @contextlib.contextmanager
    def noted(log, name):
        log.append("in " + name)
        try:
            yield name
        finally:
            log.append("out " + name)

    def f(x):
        log = []
        with noted(log, "f"):
            y = g(x, log)
            log.append("between")
        return y, log

    same(f, (X,))


def test_retried_until_it_works(same):
    def g(x, items, attempts):
        while True:
            try:
                n = items[int(unknown(x.sum())) - 21 + len(attempts)]
                break
            except IndexError:
                last = len(attempts)
                attempts.append("again")
                items.extend([7, 8, 9])
                continue
        return x + n, last

    same(lambda x, items: (g(x, items, []), x + 1), (X, []), (X + 1, []))


def test_a_name_bound_only_by_the_handler(same):
    def f(x, pairs):
        attempts = 0
        while True:
            try:
                n = pairs[attempts].item()
                break
            except RuntimeError:
                tried = attempts
                attempts += 1
        return x + n, tried

    pairs = [X, X, X.sum()]
    same(f, (X, pairs))
    same(lambda x, pairs: (f(x, pairs), x), (X, pairs))


def _cast(x):
    y = x @ x.T
    n = unknown(y.float().sum())
    return (y * 2) @ y, n


@pytest.mark.parametrize("depth", [1, 2])
def test_inside_autocast(same, depth):
    def f(x):
        before = torch.is_autocast_enabled("cpu")
        with torch.autocast("cpu", torch.bfloat16):
            y, n = _cast(x) if depth == 2 else (x @ x.T * unknown(x.sum()), 1)
            z = y.to(torch.float32) @ y.to(torch.float32)
            inside = torch.is_autocast_enabled("cpu")
        return y, z, n, x @ x.T, before, inside, torch.is_autocast_enabled("cpu")

    same.made(lambda: f, (X,), (X,), eager=0)


def test_inside_nested_autocast_of_caller_and_callee(same):
    def g(x):
        with torch.autocast("cpu", enabled=False):
            y = x.float() @ x.float().T
            n = unknown(y.sum())
            return y @ y, n, torch.is_autocast_enabled("cpu")

    def f(x):
        with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
            y, n, off = g(x)
            z = y @ y
        return y, z, n, off, torch.is_autocast_enabled("cpu"), torch.is_grad_enabled()

    same.made(lambda: f, (X.clone().requires_grad_(),), eager=0)


def test_raised_inside_autocast_leaves_it(same):
    def f(x):
        try:
            with torch.autocast("cpu", torch.bfloat16):
                y = x @ x.T
                if unknown(y.float().sum()) > 0:
                    raise ValueError("out")
        except ValueError:
            pass
        return x @ x.T, torch.is_autocast_enabled("cpu")

    same(f, (X,), (-X,))


def test_a_group_is_handled_in_a_handled_block_of_a_loop(same):
    """What stands between the end of the group's handlers and what they pass on cannot raise."""

    def f(x, log):
        for _ in range(2):
            try:
                try:
                    raise ExceptionGroup("drawn", [KeyError(1), ValueError(2)])
                except* KeyError as group:
                    print(end="")
                    log.append(len(group.exceptions))
            except Exception as error:
                print(end="")
                log.append(repr(error))
        return x + 1, log, sys.exc_info()

    same(f, (X, []))
