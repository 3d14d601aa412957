"""Whose gradients only their kernels know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from fx_interface.operator_facts.unknown_histories import has_unknown_history


@pytest.fixture(scope="module")
def operators() -> Iterator[Any]:
    library = torch.library.Library("unknown_histories_tests", "DEF")  # type: ignore[no-untyped-call]
    kernels = {
        "plain": "CPU",
        "anywhere": "CompositeExplicitAutograd",
        "decomposed": "CompositeImplicitAutograd",
    }
    for name, key in kernels.items():
        library.define(f"{name}(Tensor x) -> Tensor")  # type: ignore[no-untyped-call]
        library.impl(name, lambda x: x.sin(), key)  # type: ignore[no-untyped-call]
    library.define("written(Tensor(a!) x) -> ()")  # type: ignore[no-untyped-call]
    yield torch.ops.unknown_histories_tests
    library._destroy()  # type: ignore[no-untyped-call]


def test_what_has_no_formula(operators: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    whole = torch.ones(2, dtype=torch.int64)
    for op in (operators.plain.default, operators.anywhere.default):
        assert has_unknown_history(op, ([x],), x)
        assert not has_unknown_history(op, ([whole],), x)
        assert not has_unknown_history(op, ([x],), (whole,))
        with torch.no_grad():
            assert not has_unknown_history(op, ([x],), x)
    assert has_unknown_history(operators.written.default, ((x,), {}), None)


def test_what_has_one(operators: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    assert not has_unknown_history(operators.decomposed.default, ([x],), x)
    assert not has_unknown_history(torch.ops.aten.sin.default, ([x],), x)
