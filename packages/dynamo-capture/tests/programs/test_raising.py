"""Exception tables: what is raised, caught, chained, re-raised, and what has happened by then."""

import collections
import contextlib
import io

import pytest
import torch

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) + 1


class Oops(Exception):
    def __init__(self, code, text=""):
        super().__init__(text)
        self.code = code


class Worse(Oops):
    """Raised where a more special handler exists."""


def test_finally_runs_on_every_way_out(whole):
    def f(x, kind):
        log = []
        for _ in range(2):
            try:
                log.append("try")
                if kind == "continue":
                    continue
                if kind == "break":
                    break
                if kind == "return":
                    return x, log
            finally:
                log.append("finally")
        return x + 1, log

    whole(f, (X, "continue"), (X, "break"), (X, "return"), (X, "fall"))


def test_finally_replaces_the_exception(whole):
    def f(x):
        try:
            try:
                raise ValueError("first")
            finally:
                raise KeyError("second")
        except KeyError as error:
            return x, type(error.__context__).__name__, str(error.__context__)

    whole(f, (X,))


def test_nested_finally_order(whole):
    def f(x, n):
        log = []
        try:
            try:
                try:
                    if n:
                        raise Oops(n)
                finally:
                    log.append(1)
            finally:
                log.append(2)
        except Oops as error:
            log.append(error.code)
        finally:
            log.append(3)
        return x * len(log), log

    whole(f, (X, 0), (X, 5))


def test_handlers_are_tried_in_order(whole):
    def f(x, cls):
        try:
            raise cls(3)
        except Worse:
            return x + 1
        except Oops:
            return x + 2
        except Exception:
            return x + 3

    whole(f, (X, Oops), (X, Worse), (X, ValueError))


def test_handler_class_is_computed(whole):
    def f(x, kinds):
        try:
            raise KeyError("k")
        except kinds as error:
            return x, str(error)

    whole(f, (X, KeyError), (X, (ValueError, LookupError)), (X, Exception))


def test_unmatched_exception_leaves(whole):
    def f(x):
        try:
            raise Oops(1, "left")
        except ValueError:
            return x

    whole(f, (X,), (X,))


def test_bare_except(whole):
    def f(x, d):
        try:
            return x + d["a"]
        except:  # noqa: E722
            return x

    whole(f, (X, {"a": 1}), (X, {}))


def test_exception_name_is_deleted_after_the_handler(whole):
    def f(x):
        try:
            raise ValueError
        except ValueError as error:
            kept = error
        try:
            error  # noqa: F821
        except UnboundLocalError:
            return x, type(kept).__name__

    whole(f, (X,))


def test_chain_of_causes_leaves(whole):
    def f(x, n):
        try:
            {}[n]
        except KeyError as error:
            raise Oops(n, "wrapped") from error

    whole(f, (X, 1), (X, 2))


def test_from_none(whole):
    def f(x):
        try:
            raise ValueError("hidden")
        except ValueError:
            raise Oops(1, "shown") from None

    whole(f, (X,))


def test_context_of_an_exception_in_a_handler(whole):
    def f(x):
        try:
            x.nope
        except AttributeError:
            [][3]

    whole(f, (X,))


def test_reraise_of_the_named_exception(whole):
    def f(x, n):
        log = []
        try:
            try:
                if n:
                    raise Oops(n, "again")
            except Oops as error:
                log.append(error.code)
                raise error
        except Oops as error:
            return x + error.code, log
        return x, log

    whole(f, (X, 0), (X, 2))


def test_exception_attributes_are_set(whole):
    def f(x):
        error = ValueError("a", 2)
        error.note = x
        error.args = (*error.args, 3)
        try:
            raise error
        except ValueError as caught:
            return caught is error, caught.note + 1, caught.args

    whole(f, (X,))


def test_add_note(whole):
    def f(x):
        try:
            raise ValueError("a")
        except ValueError as error:
            error.add_note("while testing")
            return x, error.__notes__

    whole(f, (X,))


def test_a_note_is_text(whole):
    def f(x):
        try:
            ValueError("a").add_note(len)
        except TypeError as error:
            return x, str(error)

    whole(f, (X,))


def test_bounds_of_index_are_numbers(same):
    def f(x, items):
        found = []
        for search in (items.index, x.shape.index, list(x.shape).index, collections.deque(x.shape).index):
            try:
                search(3, 0, None)
            except TypeError as error:
                found.append(str(error))
        return x, found

    same(f, (X, [X, 3]))


def test_exception_crosses_several_calls(whole):
    def low(x, n):
        if n > 1:
            raise Oops(n, "deep")
        return x + n

    def middle(x, n, log):
        try:
            return low(x, n)
        finally:
            log.append("middle")

    def f(x, n):
        log = []
        try:
            x = middle(x, n, log)
        except Oops as error:
            return x, error.code, log
        return x, log

    whole(f, (X, 1), (X, 3))


def test_exception_in_a_comprehension(whole):
    def check(i):
        if i == 2:
            raise Oops(i)
        return i

    def f(x, n):
        try:
            return x, [check(i) for i in range(n)]
        except Oops as error:
            return x + error.code

    whole(f, (X, 2), (X, 4))


def test_mutations_before_an_exception_stay(whole):
    def f(x, items, d):
        items.append(x + 1)
        d["k"] = len(items)
        raise Oops(1)

    whole(f, (X, [], {}), (X, [1], {"k": 0}))


def test_in_place_write_before_an_exception_stays(whole):
    def f(x, n):
        x.add_(1)
        if n:
            raise Oops(n)
        x.mul_(2)
        return x

    whole(f, (X, 0), (X, 1))


def test_exception_from_a_tensor_method_keeps_its_text(whole):
    whole(lambda x, n: x.reshape(n, n), (X, 2), (X, 5))


def test_broadcasting_error_is_caught(whole):
    def f(x, y):
        try:
            return x + y
        except RuntimeError as error:
            return x, "size" in str(error)

    whole(f, (X, X), (X, torch.ones(5)))


def test_type_errors_of_calls(whole):
    def g(a, b, *, c):
        return a + b + c

    def f(x, kind):
        if kind == 0:
            return g(x, 1, c=2)
        if kind == 1:
            return g(x)
        if kind == 2:
            return g(x, 1)
        if kind == 3:
            return g(x, 1, 2, c=3)
        if kind == 4:
            return g(x, 1, c=1, d=2)
        return g(x, a=1, b=2, c=3)

    whole(f, *[(X, kind) for kind in range(6)])


@pytest.mark.parametrize("value", [None, 3, "ab", [1], {"a": 1}])
def test_type_errors_of_operators(whole, value):
    def f(x, v):
        found = []
        for attempt in (
            lambda: v + None,
            lambda: v[0],
            lambda: v(),
            lambda: len(v),
            lambda: iter(v),
            lambda: v < None,
            lambda: -v,
        ):
            try:
                attempt()
                found.append("fine")
            except Exception as error:
                found.append((type(error).__name__, str(error)))
        return x, found

    whole(f, (X, value))


def test_errors_of_unpacking(whole):
    def f(x, items):
        try:
            a, b = items
        except (ValueError, TypeError) as error:
            return x, str(error)
        return x + a, b

    whole(f, (X, (1, 2)), (X, (1,)), (X, [1, 2, 3]), (X, 5))


def test_exception_hierarchy_of_lookups(whole):
    def f(x, what, key):
        try:
            return x, what[key]
        except LookupError as error:
            return x, type(error).__name__, error.args

    whole(f, (X, [1], 3), (X, {}, 3), (X, (1, 2), 1), (X, "abc", 9))


def test_stop_iteration_value(whole):
    def gen():
        yield 1
        return 7

    def f(x):
        g = gen()
        next(g)
        try:
            next(g)
        except StopIteration as stop:
            return x + stop.value

    whole(f, (X,))


def test_exception_is_returned_and_stored(whole):
    def f(x, errors):
        try:
            raise Oops(4, "kept")
        except Oops as error:
            errors.append(error)
            return x, error.code

    whole(f, (X, []), (X, [1]))


def test_exception_group_is_left_to_python(same):
    same(_no_return_in_group, (X, 0), (X, 1))


def _no_return_in_group(x, n):
    found = []
    try:
        if n:
            raise ExceptionGroup("many", [ValueError("a"), KeyError("b")])
    except* ValueError as group:
        found.append(len(group.exceptions))
    except* KeyError:
        found.append("key")
    return x + 1, found


def test_assertion_messages(whole):
    scope = {}
    exec("def f(x, n):\n    assert n\n    assert n > 1, ('small', n)\n    return x + n", scope)
    whole(scope["f"], (X, 0), (X, 1), (X, 2))


def test_raise_of_no_exception(whole):
    def f(x):
        raise x.shape

    whole(f, (X,))


def test_suppress_keeps_what_was_done(whole):
    def f(x, items):
        with contextlib.suppress(KeyError, IndexError):
            items.append(1)
            items[5]
            items.append(2)
        return x + len(items)

    whole(f, (X, []), (X, [1, 2, 3, 4, 5]))


def test_loop_over_failing_parts(whole):
    def f(x, parts):
        good, bad = [], []
        for part in parts:
            try:
                good.append(x / part if part else 1 // part)
            except ZeroDivisionError as error:
                bad.append(str(error))
                continue
            else:
                good.append("else")
        return good, bad

    whole(f, (X, [1, 0, 2]), (X, [0, 0]))


def test_value_that_is_only_passed_on_must_be_there(whole):
    def f(x, d, o):
        try:
            return x, d["a"], o.v
        except (KeyError, AttributeError) as error:
            return x + 1, str(error)

    class Bag:
        def __init__(self, **kw):
            vars(self).update(kw)

    whole(
        f, (X, {"a": 1}, Bag(v=1)), (X, {"b": 1}, Bag(v=1)), (X, {"a": 2}, Bag()), (X, {"a": None}, Bag(v="s")),
        (X, {1: 2}, Bag(w=1)),
    )  # fmt: skip


def test_a_traceback_has_one_entry_for_each_function():
    def program(x, n):
        y = x + 1
        print(n)
        return [y][n]

    def scaled(x, n):
        return x * n, str(n)

    def lines(function, *args):
        with (
            contextlib.redirect_stdout(io.StringIO()),
            pytest.raises((IndexError, OverflowError, RuntimeError)) as raised,
        ):
            function(*args)
        return [(entry.name, entry.lineno) for entry in raised.traceback[1:]]

    fast = optimize(lambda graph, inputs: graph.forward)(program)
    for _ in range(2):
        assert lines(fast, X, 1) == lines(program, X, 1)
    fast = optimize(lambda graph, inputs: graph.forward)(scaled)
    for n in (1, 2, 3):
        fast(X, n)
    assert lines(fast, X, 2**70) == lines(scaled, X, 2**70)
