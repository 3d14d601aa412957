"""The frame hook on a running interpreter: hits, misses, skips, errors, recursion, threads, tracing, other hooks."""

from __future__ import annotations

import copy
import gc
import inspect
import logging
import os
import pickle
import subprocess
import sys
import threading
import traceback
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from dynamo_capture import hook
from dynamo_capture.bytecode import Emitter, assemble, body_like, decode, function_prologue
from dynamo_capture.hook import SKIP, SKIP_RECURSIVELY, Entry, FrameCallback, FrameView


@pytest.fixture(autouse=True)
def _hook_is_gone_afterwards() -> Iterator[None]:
    yield
    assert hook.get_callback() is None
    assert not hook.is_installed()


def answering(answers: dict[CodeType, Any], seen: list[str] | None = None) -> hook.Callback:
    """A callback that answers by code object; callables are called for a fresh answer."""

    def callback(frame: FrameView, count: int) -> Any:
        if seen is not None:
            seen.append(frame.code.co_name)
        answer = answers.get(frame.code)
        return answer(frame) if callable(answer) else answer

    return callback


def plus_one(x: int) -> int:
    return x + 1


def times_hundred(x: int) -> int:
    a = b = c = d = e = f = x  # more locals than the original
    return [a, b, c, d, e, f].count(x) * 0 + sum((a, b, c, d, e, f, x * 94))


def fresh(function: Callable[..., Any]) -> Any:
    """The same function with a code object of its own, so that tests do not share caches."""
    code = function.__code__.replace()  # type: ignore[attr-defined]
    copied = type(function)(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )  # type: ignore[attr-defined]
    copied.__kwdefaults__ = function.__kwdefaults__  # type: ignore[attr-defined]
    return copied


def test_miss_then_hits() -> None:
    f = fresh(plus_one)
    seen: list[str] = []
    wrapped = hook.optimize(f, answering({f.__code__: lambda _: Entry(times_hundred.__code__)}, seen))
    assert [wrapped(i) for i in range(5)] == [0, 100, 200, 300, 400]
    assert seen == ["plus_one"]
    (entry,) = hook.entries(f.__code__)
    assert entry.hits == 4
    assert f(1) == 2, "outside the region the function is itself"


def test_guards_choose_the_entry_and_the_last_used_comes_first() -> None:
    f = fresh(plus_one)
    guards: list[int] = []

    def compile_for(frame: FrameView) -> Entry:
        wanted = frame.locals["x"] % 3

        def guard(locals_: tuple[int, ...], function: Any) -> bool:
            assert function is f
            guards.append(wanted)
            return locals_[0] % 3 == wanted

        return Entry(f.__code__.replace(co_consts=(None, 1000 * wanted)), guard, wanted)

    wrapped = hook.optimize(f, answering({f.__code__: compile_for}))
    assert [wrapped(i) for i in range(6)] == [0, 1001, 2002, 3, 1004, 2005]
    assert [entry.extra for entry in hook.entries(f.__code__)] == [2, 1, 0]
    guards.clear()
    assert wrapped(8) == 2008
    assert guards == [2]


def test_arguments_of_every_kind_cells_and_closures() -> None:
    factor = 3

    def original(a: int, /, b: int, *rest: int, c: int = 5, **more: int) -> Any:
        inner = lambda: (a, factor)
        return inner(), b, rest, c, more

    def replacement(a: int, /, b: int, *rest: int, c: int = 5, **more: int) -> Any:
        inner = lambda: (a, factor)
        extra = [inner() for _ in range(2)]
        return "replaced", extra, b, rest, c, more

    f = fresh(original)
    wrapped = hook.optimize(f, answering({f.__code__: lambda _: Entry(replacement.__code__)}))
    for _ in range(3):
        assert wrapped(1, 2, 3, c=4, d=6) == ("replaced", [(1, 3), (1, 3)], 2, (3,), 4, {"d": 6})


def test_what_a_callback_sees() -> None:
    outer = "cell"

    def f(a: int, *rest: int, key: str = "k", **more: int) -> str:
        return outer

    views: list[FrameView] = []
    hook.optimize(f, lambda frame, count: views.append(frame))(1, 2, z=3)
    (view,) = views
    assert view.code is f.__code__
    assert view.function is f
    assert view.globals is globals()
    assert view.builtins["len"] is len
    assert [cell.cell_contents for cell in view.closure] == ["cell"]
    assert view.locals == {"a": 1, "rest": (2,), "key": "k", "more": {"z": 3}}


def test_none_asks_again_and_skip_does_not() -> None:
    def inner(x: int) -> int:
        return x

    def outer(x: int) -> int:
        return inner(x) + inner(x)

    seen: list[str] = []
    answers: dict[CodeType, Any] = {outer.__code__: None, inner.__code__: SKIP}
    wrapped = hook.optimize(outer, answering(answers, seen))
    assert wrapped(1) + wrapped(2) == 6
    assert seen == ["outer", "inner", "outer"]
    assert hook.is_skipped(inner.__code__)
    answers[outer.__code__] = SKIP_RECURSIVELY
    hook.skip(inner.__code__)
    seen.clear()
    third = fresh(inner)
    inner_before, inner = inner, third
    assert wrapped(1) + wrapped(2) == 6
    assert seen == ["outer"], "nothing below a recursively skipped function is asked about"
    inner = inner_before


def test_what_one_callback_skips_others_are_asked_about() -> None:
    def inner(x: int) -> int:
        return x

    def outer(x: int) -> int:
        return inner(x)

    for skipped in (SKIP, SKIP_RECURSIVELY):
        one, other = [], []
        refusing = hook.optimize(outer, answering({inner.__code__: skipped, outer.__code__: None}, one))
        asking = hook.optimize(outer, answering({inner.__code__: None, outer.__code__: None}, other))
        for _ in range(2):
            assert refusing(1) + asking(1) == 2
        assert one == ["outer", "inner", "outer"]
        assert other == ["outer", "inner"] * 2
        hook.unskip(inner.__code__)
        refusing(1)
        assert one == ["outer", "inner", "outer", "outer", "inner"]
        hook.unskip(inner.__code__)


def test_callbacks_and_guards_run_with_nothing_active() -> None:
    f = fresh(plus_one)
    states: list[Any] = []

    def guard(locals_: tuple[int, ...], function: Any) -> bool:
        states.append(hook.get_callback())
        return plus_one(locals_[0]) == 2

    def callback(frame: FrameView, count: int) -> Entry:
        states.extend((hook.get_callback(), hook.is_installed(), plus_one(1)))
        return Entry(times_hundred.__code__, guard)

    wrapped = hook.optimize(f, callback)
    assert (wrapped(1), wrapped(1)) == (100, 100)
    assert states == [None, False, 2, None]


def test_exceptions_of_callbacks(caplog: pytest.LogCaptureFixture) -> None:
    f, g = fresh(plus_one), fresh(times_hundred)  # equal code objects are one key

    def fail(frame: FrameView) -> Any:
        raise RuntimeError("a bug in the compiler")

    def refuse(frame: FrameView) -> Any:
        raise hook.propagate(ValueError("fullgraph"))

    answers: dict[CodeType, Any] = {f.__code__: fail, g.__code__: refuse}
    seen: list[str] = []
    wrapped = hook.optimize(f, answering(answers, seen))
    with caplog.at_level(logging.ERROR, "dynamo_capture"):
        assert wrapped(1) == 2
    assert "a bug in the compiler" in caplog.text
    assert "plus_one" in caplog.text
    assert wrapped(1) == 2
    assert len(seen) == 1
    for _ in range(2):
        with pytest.raises(ValueError, match="fullgraph") as caught:
            hook.optimize(g, answering(answers))(1)
        assert "refuse" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


@pytest.mark.parametrize("answer", [42, "text"])
def test_wrong_answers_leave_the_program_alone(answer: object, caplog: pytest.LogCaptureFixture) -> None:
    f = fresh(plus_one)
    assert hook.optimize(f, lambda frame, count: answer)(1) == 2
    assert "plus_one" in caplog.text
    g = fresh(plus_one)
    with hook.region(None):
        previous = hook.set_callback(lambda frame, count: answer if frame.code is g.__code__ else None)
        try:
            with pytest.raises(TypeError, match="frame callback answers"):
                g(1)
        finally:
            hook.set_callback(previous)


def _with_free_variable() -> Any:
    free = 1
    return lambda x: free


@pytest.mark.parametrize(
    "other",
    [
        lambda: 1,
        lambda x, y: 1,
        lambda *x: 1,
        lambda *, x: 1,
        lambda x, /: 1,
        lambda x: (yield),
        _with_free_variable(),
    ],
)
def test_replacements_that_do_not_fit_are_refused(other: Any, caplog: pytest.LogCaptureFixture) -> None:
    f = fresh(plus_one)
    assert hook.optimize(f, answering({f.__code__: lambda _: Entry(other.__code__)}))(1) == 2
    assert "cannot be replaced" in caplog.text
    with pytest.raises(ValueError, match="cannot be replaced"):
        hook.add_entry(f.__code__, Entry(other.__code__))


def test_trace_and_profile_functions_are_not_seen() -> None:
    seen: list[str] = []
    called: list[str] = []

    def watched(frame: Any, event: str, argument: Any) -> None:
        called.append(event)

    def body() -> int:
        return sum([1, 2])

    wrapped = hook.optimize(body, answering({}, seen))
    for install in (sys.setprofile, sys.settrace):
        install(watched)
        try:
            assert wrapped() == 3
        finally:
            install(None)
    assert "call" in called
    assert "body" in seen
    assert "watched" not in seen


def test_audit_functions_are_not_seen() -> None:
    """In a process of its own: an audit function stays for good."""
    program = """
import subprocess
import sys
from dynamo_capture import hook
seen, events = [], []
sys.addaudithook(lambda event, arguments: events.append(event))
def callback(frame, count):
    seen.append(frame.code.co_name)
def body():
    return compile("1", "<text>", "eval")
hook.optimize(body, callback)()
assert "compile" in events and seen == ["body"], (events, seen)
"""
    source = str(Path(hook.__file__).parent.parent)
    subprocess.run(
        [sys.executable, "-c", program], check=True, timeout=60, env={**os.environ, "PYTHONPATH": source}
    )


def test_exceptions_of_replacements_have_the_users_line() -> None:
    def original(x: int) -> float:
        y = x + 1
        return 1 / y

    f = fresh(original)
    replaced = assemble(decode(f.__code__))
    wrapped = hook.optimize(f, answering({f.__code__: lambda _: Entry(replaced)}))
    for _ in range(3):
        with pytest.raises(ZeroDivisionError) as caught:
            wrapped(-1)
        last = traceback.extract_tb(caught.value.__traceback__)[-1]
        assert (last.name, last.line) == ("original", "return 1 / y")


def test_large_replacements_find_room_at_any_depth() -> None:
    def grown(x: int) -> Any:
        return x

    body = decode(grown.__code__)
    emitter = Emitter()
    for i in range(300):
        emitter.load_const(i)
        emitter.store_fast(f"v{i}")
    for i in range(300):
        emitter.load_fast(f"v{i}")
    emitter.build_list(300)
    emitter.load_global_callable("sum")
    emitter.swap(3)
    emitter.swap(2) if sys.version_info >= (3, 13) else None
    emitter.instructions = emitter.instructions[: -(2 + (sys.version_info >= (3, 13)))]
    emitter.load_method("__len__")
    emitter.call(0)
    emitter.load_fast("x")
    emitter.binary_op("+")
    emitter.return_value()
    large = assemble(body_like(body, [*function_prologue((), ()), *emitter.instructions]))

    def dive(depth: int, f: Any) -> int:
        return f(depth) if depth == 0 else dive(depth - 1, f)

    for depth in range(120):
        f = fresh(grown)
        wrapped = hook.optimize(dive, answering({f.__code__: lambda _: Entry(large)}))
        first = wrapped(depth, f)
        assert first in (0, 300), "the first call may run the original if there is no room"
        assert wrapped(depth, f) == 300
        assert wrapped(depth, f) == 300


def test_generators_coroutines_classes_and_exec_pass_through() -> None:
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

    wrapped = hook.optimize(body, answering({}, seen))
    assert wrapped() == ([0, 1, 2], 5, 1, 7)
    assert set(seen) <= {"body", "method", "f", "<listcomp>"}
    assert {"body", "method", "f"} <= set(seen)


def test_wrapper_is_as_the_function() -> None:
    class Owner:
        def __init__(self) -> None:
            self.k = 10

        def method(self, x: int, *, y: int = 1) -> int:
            """Add."""
            return self.k + x + y

        plain = method

    Owner.method = hook.optimize(Owner.method, answering({}))  # type: ignore[method-assign, assignment]
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
        hook.RegionFunction(1, None)  # type: ignore[arg-type]


def _module_level(x: int) -> int:
    return x


module_level = hook.optimize(_module_level, lambda frame, count: None)


def test_pickled_by_name() -> None:
    sys.modules.setdefault(
        __name__, sys.modules[_module_level.__module__]
    ) if _module_level.__module__ in sys.modules else None
    assert module_level.__reduce__() == "_module_level"
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(module_level)  # the name leads to the function itself here, as for any decorated copy


def test_regions_nest_and_restore_after_exceptions() -> None:
    one, two = FrameCallback(lambda f, c: None), FrameCallback(lambda f, c: None)
    with hook.region(one):
        assert hook.is_installed()
        with hook.region(two):
            assert hook.get_callback() is two
            with hook.region(None):
                assert not hook.is_installed()
                assert hook.get_callback() is None
            assert hook.is_installed()
        assert hook.get_callback() is one

        def fail() -> None:
            assert hook.get_callback() is two
            raise KeyError

        with pytest.raises(KeyError):
            hook.optimize(fail, two)()
        assert hook.get_callback() is one
        assert hook.disabled(hook.get_callback)() is None
    assert hook.get_callback() is None


def test_recursion_ends_in_recursion_error_and_keeps_its_depth() -> None:
    def depth_reached(start: Callable[..., int]) -> int:
        deepest = 0

        def down(n: int) -> int:
            nonlocal deepest
            deepest = n
            return down(n + 1)

        with pytest.raises(RecursionError):
            start(down)
        return deepest

    plain = depth_reached(lambda down: down(0))
    hooked = depth_reached(lambda down: hook.optimize(down, answering({}))(0))
    assert hooked >= plain - 25


def test_too_deep_to_compile_is_not_too_deep_to_run() -> None:
    def leaf() -> int:
        return 1

    def down(n: int) -> int:
        return leaf() if n == 0 else down(n - 1)

    def deep_callback(frame: FrameView, count: int) -> Any:
        def deeper(k: int) -> int:
            return 0 if k == 0 else deeper(k - 1)

        deeper(50)
        return Entry(frame.code.replace())

    def deepest(start: Callable[[int], int]) -> int:
        depth = 1800
        while True:
            try:
                start(depth)
            except RecursionError:
                return depth
            depth += 1

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(2000)
    try:
        found = deepest(hook.optimize(down, FrameCallback(deep_callback)))
        assert found >= deepest(down) - 3
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("answer", [None, SKIP, SKIP_RECURSIVELY, "replace"])
def test_recursion_far_beyond_the_c_stack(answer: Any) -> None:
    def down(n: int) -> int:
        return 0 if n == 0 else 1 + down(n - 1)

    replaced = assemble(decode(down.__code__))
    reply = (lambda _: Entry(replaced)) if answer == "replace" else answer
    wrapped = hook.optimize(down, answering({down.__code__: reply}))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200_000)
    try:
        assert wrapped(60_000) == 60_000
    finally:
        sys.setrecursionlimit(limit)


def test_recursion_through_the_wrapper_ends_in_recursion_error() -> None:
    def down(n: int) -> int:
        return wrapped(n + 1)

    wrapped = hook.optimize(down, answering({}))
    limit = sys.getrecursionlimit()
    for allowed in (limit, 1_000_000):
        sys.setrecursionlimit(allowed)
        try:
            with pytest.raises(RecursionError):
                wrapped(0)
        finally:
            sys.setrecursionlimit(limit)


def test_recursion_in_a_thread_with_a_small_stack() -> None:
    outcome: list[Any] = []

    def down(n: int) -> int:
        return down(n + 1)

    def run() -> None:
        try:
            hook.optimize(down, answering({}))(0)
        except RecursionError as error:
            outcome.append(error)

    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert len(outcome) == 1


def test_threads_are_apart() -> None:
    f = fresh(plus_one)
    wrapped = hook.optimize(f, answering({f.__code__: lambda _: Entry(times_hundred.__code__)}))
    inside, go_on = threading.Event(), threading.Event()
    results: dict[str, Any] = {}

    def hold() -> None:
        inside.set()
        go_on.wait(10)
        results["inside"] = f(1)

    def other() -> None:
        inside.wait(10)
        results["callback"] = hook.get_callback()
        results["other"] = f(1)
        results["wrapped"] = wrapped(1)
        go_on.set()

    threads = [
        threading.Thread(
            target=hook.optimize(hold, answering({f.__code__: lambda _: Entry(times_hundred.__code__)}))
        ),
        threading.Thread(target=other),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {"callback": None, "other": 2, "wrapped": 100, "inside": 100}


def test_many_threads_compile_at_once() -> None:
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
    wrapped = hook.optimize(f, callback)
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


def test_guards_may_change_the_cache_under_the_search() -> None:
    f = fresh(plus_one)
    cache: list[FrameCallback] = []

    def guard(locals_: tuple[int, ...], function: Any) -> bool:
        cache[0].cache.reset()
        gc.collect()
        return False

    callback = FrameCallback(answering({f.__code__: lambda _: Entry(times_hundred.__code__, guard)}))
    cache.append(callback)
    wrapped = hook.optimize(f, callback)
    assert [wrapped(i) for i in range(4)] == [0, 100, 200, 300]


def test_raising_guards_do_not_hold(capfd: pytest.CaptureFixture[str]) -> None:
    f = fresh(plus_one)

    def guard(locals_: tuple[int, ...], function: Any) -> bool:
        raise OSError("guard trouble")

    unraisable: list[Any] = []
    before, sys.unraisablehook = sys.unraisablehook, unraisable.append
    try:
        wrapped = hook.optimize(f, answering({f.__code__: lambda _: Entry(times_hundred.__code__, guard)}))
        assert (wrapped(1), wrapped(2)) == (100, 200)
    finally:
        sys.unraisablehook = before
    assert [type(trouble.exc_value) for trouble in unraisable] == [OSError]


def traced(kind: str, run: Callable[[], Any], code_name: str) -> list[Any]:
    """Lines or events of the functions so named while ``run`` runs."""
    events: list[Any] = []

    def tracer(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code.co_name == code_name:
            events.append((event, frame.f_lineno, frame.f_code.co_filename))
        return tracer

    if kind == "settrace":
        outer = sys.gettrace()
        sys.settrace(tracer)
        try:
            run()
        finally:
            sys.settrace(outer)
    elif kind == "setprofile":
        sys.setprofile(tracer)
        try:
            run()
        finally:
            sys.setprofile(None)
    else:
        monitoring = sys.monitoring  # type: ignore[attr-defined]
        chosen = monitoring.events.LINE | monitoring.events.PY_START | monitoring.events.PY_RETURN
        monitoring.use_tool_id(3, "test")
        for event in (monitoring.events.LINE, monitoring.events.PY_START, monitoring.events.PY_RETURN):
            monitoring.register_callback(
                3,
                event,
                lambda code, *rest, e=event: (
                    events.append((e, rest[0])) if code.co_name == code_name else None
                ),
            )
        monitoring.set_events(3, chosen)
        try:
            run()
        finally:
            monitoring.set_events(3, 0)
            monitoring.free_tool_id(3)
    return events


@pytest.mark.parametrize("kind", ["settrace", "setprofile", "monitoring"])
def test_tracers_see_the_users_lines(kind: str) -> None:
    if kind == "monitoring" and sys.version_info < (3, 12):
        pytest.skip("sys.monitoring is new in 3.12")

    def original(x: int) -> int:
        total = 0
        for i in range(x):
            total += i
        return total

    f = fresh(original)
    wrapped = hook.optimize(f, answering({f.__code__: lambda _: Entry(assemble(decode(f.__code__)))}))
    expected = traced(kind, lambda: f(3), "original")
    assert expected
    for _ in range(3):
        assert traced(kind, lambda: wrapped(3), "original") == expected
    if kind == "settrace":

        def refuse(frame: FrameView) -> Any:
            raise hook.propagate(ValueError("refused"))

        g = fresh(original)

        def run() -> None:
            with pytest.raises(ValueError, match="refused"):
                hook.optimize(g, answering({g.__code__: refuse}))(1)

        traced(kind, run, "original")


def test_entries_die_with_the_code() -> None:
    class Watched:
        def __call__(self, locals_: Any, function: Any) -> bool:
            return True

    guard = Watched()
    reference = weakref.ref(guard)
    f = fresh(plus_one)
    wrapped = hook.optimize(f, lambda frame, count, guard=guard: Entry(times_hundred.__code__, guard))
    assert (wrapped(1), wrapped(2)) == (100, 200)
    del f, wrapped, guard
    gc.collect()
    assert reference() is None


def test_arguments_and_results_are_not_leaked() -> None:
    class Value:
        pass

    f = fresh(lambda x: [x])
    replaced = assemble(decode(f.__code__))
    wrapped = hook.optimize(f, answering({f.__code__: lambda _: Entry(replaced, lambda given, _: True)}))
    value = Value()
    wrapped(value)
    count = sys.getrefcount(value)
    codes = sys.getrefcount(replaced), sys.getrefcount(f.__code__), sys.getrefcount(f)
    for _ in range(100):
        wrapped(value)
    assert sys.getrefcount(value) == count
    assert (sys.getrefcount(replaced), sys.getrefcount(f.__code__), sys.getrefcount(f)) == codes
    reference = weakref.ref(value)
    del value
    gc.collect()
    assert reference() is None


def test_memory_does_not_grow() -> None:
    def once() -> None:
        f = fresh(plus_one)
        wrapped = hook.optimize(
            f, answering({f.__code__: lambda _: Entry(times_hundred.__code__, lambda given, _: True)})
        )
        for i in range(3):
            wrapped(i)
        failing = hook.optimize(fresh(plus_one), answering({}))
        with pytest.raises(TypeError):
            failing(None)

    for _ in range(5):
        once()
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(20):
            once()
        gc.collect()
        first, _ = tracemalloc.get_traced_memory()
        for _ in range(200):
            once()
        gc.collect()
        second, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert second - first < 200 * 20, "less than 20 bytes a round"
