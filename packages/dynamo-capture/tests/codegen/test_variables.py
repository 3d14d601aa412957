"""What variables and cells are put back where a graph ends: those that are live and not where they were."""

from __future__ import annotations

import pytest

import dynamo_capture.driver.optimizer  # noqa: F401  # all of the translator, in the order that its modules need
from dynamo_capture.bytecode import decode
from dynamo_capture.bytecode.emit import Emitter
from dynamo_capture.codegen.variables import variables_at_break
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.globals_scope import GlobalsScope
from dynamo_capture.frames.steps import prepare
from dynamo_capture.values import CellValue, Const, TupleValue
from fx_interface.source import LocalSource


def program(a, b, c):
    d = a
    return lambda: (b, c), d


@pytest.fixture
def standing(tx):
    """A frame of ``program`` before its last instruction, with these variables; what must be put back."""

    def stand(variables, free=None, keep=()):
        body = decode(program.__code__)
        frame = Frame(tx, prepare(program.__code__), GlobalsScope(tx, globals(), None), variables)
        enter = next(i for i, step in enumerate(body.instructions) if step.argval == "d" and i > 4)
        return variables_at_break(frame, enter, free or {}, keep)

    return stand


def cell(content):
    made = CellValue()
    made.content = content
    return made


def argument(tx, value, name):
    return tx.wrap(value, LocalSource(name))


def test_only_what_is_live_and_moved_is_stored(tx, standing):
    there = argument(tx, [1], "b")
    found = standing({"a": Const(1), "b": cell(there), "c": cell(Const(2)), "d": Const(3)})
    assert [name for name, _ in found.plain] == ["d"], "a is read no more"
    assert [name for name, _ in found.contents] == ["c"], "b holds the argument that it held"
    emitter = Emitter()
    found.store(emitter)
    assert [(i.opname, i.argval) for i in emitter.instructions] == [("STORE_DEREF", "c"), ("STORE_FAST", "d")]


def test_what_is_to_be_kept_is_stored_though_nothing_reads_it(standing):
    found = standing({"a": Const(1), "b": cell(Const(2)), "c": cell(Const(2)), "d": Const(3)}, keep=("a",))
    assert [name for name, _ in found.plain] == ["a", "d"]


def test_what_a_cell_has_lost_is_deleted(tx, standing):
    found = standing({"a": Const(1), "b": cell(None), "c": cell(Const(2))})
    assert dict(found.contents)["b"] is None
    assert list(found.values()) == [dict(found.contents)["c"]]
    emitter = Emitter()
    found.store(emitter)
    assert ("DELETE_DEREF", "b") in [(i.opname, i.argval) for i in emitter.instructions]


def test_cells_have_their_names(tx, standing):
    own, given = cell(TupleValue([])), cell(Const(1))
    found = standing({"b": own, "c": given}, {id(given): "outer"})
    assert found.cells[id(own)] == "b"
    assert found.cells[id(given)] == "c"
