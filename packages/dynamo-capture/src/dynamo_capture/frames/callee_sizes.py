"""What sizes vary of what Python is given in the middle of a function, for the functions that it calls there.

for block in self.blocks:      # left to Python in the second call: more rounds than in the first
    hidden = block(hidden)     # captured for the first time now, and yet of a size that is known to vary

By the sizes' values in this call: a tensor that a function is given and that has one of them in some dimension has
another one there in another call, most likely. A dimension that happens to be as large is a symbol without need.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from types import CodeType, FrameType

import torch

from dynamo_capture.foundation.class_members import is_one_of
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.resume_symbols import is_unread
from dynamo_capture.session.session import Session
from dynamo_capture.session.size_history import Form
from dynamo_capture.values import CellValue, Lazy, TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context
from fx_interface.symbols import Expr

_PLAIN = (torch.Tensor, torch.nn.Parameter)
"""Classes of tensors that tell their sizes without code of the program."""


def note_for_callees(session: Session, tx: Context, frames: Sequence[Frame], code: CodeType) -> None:
    """A graph ends with ``frames`` where they stand, and ``code`` runs what the graph does not."""
    values = chain.from_iterable((*frame.variables.values(), *frame.stack) for frame in frames)
    found = frozenset(size for value in values for size in _sizes(tx, value) if size >= 2)
    if found:
        session.open_sizes[id(code)] = (code, found)


def _sizes(tx: Context, value: Value) -> Iterator[int]:
    match value:
        case CellValue(content=Value() as content):
            yield from _sizes(tx, content)
        case TensorValue():
            sizes = [size for size in value.meta.spec.sizes if isinstance(size, Expr)]
            yield from (tx.env.hint(size) for size in sizes if not tx.env.is_from_data(size))
        case Lazy(source=source, real=real) if source is not None and is_one_of(type(real), _PLAIN):
            known, own = tx.policy.varying(source), _own_sizes(real)
            if isinstance(known, Form) and len(known.sizes) == len(own):
                yield from (size for size, seen in zip(own, known.sizes, strict=True) if seen is None)
        case TupleValue() if not is_unread(value):
            for item in value.items:
                yield from _sizes(tx, item)


def _own_sizes(tensor: torch.Tensor) -> Sequence[int]:
    """``tensor.shape``, of which a ``TorchFunctionMode`` is not asked; a nested tensor has none."""
    with torch._C.DisableTorchFunction():
        return () if tensor.is_nested else torch.Tensor.size(tensor)


def sizes_around(session: Session, code: CodeType) -> frozenset[int]:
    """What sizes that vary are now in the nearest captured code that calls a frame of ``code``. Nothing for
    a resume function, of whose parameters it is known what varies."""
    if not session.open_sizes or session.resumes.is_resume_function(code):
        return frozenset()
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        known = session.open_sizes.get(id(frame.f_code))
        if known is not None:
            return known[1]
        frame = frame.f_back
    return frozenset()
