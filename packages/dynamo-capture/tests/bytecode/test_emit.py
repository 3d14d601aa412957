"""Emitted functions run alike on every supported CPython."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest

from dynamo_capture.bytecode.assemble import assemble
from dynamo_capture.bytecode.emit import Emitter, function_prologue
from dynamo_capture.bytecode.instruction import CodeBody


def _function(
    write: Callable[[Emitter], None],
    arguments: tuple[str, ...] = (),
    cellvars: tuple[str, ...] = (),
    **namespace: Any,
) -> Callable[..., Any]:
    emitter = Emitter()
    emitter.instructions += function_prologue(cellvars, ())
    write(emitter)
    body = CodeBody(
        emitter.instructions,
        "f",
        "f",
        "<emitted>",
        1,
        len(arguments),
        varnames=list(arguments),
        cellvars=list(cellvars),
    )
    return FunctionType(assemble(body), {"__builtins__": __builtins__, **namespace})


def test_calls() -> None:
    def write(e: Emitter) -> None:
        e.load_global_callable("dict")
        e.load_const(1)
        e.load_const(2)
        e.call(2, ("a", "b"))
        e.store_fast("d")
        e.begin_call()
        e.load_global("sorted")
        e.end_callable()
        e.load_fast("d")
        e.load_method("items")
        e.call(0)
        e.call(1)
        e.load_global("len")
        e.load_fast("d")
        e.call_values(1)
        e.begin_call()
        e.load_global("max")
        e.end_callable()
        e.load_const((3, 7))
        e.load_const("key")
        e.load_const(None)
        e.build_map(1)
        e.call_function_ex(keywords=True)
        e.build_tuple(3)
        e.return_value()

    assert _function(write)() == ([("a", 1), ("b", 2)], 2, 7)


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [("<", True), ("<=", True), ("==", False), ("!=", True), (">", False), (">=", False)],
)
def test_comparisons_and_conditional_jumps(symbol: str, expected: bool) -> None:
    def write(e: Emitter) -> None:
        yes = e.label()
        e.load_fast("a")
        e.load_fast("b")
        e.compare_op(symbol)
        e.copy()
        e.pop_jump_if_true(yes)
        e.unary_not()
        e.load_const("no")
        e.build_tuple(2)
        e.return_value()
        e.place(yes)
        e.load_const("yes")
        e.build_tuple(2)
        e.return_value()

    function = _function(write, ("a", "b"))
    for _ in range(40):  # long enough to be specialised
        assert function(1, 2) == ((True, "yes") if expected else (True, "no"))
        assert function(1.5, 2.5) == ((True, "yes") if expected else (True, "no"))


def test_conditional_jumps_backward_and_truth_of_any_object() -> None:
    def write(e: Emitter) -> None:
        again = e.label()
        e.place(again)
        e.load_fast("items")
        e.load_method("pop")
        e.call(0)
        e.pop_top()
        e.load_fast("items")
        e.pop_jump_if_true(again)
        e.load_fast("items")
        e.return_value()

    assert _function(write, ("items",))([1, 2, 3]) == []


def test_loop() -> None:
    def write(e: Emitter) -> None:
        done, again, skip = e.label(), e.label(), e.label()
        e.build_list(0)
        e.load_fast("items")
        e.get_iter()
        e.place(again)
        e.for_iter(done)
        e.copy()
        e.pop_jump_if_none(skip)
        e.unary_negative()
        e.unary_positive()
        e.list_append(2)
        e.jump(again)
        e.place(skip)
        e.pop_top()
        e.jump(again)
        e.place_loop_end(done)
        e.list_to_tuple()
        e.return_value()

    assert _function(write, ("items",))([1, None, 3]) == (-1, -3)


def test_closures() -> None:
    inner = Emitter()
    inner.instructions += function_prologue((), ("x",))
    inner.load_deref("x")
    inner.load_fast("y")
    inner.binary_op("+")
    inner.load_fast("z")
    inner.binary_op("*")
    inner.return_value()
    code = assemble(
        CodeBody(
            inner.instructions, "g", "f.g", "<e>", 1, 1, 0, 1, flags=0x13, varnames=["y", "z"], freevars=["x"]
        )
    )

    def write(e: Emitter) -> None:
        e.load_const((10,))
        e.load_const("z")
        e.load_const(2)
        e.build_map(1)
        e.make_function(code, closure=("x",), defaults=True, keyword_defaults=True)
        e.load_const(5)
        e.store_deref("x")
        e.return_value()

    g = _function(write, ("x",), ("x",))(1)
    assert (g(), g(1), g(1, z=3)) == (30, 12, 18)


def test_protected() -> None:
    def write(e: Emitter) -> None:
        caught = e.label()
        e.load_const("kept")
        with e.protected(caught, 1):
            e.load_fast("a")
            e.load_const(0)
            e.binary_op("/")
            e.build_tuple(2)
            e.return_value()
        e.place(caught)
        e.emit("PUSH_EXC_INFO")
        e.load_attr("args")
        e.swap()
        e.emit("POP_EXCEPT")
        e.build_tuple(2)
        e.return_value()

    assert _function(write, ("a",))(1) == ("kept", ("division by zero",))


def test_unbound_local_raises() -> None:
    def write(e: Emitter) -> None:
        e.load_fast("nothing")
        e.return_value()

    with pytest.raises(UnboundLocalError):
        _function(write)()


def test_rotate() -> None:
    def write(e: Emitter) -> None:
        for value in "abcd":
            e.load_const(value)
        e.rotate(4)
        e.build_tuple(4)
        e.return_value()

    assert _function(write)() == ("d", "a", "b", "c")
