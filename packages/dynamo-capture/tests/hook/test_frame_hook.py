"""The frame hook on a running interpreter: hits, misses, skips, wrappers, regions, threads."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
import threading
import weakref
from collections.abc import Iterator
from types import CodeType
from typing import Any

import pytest

from dynamo_capture.hook import frame_hook
from dynamo_capture.hook.frame_hook import SKIP, SKIP_RECURSIVELY, Entry, FrameCallback, FrameView


def plus_one(x: int) -> int:
    return x + 1


def times_hundred(x: int) -> int:
    a = b = c = d = e = f = x  # more locals than the original
    return [a, b, c, d, e, f].count(x) * 0 + sum((a, b, c, d, e, f, x * 94))


def test_miss_then_hits(answering: Any, fresh: Any) -> None:
    f = fresh(plus_one)
    seen: list[str] = []
    wrapped = frame_hook.optimize(f, answering({f.__code__: lambda _: Entry(times_hundred.__code__)}, seen))
    assert [wrapped(i) for i in range(5)] == [0, 100, 200, 300, 400]
    assert seen == ["plus_one"]
    (entry,) = frame_hook.entries(f.__code__)
    assert entry.hits == 4
    assert f(1) == 2, "outside the region the function is itself"


def test_calls_of_a_pause_are_not_asked_about(answering: Any, fresh: Any) -> None:
    f = fresh(plus_one)
    seen: list[str] = []

    def compile_once(frame: FrameView) -> Entry | None:
        if len(seen) > 1:
            return None
        return Entry(times_hundred.__code__, lambda locals_, _: locals_[0] == 7)

    wrapped = frame_hook.optimize(f, answering({f.__code__: compile_once}, seen))
    wrapped(7)
    assert seen == ["plus_one"]
    frame_hook.pause(f.__code__, 3, id(wrapped.callback))
    assert [wrapped(i) for i in (1, 7, 2, 7, 3, 7)] == [2, 700, 3, 700, 4, 700], "what fits is used"
    assert seen == ["plus_one"]
    wrapped(4)
    assert seen == ["plus_one"] * 2
    frame_hook.pause(f.__code__, 3, id(wrapped.callback))
    wrapped.callback.cache.reset()
    wrapped(5)
    assert seen == ["plus_one"] * 3, "what is forgotten pauses no more"


def test_guards_choose_the_entry_and_the_last_used_comes_first(answering: Any, fresh: Any) -> None:
    f = fresh(plus_one)
    guards: list[int] = []

    def compile_for(frame: FrameView) -> Entry:
        wanted = frame.locals["x"] % 3

        def guard(locals_: tuple[int, ...], function: Any) -> bool:
            assert function is f
            guards.append(wanted)
            return locals_[0] % 3 == wanted

        return Entry(f.__code__.replace(co_consts=(None, 1000 * wanted)), guard, wanted)

    wrapped = frame_hook.optimize(f, answering({f.__code__: compile_for}))
    assert [wrapped(i) for i in range(6)] == [0, 1001, 2002, 3, 1004, 2005]
    assert [entry.extra for entry in frame_hook.entries(f.__code__)] == [2, 1, 0]
    guards.clear()
    assert wrapped(8) == 2008
    assert guards == [2]


def test_arguments_of_every_kind_cells_and_closures(answering: Any, fresh: Any) -> None:
    factor = 3

    def original(a: int, /, b: int, *rest: int, c: int = 5, **more: int) -> Any:
        inner = lambda: (a, factor)
        return inner(), b, rest, c, more

    def replacement(a: int, /, b: int, *rest: int, c: int = 5, **more: int) -> Any:
        inner = lambda: (a, factor)
        extra = [inner() for _ in range(2)]
        return "replaced", extra, b, rest, c, more

    f = fresh(original)
    wrapped = frame_hook.optimize(f, answering({f.__code__: lambda _: Entry(replacement.__code__)}))
    for _ in range(3):
        assert wrapped(1, 2, 3, c=4, d=6) == ("replaced", [(1, 3), (1, 3)], 2, (3,), 4, {"d": 6})


def test_what_a_callback_sees() -> None:
    outer = "cell"

    def f(a: int, *rest: int, key: str = "k", **more: int) -> str:
        return outer

    views: list[FrameView] = []
    frame_hook.optimize(f, lambda frame, count: views.append(frame))(1, 2, z=3)
    (view,) = views
    assert view.code is f.__code__
    assert view.function is f
    assert view.globals is globals()
    assert view.builtins["len"] is len
    assert [cell.cell_contents for cell in view.closure] == ["cell"]
    assert view.locals == {"a": 1, "rest": (2,), "key": "k", "more": {"z": 3}}


def test_none_asks_again_and_skip_does_not(answering: Any, fresh: Any) -> None:
    def inner(x: int) -> int:
        return x

    def outer(x: int) -> int:
        return inner(x) + inner(x)

    seen: list[str] = []
    answers: dict[CodeType, Any] = {outer.__code__: None, inner.__code__: SKIP}
    wrapped = frame_hook.optimize(outer, answering(answers, seen))
    assert wrapped(1) + wrapped(2) == 6
    assert seen == ["outer", "inner", "outer"]
    assert frame_hook.is_skipped(inner.__code__)
    answers[outer.__code__] = SKIP_RECURSIVELY
    frame_hook.skip(inner.__code__)
    seen.clear()
    third = fresh(inner)
    inner_before, inner = inner, third
    assert wrapped(1) + wrapped(2) == 6
    assert seen == ["outer"], "nothing below a recursively skipped function is asked about"
    inner = inner_before


def test_what_one_callback_skips_others_are_asked_about(answering: Any) -> None:
    def inner(x: int) -> int:
        return x

    def outer(x: int) -> int:
        return inner(x)

    for skipped in (SKIP, SKIP_RECURSIVELY):
        one, other = [], []
        refusing = frame_hook.optimize(outer, answering({inner.__code__: skipped, outer.__code__: None}, one))
        asking = frame_hook.optimize(outer, answering({inner.__code__: None, outer.__code__: None}, other))
        for _ in range(2):
            assert refusing(1) + asking(1) == 2
        assert one == ["outer", "inner", "outer"]
        assert other == ["outer", "inner"] * 2
        frame_hook.unskip(inner.__code__)
        refusing(1)
        assert one == ["outer", "inner", "outer", "outer"], "it said so itself"
        refusing.callback.cache.forget(inner.__code__)
        refusing(1)
        assert one == ["outer", "inner", "outer", "outer", "outer", "inner"]


def test_callbacks_and_guards_run_with_nothing_active(fresh: Any) -> None:
    f = fresh(plus_one)
    states: list[Any] = []

    def guard(locals_: tuple[int, ...], function: Any) -> bool:
        states.append(frame_hook.get_callback())
        return plus_one(locals_[0]) == 2

    def callback(frame: FrameView, count: int) -> Entry:
        states.extend((frame_hook.get_callback(), frame_hook.is_installed(), plus_one(1)))
        return Entry(times_hundred.__code__, guard)

    wrapped = frame_hook.optimize(f, callback)
    assert (wrapped(1), wrapped(1)) == (100, 100)
    assert states == [None, False, 2, None]


def test_generators_coroutines_classes_and_exec_pass_through(answering: Any) -> None:
    seen: list[str] = []

    def generator(n: int) -> Iterator[int]:
        yield from range(n)

    async def coroutine() -> int:
        return 7

    def body() -> Any:
        class Inner:
            value = [k + 1 for k in range(3)]

            def method(self) -> int:
                return 5

        namespace: dict[str, Any] = {}
        exec("def f():\n    return 1\nx = f()", namespace)
        try:
            coroutine().send(None)
        except StopIteration as stop:
            return list(generator(3)), Inner().method(), namespace["x"], stop.value

    wrapped = frame_hook.optimize(body, answering({}, seen))
    assert wrapped() == ([0, 1, 2], 5, 1, 7)
    assert set(seen) <= {"body", "method", "f", "<listcomp>"}
    assert {"body", "method", "f"} <= set(seen)


def test_wrapper_is_as_the_function(answering: Any) -> None:
    class Owner:
        def __init__(self) -> None:
            self.k = 10

        def method(self, x: int, *, y: int = 1) -> int:
            """Add."""
            return self.k + x + y

        plain = method

    Owner.method = frame_hook.optimize(Owner.method, answering({}))  # type: ignore[method-assign, assignment]
    owner = Owner()
    assert owner.method(1, y=2) == 13
    assert Owner.method(owner, 1) == 12
    bound = owner.method
    assert bound.__self__ is owner
    assert bound(1) == 12
    wrapped = Owner.__dict__["method"]
    assert (wrapped.__name__, wrapped.__doc__, wrapped.__module__) == ("method", "Add.", __name__)
    assert wrapped.__qualname__ == Owner.plain.__qualname__
    assert wrapped.__wrapped__ is Owner.plain
    assert inspect.signature(wrapped) == inspect.signature(Owner.plain)
    assert copy.deepcopy(module_level) is module_level
    wrapped.note = 1
    assert weakref.ref(wrapped)() is wrapped
    with pytest.raises(TypeError, match="callable"):
        frame_hook.RegionFunction(1, None)  # type: ignore[arg-type]


def _module_level(x: int) -> int:
    return x


module_level = frame_hook.optimize(_module_level, lambda frame, count: None)


def test_pickled_by_name() -> None:
    sys.modules.setdefault(
        __name__, sys.modules[_module_level.__module__]
    ) if _module_level.__module__ in sys.modules else None
    assert module_level.__reduce__() == "_module_level"
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(module_level)  # the name leads to the function itself here, as for any decorated copy


def test_regions_nest_and_restore_after_exceptions() -> None:
    one, two = FrameCallback(lambda f, c: None), FrameCallback(lambda f, c: None)
    with frame_hook.region(one):
        assert frame_hook.is_installed()
        with frame_hook.region(two):
            assert frame_hook.get_callback() is two
            with frame_hook.region(None):
                assert not frame_hook.is_installed()
                assert frame_hook.get_callback() is None
            assert frame_hook.is_installed()
        assert frame_hook.get_callback() is one

        def fail() -> None:
            assert frame_hook.get_callback() is two
            raise KeyError

        with pytest.raises(KeyError):
            frame_hook.optimize(fail, two)()
        assert frame_hook.get_callback() is one
        assert frame_hook.disabled(frame_hook.get_callback)() is None
    assert frame_hook.get_callback() is None


def test_threads_are_apart(answering: Any, fresh: Any) -> None:
    f = fresh(plus_one)
    wrapped = frame_hook.optimize(f, answering({f.__code__: lambda _: Entry(times_hundred.__code__)}))
    inside, go_on = threading.Event(), threading.Event()
    results: dict[str, Any] = {}

    def hold() -> None:
        inside.set()
        go_on.wait(10)
        results["inside"] = f(1)

    def other() -> None:
        inside.wait(10)
        results["callback"] = frame_hook.get_callback()
        results["other"] = f(1)
        results["wrapped"] = wrapped(1)
        go_on.set()

    threads = [
        threading.Thread(
            target=frame_hook.optimize(hold, answering({f.__code__: lambda _: Entry(times_hundred.__code__)}))
        ),
        threading.Thread(target=other),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {"callback": None, "other": 2, "wrapped": 100, "inside": 100}


def test_many_threads_compile_at_once(answering: Any, fresh: Any) -> None:
    f = fresh(plus_one)
    callback = FrameCallback(
        answering(
            {
                f.__code__: lambda frame: Entry(
                    times_hundred.__code__, lambda given, _: given[0] % 5 == frame.locals["x"] % 5
                )
            }
        )
    )
    wrapped = frame_hook.optimize(f, callback)
    wrong: list[int] = []

    def work() -> None:
        for i in range(3000):
            if wrapped(i) != 100 * i:
                wrong.append(i)
            if i % 500 == 499:
                callback.cache.reset()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


class Raising:
    """A callback that raises where it is asked, and knows code that handles it; ``fails``: how often that raises."""

    def __init__(self, fails):
        self.fails, self.asked = fails, 0

    def __call__(self, frame, entry_count):
        raise KeyboardInterrupt(0)

    def raising(self, code, error):
        self.asked += 1
        if self.asked <= self.fails:
            raise KeyboardInterrupt(self.asked)
        return Entry((lambda a: f"handled {a}").__code__, None, error) if code.co_name == "handled" else None


@pytest.mark.parametrize("fails", [0, 1, 5])
def test_what_a_callback_raises_is_raised_by_code_of_its_own(fails):
    def handled(a):
        return a

    def other(a):
        return a

    callback = Raising(fails)

    def called(function):
        previous = frame_hook.set_callback(callback)
        try:
            return function(3)
        except KeyboardInterrupt as error:
            return error.args
        finally:
            frame_hook.set_callback(previous)

    assert called(handled) == "handled 3"
    assert called(other) == (0,)
    assert callback.asked == fails + 2
    assert frame_hook.entries(handled.__code__) == []
