"""Answers about classes are kept as long as the class."""

from __future__ import annotations

import gc
import weakref

from dynamo_capture.foundation.per_class import once_per_class


def test_asked_once_and_forgotten() -> None:
    asked: list[str] = []

    @once_per_class
    def name(cls: type) -> str:
        asked.append(cls.__name__)
        return cls.__name__

    class Made:
        pass

    assert (name(Made), name(Made), name(int)) == ("Made", "Made", "int")
    assert asked == ["Made", "int"]
    gone = weakref.ref(Made)
    del Made
    gc.collect()
    assert gone() is None
