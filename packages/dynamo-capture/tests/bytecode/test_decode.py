"""What decoded instructions say."""

from __future__ import annotations

import dis
from typing import Any

import pytest

from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.errors import UnsupportedBytecodeError
from dynamo_capture.bytecode.instruction import is_plain_function


def sample(self: Any, items: list[Any], *, key: Any = None) -> Any:
    total = 0.5
    for item in items:
        if item < key and print(item + total, end=""):
            self.value = [k for k in item]  # noqa: C416
            total += len(self.value)
    return lambda: total


def test_operands() -> None:
    body = decode(sample.__code__)
    by_name: dict[str, list[Any]] = {}
    for instruction in body.instructions:
        by_name.setdefault(instruction.opname, []).append(instruction.argval)
    assert 0.5 in by_name["LOAD_CONST"]
    assert {"print", "len"} <= set(by_name["LOAD_GLOBAL"])
    assert by_name["COMPARE_OP"] == ["<"]
    assert by_name["BINARY_OP"] == ["+", "+="]
    assert by_name["STORE_ATTR"] == ["value"]
    assert "total" in by_name["STORE_DEREF"]
    assert body.argument_names == ["self", "items", "key"]
    assert body.cellvars == ["total"]
    assert "CACHE" not in by_name


def test_jumps_lead_to_instructions() -> None:
    body = decode(sample.__code__)
    expected = {i.offset: i.argval for i in dis.get_instructions(sample.__code__) if i.opcode in dis.hasjrel}
    found = {i.offset: i.target.offset for i in body.instructions if i.target is not None}
    assert found == expected


def test_specialised_code_decodes_as_the_compiler_wrote_it() -> None:
    def hot(x: int) -> int:
        return x + x * 2

    before = [(i.opname, i.argval) for i in decode(hot.__code__).instructions]
    for _ in range(100):
        hot(3)
    assert [(i.opname, i.argval) for i in decode(hot.__code__).instructions] == before


def test_index_of_offset() -> None:
    body = decode(sample.__code__)
    for index, instruction in enumerate(body.instructions):
        assert body.index_of_offset(instruction.offset) == index
    with pytest.raises(UnsupportedBytecodeError) as caught:
        body.index_of_offset(-1)
    assert caught.value.code == "CAP101"


def test_clones_are_apart() -> None:
    body = decode(sample.__code__)
    copy, twins = body.clone_with_map()
    assert [twins[i] for i in body.instructions] == copy.instructions
    ours = set(copy.instructions)
    for instruction in copy.instructions:
        assert instruction.target is None or instruction.target in ours
        assert instruction.handler is None or instruction.handler.target in ours
    assert not ours & set(body.instructions)


def test_plain_functions() -> None:
    def generator() -> Any:
        yield 1

    async def coroutine() -> None:
        pass

    assert is_plain_function(sample.__code__)
    assert not is_plain_function(generator.__code__)
    assert not is_plain_function(coroutine.__code__)
    assert not is_plain_function(compile("x = 1", "<m>", "exec"))
