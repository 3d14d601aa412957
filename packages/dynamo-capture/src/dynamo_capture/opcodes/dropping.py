"""What a frame drops: an object whose death runs code of the program dies at its instruction, in Python.

A resume function has the only reference to what its frame held (``bytecode/splice.py``), so that what it pops or
overwrites may die there: a generator that a loop leaves by ``break`` runs its ``finally`` blocks, an object its
``__del__``.
"""

from __future__ import annotations

from types import GeneratorType
from typing import TYPE_CHECKING

from dynamo_capture.errors import GraphBreak
from dynamo_capture.values import ObjectValue, Value
from fx_interface.source import LocalSource

if TYPE_CHECKING:
    from dynamo_capture.frame import Frame


def check_dropped(frame: Frame, value: Value | None) -> None:
    """End the graph before an instruction that drops an object of the frame's, if it may have a finalizer."""
    if type(value) is not ObjectValue or type(value.source) is not LocalSource:
        return
    if value.cls is GeneratorType or frame.tx.attributes.has_special(value, "__del__"):
        raise GraphBreak("CAP240", f"{value.describe()}, which has a finalizer, is dropped")
