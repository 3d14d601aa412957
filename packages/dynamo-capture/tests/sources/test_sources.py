"""Items past a class's own ``__getitem__``, and what weak references refer to."""

from __future__ import annotations

import weakref
from typing import Any

from dynamo_capture.sources.sources import ContentSource, ReferentSource, item_source
from fx_interface.source import ItemSource, LocalSource

ROOT = LocalSource("x")


class Shifted(list):  # type: ignore[type-arg]
    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key - 1)


class Table(dict):  # type: ignore[type-arg]
    def __getitem__(self, key: Any) -> Any:
        return "own"


def test_a_class_with_its_own_items_is_read_past_it() -> None:
    assert item_source(ROOT, 1, Shifted) == ContentSource(ROOT, 1)
    assert ContentSource(ROOT, 1).step(Shifted("abc")) == "b"
    assert ContentSource(ROOT, "k").step(Table(k=3)) == 3
    assert ContentSource(ROOT, 1).expression == "x[1]"
    assert ContentSource(ROOT, 1).base == ROOT


def test_others_are_read_plainly() -> None:
    assert item_source(ROOT, 1, list) == ItemSource(ROOT, 1)
    assert item_source(ROOT, "k", type("Plain", (dict,), {})) == ItemSource(ROOT, "k")


def test_a_referent_is_read_each_time() -> None:
    held = Shifted()
    reference = weakref.ref(held)
    source = ReferentSource(ROOT)
    assert source.step(reference) is held
    del held
    assert source.step(reference) is None
    assert source.expression == "x()"
