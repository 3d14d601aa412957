"""``with``: grad modes, managers of the program and of ``contextlib``."""

import contextlib

import torch

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) + 1


def test_no_grad(same):
    def f(x):
        with torch.no_grad():
            y = x * 2
        return y, x * 3

    same(f, (X.clone().requires_grad_(),))


def test_enable_grad_and_set_grad_enabled(same):
    def f(x):
        with torch.set_grad_enabled(False):
            y = x * 2
            with torch.enable_grad():
                z = x * 4
        return y, z, torch.is_grad_enabled()

    same(f, (X.clone().requires_grad_(),))


def test_no_grad_decorator(same):
    @torch.no_grad()
    def g(x):
        return x * 2

    same(lambda x: (g(x), x * 3), (X.clone().requires_grad_(),))


def test_grad_mode_outside_is_guarded(forward):
    def f(x):
        return x * 2

    fast = optimize(forward)(f)
    given = X.clone().requires_grad_()
    assert fast(given).requires_grad
    with torch.no_grad():
        assert not fast(given).requires_grad
    assert fast(given).requires_grad


def test_grad_mode_left_changed(same):
    def f(x):
        torch.set_grad_enabled(False)
        y = x * 2
        torch._C._set_grad_enabled(True)
        return y

    same(f, (X.clone().requires_grad_(),))


def test_context_manager_class(same, recorder):
    def f(x):
        with recorder() as r:
            y = x + len(r.log)
        return y, r.log

    same(f, (X,))


def test_context_manager_argument(same, recorder):
    def f(x, r):
        with r as entered:
            y = x + len(entered.log)
        return y

    same(f, (X, recorder()), (X, recorder()))


def test_context_manager_function(same, noted):
    def f(x):
        log = []
        with noted(log) as n:
            x = x + n
            log.append("body")
        return x, log

    same(f, (X,))


def test_context_manager_sees_exception(same, recorder):
    def f(x, swallow):
        r = recorder(swallow)
        try:
            with r:
                raise ValueError("inside")
        except ValueError as error:
            return x, r.log, str(error)
        return x + 1, r.log

    same(f, (X, True), (X, False))


def test_context_manager_function_sees_exception(same, noted):
    def f(x):
        log = []
        try:
            with noted(log):
                raise KeyError("k")
        except KeyError:
            log.append("caught")
        return x, log

    same(f, (X,))


def test_suppress_and_nullcontext(same):
    def f(x):
        with contextlib.suppress(ValueError), contextlib.nullcontext(3) as n:
            x = x + n
            raise ValueError
        return x

    same(f, (X,))


def test_exit_stack(same, noted):
    def f(x):
        log = []
        with contextlib.ExitStack() as stack:
            stack.enter_context(noted(log))
            stack.callback(log.append, "callback")
            x = x + 1
        return x, log

    same(f, (X,))
