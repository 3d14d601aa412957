"""Sameness of constants is an equivalence that keys decide."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fx_guards.kinds.constants import constant_key, constants_equal

ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.0, -0.0, 1.0, float("nan"), float("inf")]),
    st.sampled_from(["", "a", b"", b"a", 0j, 1j, ..., slice(1), slice(True)]),
)  # fmt: skip
VALUES = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5)


@given(VALUES, VALUES)
def test_keys_decide(a: Any, b: Any) -> None:
    assert constants_equal(a, b) == (constant_key(a) == constant_key(b))
    assert constants_equal(a, b) == constants_equal(b, a)
    assert constants_equal(a, a)


@given(VALUES)
def test_keys_can_be_hashed(value: Any) -> None:
    assert hash(constant_key(value)) == hash(constant_key(value))
