# ruff: noqa: F821
"""Exceptions: handlers that do not match, nested ones, causes, what with blocks ask for."""

import torch

X = torch.arange(6.0).reshape(2, 3) + 1


class Oops(Exception):
    pass


def test_a_handler_that_does_not_match_keeps_the_outer_exception(same):
    def f(x):
        try:
            try:
                raise Oops("outer")
            except Oops:
                try:
                    try:
                        raise KeyError("inner")
                    except IndexError:
                        x = x * 0
                except KeyError:
                    x = x + 1
                raise
        except Oops as error:
            return x, error.args

    same(f, (X,), graphs=1, eager=0)


def test_finally_and_return(same):
    def f(x):
        for i in range(4):
            try:
                if i == 2:
                    return x + i
                x = x * 2
            finally:
                x = x + 10
        return x

    same(f, (X,), graphs=1, eager=0)


def test_return_in_finally_drops_the_exception(same):
    def f(x):
        try:
            raise Oops("lost")
        finally:
            return x + 1  # noqa: B012

    same(f, (X,), graphs=1, eager=0)


def test_else_and_loop_control(same):
    def f(x):
        log = []
        for i in range(5):
            try:
                if i == 1:
                    continue
                if i == 3:
                    break
            except Oops:
                log.append("never")
            else:
                log.append(i)
            finally:
                log.append(-i)
        else:
            log.append("end")
        return x + len(log), log

    same(f, (X,), graphs=1, eager=0)


def test_cause(same):
    def f(x):
        try:
            try:
                raise KeyError("first")
            except KeyError as error:
                raise Oops("second") from error
        except Oops as error:
            return x + 1, type(error.__cause__), error.__suppress_context__

    same(f, (X,), graphs=1, eager=0)


def test_wrong_cause(same):
    def f(x):
        try:
            raise Oops("second") from 3
        except TypeError as error:
            return x + 1, error.args

    same(f, (X,), graphs=1, eager=0)


def test_wrong_raise(same):
    def f(x):
        found = []
        for thing in (3, int, None):
            try:
                raise thing
            except TypeError as error:
                found.append(error.args)
        return x + 1, found

    same(f, (X,), graphs=1, eager=0)


def test_wrong_except(same):
    def f(x):
        try:
            try:
                raise Oops
            except (KeyError, int):
                x = x + 1
        except TypeError as error:
            return x, error.args

    same(f, (X,), graphs=1, eager=0)


def test_not_a_context_manager(same):
    class Half:
        def __enter__(self):
            return self

    def f(x):
        found = []
        for thing in (Half(), 3):
            try:
                with thing:
                    x = x + 1
            except TypeError as error:
                found.append(str(error).replace(Half.__module__, "m"))
        return x * 2, found

    same(f, (X,), eager=0)


def test_unbound_names(same):
    def f(x, flag):
        found = []

        def inner():
            return shared

        try:
            inner()
        except NameError as error:
            found.append(str(error))
        try:
            found.append(shared)
        except UnboundLocalError as error:
            found.append(str(error))
        if flag:
            shared = local = 1
        try:
            del local
        except UnboundLocalError as error:
            found.append(str(error))
        try:
            del shared
        except UnboundLocalError as error:
            found.append(str(error))
        return x + 1, found

    same(f, (X, False), (X, True), eager=0)


def test_except_star_runs_eagerly(same):
    def f(x):
        try:
            raise ExceptionGroup("many", [Oops("a"), KeyError("b")])
        except* Oops as group:
            x = x + len(group.exceptions)
        except* KeyError:
            x = x * 2
        return x

    same(f, (X,))
    assert same.capture.report.eager or any(r.stopped for _, r in same.capture.report.replacements)


def test_except_star_that_nothing_enters_is_captured(same):
    def f(x):
        try:
            x = x + 1
        except* Oops:
            x = x * 2
        return x

    same(f, (X,), graphs=1, eager=0)


def test_a_stop_that_leaves_a_generator_is_the_cause(same):
    def numbers():
        yield 1
        raise StopIteration(2)

    def program(x):
        try:
            return list(numbers())
        except RuntimeError as error:
            return x, str(error), error.__cause__, error.__context__ is error.__cause__, error.__cause__.value

    same(program, (torch.ones(2),))


def test_what_torch_refuses_without_a_tensor_is_caught_where_it_is_refused(same):
    def tried(function, *args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            return type(error).__name__, str(error)

    def f(x):
        refused = [
            tried(torch.autocast, "nowhere"),
            tried(torch.autocast, 3),
            tried(torch.autocast),
            tried(torch.get_autocast_dtype, "nowhere"),
            tried(torch._foreach_add_, [], 1),
            tried(torch._foreach_sqrt, []),
        ]
        return refused, x + 1

    same(f, (torch.ones(2),))
