"""What is known to vary when a function goes on after a graph break: sizes and integers that were symbols before it.

rows = x[mask]          # as many as the mask has set elements
print(len(log))         # the graph ends
y = rows * 2            # ``rows`` of any number, the first time already
"""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType

from dynamo_capture.bytecode import ResumeCodes
from dynamo_capture.frames.frame import Frame
from dynamo_capture.session.session import Session
from dynamo_capture.session.specialization import SizeHistory
from dynamo_capture.values import TensorValue
from dynamo_capture.values.base import Context
from fx_interface.source import LocalSource
from fx_interface.symbols import Expr


def note(session: Session, tx: Context, frames: Sequence[Frame]) -> None:
    """A graph ends with ``frames`` where they stand: what of their variables varies."""
    for frame in frames:
        original = tx.resumes.original(frame.code)
        known = session.varying.setdefault(id(original), (original, {}))[1]
        for name, value in frame.variables.items():
            if value.expr is not None and tx.env.is_from_data(value.expr):
                known[name] = None
            elif isinstance(value, TensorValue) and not value.meta.spec.is_static:
                sizes = value.meta.spec.sizes
                known[name] = tuple(None if isinstance(size, Expr) else size for size in sizes)


def history_of(session: Session, code: CodeType, resumes: ResumeCodes) -> SizeHistory:
    """What code's inputs looked like before; of a function that goes on, what is known to vary."""
    found = session.histories.get(id(code))
    if found is None:
        found = session.histories[id(code)] = SizeHistory()
        _, known = session.varying.get(id(resumes.original(code)), (code, {}))
        for name, sizes in known.items() if resumes.is_resume_function(code) else ():
            expression = LocalSource(name).expression
            if sizes is None:
                found.open_integers.add(expression)
            else:
                found.sizes[expression] = sizes
    return found
