"""The rest of a function raises for a shared variable without a value what the function itself does."""

from __future__ import annotations

from types import CellType, FunctionType
from typing import Any

import pytest

from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.decoded import decoded
from dynamo_capture.bytecode.resume.code import ResumeCodes
from dynamo_capture.bytecode.resume.unbound_cells import raise_as_own


def reads(given: int) -> Any:
    if given:
        shared = given
    try:
        return shared
    finally:
        del shared
        (lambda: shared)  # noqa: F821


def always(given: int) -> Any:
    shared = given
    return shared, lambda: shared


def _rest(function: Any, *given: Any) -> Any:
    code = function.__code__
    start = next(i for i, one in enumerate(decode(code).instructions) if one.opname == "RESUME") + 1
    plan = ResumeCodes().make(code, start)
    cells = tuple(CellType() for _ in plan.freevars)
    return FunctionType(plan.code, function.__globals__, closure=cells)(*given)


def test_the_rest_raises_what_the_function_does() -> None:
    for given in (0, 1):
        outcomes = []
        for call in (reads, lambda n: _rest(reads, n)):
            try:
                outcomes.append(call(given))
            except NameError as error:
                outcomes.append((type(error), str(error), type(error.__context__)))
        assert outcomes[0] == outcomes[1]


def test_only_what_may_have_no_value_is_protected() -> None:
    for function, protected in ((reads, True), (always, False)):
        facts = decoded(function.__code__)
        twins = facts.body.clone_with_map()[1]
        assert bool(raise_as_own(facts, twins)) is protected


def test_free_variables_stay_free() -> None:
    def inner() -> Any:
        return later

    with pytest.raises(NameError, match="free variable") as raised:
        FunctionType(inner.__code__, globals(), closure=(CellType(),))()
    assert raised.type is NameError
    assert raise_as_own(decoded(inner.__code__), {}) == []
    later = 1
