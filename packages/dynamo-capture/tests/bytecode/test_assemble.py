"""Decoding and assembling again gives the same code; rewritten functions run as the originals do."""

from __future__ import annotations

import dis
import importlib
import random
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dynamo_capture.bytecode.assemble import assemble, assemble_with_offsets, constant_key
from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.emit import Emitter, function_prologue
from dynamo_capture.bytecode.errors import UnsupportedBytecodeError
from dynamo_capture.bytecode.instruction import CodeBody, Instruction, Position
from dynamo_capture.bytecode.tables import decode_exceptions

STDLIB = Path(dis.__file__).parent
MODULES = sorted(
    [
        *STDLIB.glob("*.py"),
        *STDLIB.glob("asyncio/*.py"),
        *STDLIB.glob("email/*.py"),
        *STDLIB.glob("json/*.py"),
    ]
)


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and all in its constants."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested(constant)


def check_round_trip(code: types.CodeType) -> None:
    again = assemble(decode(code))
    instructions, expected = list(dis.get_instructions(again)), list(dis.get_instructions(code))
    names = [i.opname for i in expected if i.opname != "EXTENDED_ARG"]
    assert [i.opname for i in instructions if i.opname != "EXTENDED_ARG"] == names
    for field in (
        "co_flags",
        "co_varnames",
        "co_cellvars",
        "co_freevars",
        "co_names",
        "co_name",
        "co_qualname",
    ):
        assert getattr(again, field) == getattr(code, field)
    assert [constant_key(c) for c in again.co_consts] == [constant_key(c) for c in code.co_consts]
    if len(again.co_code) == len(code.co_code):  # a compiler may leave an EXTENDED_ARG that nothing needs
        assert again.co_exceptiontable == code.co_exceptiontable
        assert list(again.co_positions()) == list(code.co_positions())


@pytest.mark.parametrize("path", MODULES[:: max(1, len(MODULES) // 60)], ids=lambda path: path.stem)
def test_round_trip_of_the_standard_library(path: Path) -> None:
    for code in nested(compile(path.read_bytes(), str(path), "exec")):
        check_round_trip(code)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [*MODULES, *sorted(STDLIB.glob("test/test_*.py"))], ids=lambda path: path.stem
)
def test_round_trip_of_all_of_it(path: Path) -> None:
    try:
        top = compile(path.read_bytes(), str(path), "exec")
    except SyntaxError:
        pytest.skip("meant to be malformed")
    for code in nested(top):
        check_round_trip(code)


def rewritten(code: types.CodeType, seed: int) -> types.CodeType:
    """The same with NOPs strewn in, in all nested code, so that every jump, handler and position moves."""
    rng = random.Random(seed)
    body = decode(code)
    strewn: list[Instruction] = []
    resumed = False
    for instruction in body.instructions:
        resumed = resumed or instruction.opname == "RESUME"
        if isinstance(instruction.argval, types.CodeType):
            instruction.argval = rewritten(instruction.argval, rng.randrange(10**6))
        glued = strewn and strewn[-1].opname in (
            "KW_NAMES",
            "PRECALL",
            "FOR_ITER",
            "SEND",
            "END_FOR",
            "COMPARE_OP",
            "RESUME",
        )
        if (
            resumed
            and not glued
            and instruction.opname not in ("END_FOR", "END_SEND", "RESUME", "RETURN_GENERATOR")
        ):
            count = rng.choice([0, 1, 3, 300]) if rng.random() < 0.1 else rng.choice([0, 0, 1])
            for _ in range(count):
                strewn.append(Instruction("NOP", position=instruction.position, handler=instruction.handler))
        strewn.append(instruction)
    body.instructions = strewn
    body.consts = body.consts[:1]
    body.names = ()
    return assemble(body)


def exercise_json(module: Any) -> Any:
    return module["JSONDecoder"]().decode('{"a": [1, 2.5, "x\\u0041"], "b": {"c": null, "d": [true, false]}}')


def exercise_textwrap(module: Any) -> Any:
    return module["fill"]("the quick brown fox jumps over the lazy dog " * 5, 30), module["dedent"](
        "  a\n    b\n"
    )


def exercise_fractions(module: Any) -> Any:
    fraction = module["Fraction"]
    return [str(fraction(a, b) ** 2 - fraction("3/7") * a) for a in range(-2, 3) for b in (1, 3)]


def exercise_heapq(module: Any) -> Any:
    return list(module["merge"]([1, 4], [2, 3], key=lambda v: v)), module["nsmallest"](
        2, [3, 1, 2], key=lambda v: -v
    )


def exercise_contextlib(module: Any) -> Any:
    log: list[Any] = []

    @module["contextmanager"]
    def manager(name: str) -> Iterator[str]:
        log.append(name)
        try:
            yield name
        except KeyError as error:
            log.append(error.args)
        finally:
            log.append("out")

    with module["ExitStack"]() as stack:
        stack.enter_context(manager("a"))
        stack.enter_context(manager("b"))
        raise KeyError("swallowed")
    return log


@pytest.mark.parametrize(
    ("name", "exercise"),
    [
        ("json.decoder", exercise_json),
        ("textwrap", exercise_textwrap),
        ("fractions", exercise_fractions),
        ("heapq", exercise_heapq),
        ("contextlib", exercise_contextlib),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_rewritten_modules_work(name: str, exercise: Callable[[Any], Any], seed: int) -> None:
    module = importlib.import_module(name)
    path = Path(str(module.__file__))
    code = rewritten(compile(path.read_bytes(), str(path), "exec"), seed)
    namespace: dict[str, Any] = {
        "__name__": name,
        "__package__": name.rpartition(".")[0],
        "__builtins__": __builtins__,
    }
    exec(code, namespace)
    assert exercise(namespace) == exercise(vars(module))


def test_more_than_256_constants_names_and_locals() -> None:
    lines = ["def f(g):", *(f"    v{i} = {i}.5; g.a{i} = v{i}" for i in range(700)), "    total = 0"]
    lines += [
        "    while total < 3:",
        *(f"        total += v{i} * 0" for i in range(700)),
        "        total += 1",
    ]
    lines += ["    return total, [" + ", ".join(f"v{i}" for i in range(700)) + "], g.a699"]
    namespace: dict[str, Any] = {}
    exec("\n".join(lines), namespace)
    expected = namespace["f"](types.SimpleNamespace())
    for seed in range(3):
        code = rewritten(namespace["f"].__code__, seed)
        assert types.FunctionType(code, {})(types.SimpleNamespace()) == expected


def test_constants_that_compare_equal_stay_apart() -> None:
    emitter = Emitter()
    values = [
        0.0,
        -0.0,
        0,
        False,
        1,
        True,
        1.0,
        (0.0,),
        (-0.0,),
        (0,),
        "",
        b"",
        frozenset({1}),
        frozenset({True}),
        0j,
        -0j,
    ]
    for value in values:
        emitter.load_const(value)
    emitter.build_list(len(values))
    emitter.return_value()
    body = CodeBody([*function_prologue((), ()), *emitter.instructions], "f", "f", "<test>", 1)
    result = types.FunctionType(assemble(body), {})()
    assert [repr(value) for value in result] == [repr(value) for value in values]
    assert len({constant_key(float("nan")), constant_key(float("nan"))}) == 1


def test_arbitrary_objects_as_constants() -> None:
    marker = object()
    emitter = Emitter()
    emitter.load_const(marker)
    emitter.return_value()
    body = CodeBody([*function_prologue((), ()), *emitter.instructions], "f", "f", "<test>", 1)
    assert types.FunctionType(assemble(body), {})() is marker


def test_positions_of_every_form() -> None:
    positions = [
        Position(10, 10, 0, 5), Position(10, 10, 79, 94), Position(11, 11, 100, 120), Position(13, 13, 2, 3),
        Position(5, 5, 0, 1), Position(5, 9, 200, 3), Position(6, 6, None, None), Position(),
        Position(4000, 4000, 1, 2), Position(4000, 4000, 130, 131),
    ]  # fmt: skip
    instructions = [Instruction("RESUME")]
    for position in positions:
        instructions += [Instruction("NOP", position=position) for _ in range(11)]
    emitter = Emitter(Position(7, 7, 1, 2))
    emitter.load_const(None)
    emitter.return_value()
    code = assemble(CodeBody([*instructions, *emitter.instructions], "f", "f", "<test>", 8))
    found = list(code.co_positions())
    assert found[0] == (None, None, None, None)
    expected = [tuple(position) for position in positions for _ in range(11)]
    assert found[1:-2] == expected
    assert decode(code).instructions[1].position == positions[0]


def test_handlers_survive_moves() -> None:
    def f(x: Any) -> Any:
        try:
            try:
                return 1 / x
            finally:
                x = "finally"
        except ZeroDivisionError as error:
            return x, str(error)

    code = assemble(decode(f.__code__))
    assert decode_exceptions(code.co_exceptiontable) == decode_exceptions(f.__code__.co_exceptiontable)
    for seed in range(5):
        g = types.FunctionType(rewritten(f.__code__, seed), globals())
        assert g(0) == f(0) == ("finally", "division by zero")
        assert g(2) == 0.5


def test_offsets_are_where_decoding_finds_them() -> None:
    body = decode(check_round_trip.__code__)
    code, offsets = assemble_with_offsets(body)
    for found in decode(code).instructions:
        assert found.opname in {
            instruction.opname for instruction, offset in offsets.items() if offset == found.offset
        }


@pytest.mark.parametrize(
    "instructions",
    [
        [Instruction("NO_SUCH_OPCODE")],
        [Instruction("LOAD_DEREF", argval="nowhere")],
        [Instruction("JUMP", target=Instruction("LABEL"))],
        [Instruction("JUMP")],
        [Instruction("NOP")],
        [],
        [Instruction("POP_TOP"), Instruction("LOAD_CONST"), Instruction("RETURN_VALUE")],
        [Instruction("LOAD_GLOBAL", argval=3), Instruction("RETURN_VALUE")],
    ],
    ids=lambda instructions: " ".join(instruction.opname for instruction in instructions) or "empty",
)
def test_what_cannot_be_assembled_is_refused(instructions: list[Instruction]) -> None:
    with pytest.raises(UnsupportedBytecodeError) as caught:
        assemble(CodeBody(instructions, "f", "f", "<test>", 1))
    assert caught.value.code == "CAP104"


def test_two_slots_of_one_name() -> None:
    def outer(x: str) -> Any:
        def inner(items: list[int]) -> Any:
            kept = [x * 2 for x in items]  # from 3.12 on a local next to the free variable
            return kept, x

        return inner

    inner = outer("free")
    again = types.FunctionType(
        assemble(decode(inner.__code__)), inner.__globals__, "inner", None, inner.__closure__
    )
    assert again([1, 2]) == inner([1, 2]) == ([2, 4], "free")
    assert again.__code__.co_freevars == ("x",)
    assert again.__code__.co_varnames == inner.__code__.co_varnames
