"""A substitute takes the keywords that its original takes."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import dynamo_capture.polyfills.torch  # noqa: F401  # fills the table
from dynamo_capture.polyfills.registry import SUBSTITUTES
from dynamo_capture.semantics.calls.signatures import signature_of

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def keywords_of(function: Any) -> tuple[str, ...]:
    signature = signature_of(function)
    return tuple(p.name for p in signature.parameters.values() if p.kind in _BY_NAME) if signature else ()


@pytest.mark.parametrize(
    "original", [one for one in SUBSTITUTES if keywords_of(one)], ids=lambda one: one.__name__
)
def test_keywords(original: Any) -> None:
    taken = inspect.signature(SUBSTITUTES[original]).parameters.values()
    names = {parameter.name for parameter in taken if parameter.kind in _BY_NAME}
    any_name = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in taken)
    assert any_name or set(keywords_of(original)) <= names | {"self"}
