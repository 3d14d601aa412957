"""JSON data lead back to the values that they were made from, and to the very same symbolic integers."""

from __future__ import annotations

import json
import operator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fx_interface import CorruptArtifactError, UnsupportedProgramError, UserLocation
from fx_interface.serialization.encoding import (
    decode,
    decode_expr,
    decode_location,
    decode_source,
    encode,
    encode_expr,
    encode_location,
    encode_source,
)
from fx_interface.source import HandedOn, ItemSource, LocalSource, Source
from fx_interface.symbols import IntLike, floordiv, maximum, minimum, mod, symbol

RULES = (operator.add, operator.sub, operator.mul, floordiv, mod, minimum, maximum)
LEAVES = st.one_of(st.integers(-5, 9), st.sampled_from(["s0", "s1", "u2"]).map(symbol))


@st.composite
def expressions(draw: st.DrawFn) -> IntLike:
    value: IntLike = draw(LEAVES)
    for _ in range(draw(st.integers(0, 6))):
        try:
            value = draw(st.sampled_from(RULES))(value, draw(LEAVES))
        except ZeroDivisionError:
            continue
    return value


@settings(max_examples=400, deadline=None)
@given(expressions())
def test_expressions_come_back_as_the_same_object(value: IntLike) -> None:
    again = decode_expr(json.loads(json.dumps(encode_expr(value))))
    assert again == value
    assert isinstance(value, int) or again is value


def test_lines_of_the_user() -> None:
    where = UserLocation("model.py", 3, "forward")
    assert decode_location(encode_location(where)) == where
    assert decode_location(encode_location(None)) is None


@pytest.mark.parametrize(
    "data",
    [{"nonsense": 1}, {"dtype": "add"}, {"dtype": "nonsense"}, {"type": "Module"}, {"tuple": [], "list": []}],
)
def test_data_of_no_kind_are_corrupt(data: Any) -> None:
    with pytest.raises(CorruptArtifactError, match="FXI301"):
        decode(data)


def test_a_source_of_another_class_has_no_form() -> None:
    class Foreign(Source):
        pass

    with pytest.raises(UnsupportedProgramError, match="FXI302"):
        encode_source(Foreign())
    with pytest.raises(CorruptArtifactError):
        decode_source(["Foreign"])
    with pytest.raises(CorruptArtifactError):
        decode_source(["LocalSource", "x", "y"])
    assert decode_source(encode_source(LocalSource("x"))) == LocalSource("x")


def test_names_of_arguments_that_are_handed_on_are_stored() -> None:
    source = LocalSource("args", HandedOn(("x", "y"), "rest", frozenset({"self"})))
    text = json.dumps(encode_source(ItemSource(source, 1)))
    assert decode_source(json.loads(text)).expression == "y"
    assert json.dumps(encode_source(decode_source(json.loads(text)))) == text
    for wrong in ([["x"], 3, []], [["x"], None], [[1], None, []], ["x", None, ["y"]]):
        with pytest.raises(CorruptArtifactError):
            decode_source(["LocalSource", "args", wrong])


def test_nodes_need_a_numbering() -> None:
    node = torch.fx.Graph().placeholder("x")
    assert encode([node], lambda _: 7) == [{"node": 7}]
    with pytest.raises(UnsupportedProgramError):
        encode([node])
