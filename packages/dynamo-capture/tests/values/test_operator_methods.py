"""The tables of operators."""

from __future__ import annotations

import operator

from dynamo_capture.values.operator_methods import BINARY, COMPARE, UNARY


def test_the_tables_name_python_s_operators():
    assert all(getattr(operator, row.function.__name__) is row.function for row in BINARY.values())
    assert {row.plain for symbol, row in BINARY.items() if symbol.endswith("=")} == {
        symbol for symbol in BINARY if not symbol.endswith("=")
    }
    assert set(COMPARE) == {"<", "<=", "==", "!=", ">", ">="}
    assert set(UNARY) == {"-", "+", "~"}
