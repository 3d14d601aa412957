"""The byte tables of code objects are written as the interpreter reads them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dynamo_capture.bytecode.instruction import Position
from dynamo_capture.bytecode.tables import (
    ExceptionRange,
    decode_exceptions,
    encode_exceptions,
    encode_locations,
)

numbers = st.integers(0, 5000)
columns = st.one_of(st.integers(0, 130), st.integers(0, 5000))
positions = st.one_of(
    st.just(Position()),
    st.builds(lambda line: Position(line, line), numbers),
    st.builds(
        lambda line, more, column, end: Position(line, line + more, column, end),
        numbers, st.one_of(st.just(0), st.integers(0, 300)), columns, columns,
    ),
)  # fmt: skip


@given(st.lists(st.tuples(st.integers(1, 20), positions), min_size=1, max_size=30), st.integers(0, 3000))
def test_locations(runs: list[tuple[int, Position]], first_line: int) -> None:
    units = sum(count for count, _ in runs)
    template = (lambda: None).__code__
    table = encode_locations(first_line, runs)
    code = template.replace(co_code=b"\x09\x00" * units, co_linetable=table, co_firstlineno=first_line)
    expected = [tuple(position) for count, position in runs for _ in range(count)]
    assert list(code.co_positions()) == expected


@given(
    st.lists(
        st.builds(
            lambda start, length, target, depth, lasti: ExceptionRange(start, start + length, target, depth, lasti),
            st.integers(0, 1 << 20), st.integers(1, 1 << 20), st.integers(0, 1 << 20), st.integers(0, 99),
            st.booleans(),
        )
    )
)  # fmt: skip
def test_exceptions(ranges: list[ExceptionRange]) -> None:
    assert decode_exceptions(encode_exceptions(ranges)) == ranges
