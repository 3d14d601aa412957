"""Guards on tensors: every part of the metadata counts, and native reading agrees."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import fx_guards
from fx_interface.source import LocalSource

X, Y, Z = map(LocalSource, "xyz")


class Wrapped(torch.Tensor):
    """A subclass: its metadata may be anywhere."""


def function(x: Any, y: Any = None, z: Any = None) -> None: ...


def sparse() -> torch.Tensor:
    return torch.eye(3).to_sparse()


def inference() -> torch.Tensor:
    with torch.inference_mode():
        return torch.zeros(2, 3)


def variants() -> list[Any]:
    base = torch.zeros(2, 3)
    leaf = torch.zeros(2, 3, requires_grad=True)
    return [
        base,
        leaf,
        leaf * 2,
        leaf.detach(),
        torch.nn.Parameter(base),
        torch.nn.Parameter(base, requires_grad=False),
        base.double(),
        base.to(torch.complex64),
        base.to(torch.complex64).conj(),
        base.to(torch.complex64).conj().imag,
        torch.zeros(3, 2).t(),
        torch.zeros(2, 4),
        torch.zeros(2, 3, 1),
        torch.zeros(()),
        torch.zeros((1,) * 7),
        torch.zeros((1,) * 6 + (2,)),
        torch.empty(2, 3, device="meta"),
        base.as_subclass(Wrapped),
        sparse(),
        inference(),
        torch.zeros(2, 3, dtype=torch.complex32),
        torch.quantize_per_tensor(base, 1.0, 0, torch.qint8),
        None,
        3,
        [base],
    ]


def test_each_kind_of_tensor_matches_itself_only() -> None:
    values = variants()
    for i, one in enumerate(values):
        if not isinstance(one, torch.Tensor):
            continue
        guard = fx_guards.tensor_match(X, one)
        evaluator = fx_guards.build([guard], varnames=("x",))
        for j, other in enumerate(values):
            same = i == j or {i, j} in ({0, 3}, {1}, {1, 2})
            assert guard.holds(other) is same, (i, j, guard.explain(other))
            assert evaluator.check_call(function, other) is same
            if not same:
                assert "expected" in guard.explain(other)


def test_a_leaf_can_be_told_from_a_result() -> None:
    import dataclasses

    leaf = torch.zeros(2, requires_grad=True)
    guard = dataclasses.replace(fx_guards.tensor_match(X, leaf), is_leaf=True)
    evaluator = fx_guards.build([guard], varnames=("x",))
    for value, holds in [(leaf, True), (leaf * 2, False)]:
        assert guard.holds(value) is holds
        assert evaluator.check_call(function, value) is holds


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 3), max_size=7),
    st.lists(st.integers(0, 3), max_size=7),
    st.sets(st.integers(0, 6)),
)
def test_open_dimensions(sizes: list[int], other: list[int], open_: set[int]) -> None:
    guard = fx_guards.tensor_match(X, torch.empty(sizes), dynamic_sizes=open_, dynamic_strides=open_)
    evaluator = fx_guards.build([guard], varnames=("x",))
    for value in (
        torch.empty(sizes),
        torch.empty(other),
        torch.empty(sizes[::-1]).t() if len(sizes) <= 2 else None,
    ):
        assert evaluator.check_call(function, value) == guard.holds(value)


def test_changes_in_place_are_seen() -> None:
    tensor = torch.zeros(4)
    evaluator = fx_guards.build([fx_guards.tensor_match(X, tensor)], varnames=("x",))
    assert evaluator.check_call(function, tensor)
    tensor.requires_grad_(True)
    assert not evaluator.check_call(function, tensor)
    tensor.requires_grad_(False)
    tensor.resize_(5)
    assert not evaluator.check_call(function, tensor)
    tensor.resize_(4)
    assert evaluator.check_call(function, tensor)
    tensor.data = torch.zeros(4, dtype=torch.float64)
    assert not evaluator.check_call(function, tensor)


def test_storage_groups() -> None:
    base, own = torch.zeros(6), torch.zeros(2)
    tensors = [base[:3], own, base[3:]]
    guard = fx_guards.storage_groups([X, Y, Z], tensors)
    assert guard.groups == (0, 1, 0)
    evaluator = fx_guards.build([guard], varnames=("x", "y", "z"))
    cases: list[tuple[list[Any], bool]] = [
        (tensors, True),
        ([base, own, base[1:]], True),
        ([base, base, base], False),
        ([base, own, own], False),
        ([base, own, torch.zeros(1)], False),
        ([base.as_subclass(Wrapped), own, base], True),
        ([base, own, None], False),
    ]
    for values, holds in cases:
        assert guard.holds(tuple(values)) is holds
        assert evaluator.check_call(function, *values) is holds
    assert guard.explain((base, own, own)) == "x and z no longer share memory"


def test_explanations_name_the_first_difference() -> None:
    guard = fx_guards.tensor_match(X, torch.zeros(2, 3), dynamic_sizes={0})
    assert guard.explain(torch.zeros(2, 4)) == "expected sizes [*, 3], got [2, 4]"
    assert guard.explain(torch.zeros(3, 2).t()) == "expected strides [3, 1], got [1, 2]"
    assert guard.explain(torch.zeros(2, 3).double()) == "expected dtype torch.float32, got torch.float64"
    assert guard.explain(None).startswith("expected type torch.Tensor, got NoneType")


def test_without_native_reading_the_record_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    from fx_guards import _native, torch_bridge

    tensor = torch.zeros(2, 3)
    evaluator = fx_guards.build([fx_guards.tensor_match(X, tensor)], varnames=("x",))
    _native.set_tensor_layout(None)
    try:
        assert evaluator.check_call(function, tensor)
        assert not evaluator.check_call(function, tensor.t())
        with pytest.raises(ValueError):
            _native.tensor_metadata(tensor)
    finally:
        torch_bridge.calibration.cache_clear()
        assert torch_bridge.calibration() is not None
    assert _native.tensor_metadata(tensor)[6] == (2, 3)


def test_a_subclass_is_not_asked() -> None:
    asked = []

    class Watching(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    tensor = torch.ones(2).as_subclass(Watching)
    with torch._C.DisableTorchFunctionSubclass():
        guard = fx_guards.tensor_match(LocalSource("x"), tensor)
    assert guard.holds(tensor)
    assert not guard.holds(torch.ones(2))
    assert not asked
