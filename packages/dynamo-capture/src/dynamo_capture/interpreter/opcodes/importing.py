"""``import`` statements: modules are imported while tracing, and guarded by identity."""

from __future__ import annotations

import sys

from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.opcode_table import opcode
from dynamo_capture.frames.steps import Step
from dynamo_capture.semantics.attributes.imported import check_import, imported_module
from dynamo_capture.sources.sources import known_object
from dynamo_capture.values import Const, ObjectValue, Value
from dynamo_capture.values.base import Context
from fx_interface.python_runtime.own_builtins import OWN_BUILTINS
from fx_interface.source import ItemSource

_IMPORT = OWN_BUILTINS["__import__"]
"""Python's own, as it was at import."""


@opcode("IMPORT_NAME")
def import_name(frame: Frame, step: Step) -> None:
    level, names = (value.as_constant() for value in frame.pop_n(2))
    if frame.globals.importer() is not _IMPORT:
        raise GraphBreak(NOT_IN_PYTHON, "`__import__` has been replaced")
    scope = frame.globals.real
    if not level:
        check_import(frame.tx, step.argval)
    elif scope.get("__package__") is None and scope.get("__spec__") is None:
        raise GraphBreak(
            NOT_IN_PYTHON, "a module that does not know its package is to import relatively, which warns"
        )
    try:
        found = frame.tx.fold(lambda: _IMPORT(step.argval, scope, None, names, level))
    except UserRaise as raised:
        _guard_missing(frame.tx, raised.value)
        raise
    frame.stack.append(imported_module(frame.tx, found, step.argval))


def _guard_missing(tx: Context, error: ObjectValue) -> None:
    """A module that is not found has not been loaded since, and is looked for in the same places."""
    name = error.attrs.get("name")
    if not issubclass(error.cls, ModuleNotFoundError) or not isinstance(name, Const):
        return
    tx.guards.absent(known_object(sys.modules), name.value)
    for searched in (sys.path, sys.meta_path):
        held = known_object(searched)
        tx.guards.length(held, searched)
        for index, item in enumerate(searched):
            tx.guards.is_object(ItemSource(held, index), item)


@opcode("IMPORT_FROM")
def import_from(frame: Frame, step: Step) -> None:
    tx, module = frame.tx, frame.stack[-1]
    try:
        found = module.get_attr(tx, step.argval)
    except UserRaise as raised:
        if not issubclass(raised.value.python_type(), AttributeError):
            raise
        found = _submodule(tx, module, step.argval)
    frame.stack.append(found)


def _submodule(tx: Context, module: Value, name: str) -> Value:
    """A submodule that its package does not have as an attribute (yet); ImportError if there is none."""
    package = tx.constant(module)
    full = f"{getattr(package, '__name__', None)}.{name}"
    if full in sys.modules:
        return imported_module(tx, sys.modules[full], full)
    origin = getattr(package, "__file__", None) or "unknown location"
    known = getattr(package, "__name__", None) or "<unknown module name>"
    raised = tx.raises(ImportError, f"cannot import name {name!r} from {known!r} ({origin})")
    raised.value.attrs |= {"name": Const(known), "path": Const(getattr(package, "__file__", None))}
    raise raised


__all__ = ["import_from", "import_name"]
