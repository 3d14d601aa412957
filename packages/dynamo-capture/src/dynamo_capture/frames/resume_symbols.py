"""What is known to vary when a function goes on after a graph break: sizes and integers that were symbols before it.

rows = x[mask]          # as many as the mask has set elements
print(len(log))         # the graph ends
y = rows * 2            # ``rows`` of any number, the first time already
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from types import CodeType

from dynamo_capture.bytecode import ResumeCodes
from dynamo_capture.bytecode.decoded import decoded
from dynamo_capture.bytecode.liveness import reads_and_writes
from dynamo_capture.bytecode.loops import loop_left_at, region_from
from dynamo_capture.bytecode.resume.analysis import Parameter, parameter_name
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.left_functions import left_loop
from dynamo_capture.session.session import Session
from dynamo_capture.session.size_history import Form, SizeHistory, Varying
from dynamo_capture.values import (
    CellValue,
    DictValue,
    Lazy,
    ListValue,
    SliceValue,
    TensorValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.late_sequences import (
    NumberList,
    PartsList,
    PartsTuple,
    RangeList,
    RepeatedList,
)
from fx_interface.source import LocalSource
from fx_interface.symbols import Expr


def note(session: Session, tx: Context, frames: Sequence[Frame], opens: bool) -> None:
    """A graph ends with ``frames`` where they stand: what of their variables, and of their stacks, varies. ``opens``:
    what the innermost one's instruction gives varies, too."""
    for frame in frames:
        original = tx.resumes.original(frame.code)
        known = session.varying.setdefault(id(original), (original, {}))[1]
        for name, value in frame.variables.items():
            _note(tx, name, value, known)
        for depth, value in enumerate(frame.stack):
            _note(tx, _place(depth), value, known)
        known.update(dict.fromkeys(_resized_in(frame, _left_by_data(frame)), "all"))
    loop = left_loop(frames[-1], frames[-1].next)
    if loop is not None:
        known.update(dict.fromkeys(_changed_in(frames[-1], loop), "all"))
        if loop > frames[-1].next + 1:  # a comprehension, whose result may be where its iterable was
            known[_place(len(frames[-1].stack) - 1)] = "all"
        return
    place = _place_of_result(frames[-1]) if opens else None
    if place is not None:
        known[_place(place)] = "all"


def _changed_in(frame: Frame, loop: int) -> Iterator[str]:
    """The variables that a loop gives other values, and those whose lists and dicts it may fill."""
    facts = decoded(frame.code)
    for index in sorted(region_from(facts.flow, frame.next, loop)):
        instruction = facts.body.instructions[index]
        read, stored = reads_and_writes(instruction)
        yield from stored
        if instruction.opname == "STORE_DEREF":
            yield str(instruction.argval)
        for name in read if instruction.opname != "LOAD_DEREF" else (str(instruction.argval),):
            value = frame.variables.get(name)
            value = value.content if isinstance(value, CellValue) else value
            if isinstance(value, ListValue | DictValue):
                yield name


_RESIZING = frozenset({"append", "extend", "insert", "pop", "remove", "clear"})


def _resized_in(frame: Frame, loop: Collection[int]) -> Iterator[str]:
    """The variables whose lists a loop makes longer or shorter: ``found.append(x)``, ``found += [x]``."""
    instructions = decoded(frame.code).body.instructions
    for index in sorted(loop):
        before, instruction = instructions[index - 1], instructions[index]
        if instruction.opname in ("LOAD_METHOD", "LOAD_ATTR") and instruction.argval in _RESIZING:
            yield from reads_and_writes(before)[0][-1:]
        elif before.opname == "BINARY_OP" and before.argval == "+=":
            stored = reads_and_writes(instruction)[1]
            yield from (name for name in stored if isinstance(frame.variables.get(name), ListValue))


def _left_by_data(frame: Frame) -> frozenset[int]:
    """The loop that ends when Python says so, if a frame stands in the condition of the branch: nobody knows how many
    rounds it has."""
    flow = decoded(frame.code).flow
    for index in range(frame.next, len(flow.instructions)):
        opname = flow.instructions[index].opname
        if opname.startswith("POP_JUMP"):
            return loop_left_at(flow, index)
        if opname.startswith(_STATEMENT_ENDS):
            break
    return frozenset()


_STATEMENT_ENDS = ("STORE_", "DELETE_", "POP_TOP", "JUMP_", "RETURN_", "FOR_ITER", "YIELD_")


def _note(tx: Context, name: str, value: Value, known: Varying) -> None:
    if isinstance(value, CellValue):
        if value.content is not None:
            _note(tx, name, value.content, known)
        return
    if tx.policy.is_open(value.source) or is_unread(value):
        known[name] = "all"
    elif isinstance(value, Lazy):
        what = None if value.source is None else tx.policy.varying(value.source)
        if what is not None:
            known[name] = what
    elif value.expr is not None and tx.env.is_from_data(value.expr):
        known[name] = "integer"
    elif value.expr is not None and isinstance(tx.env.simplify(value.expr), Expr):
        known[name] = "size"
    elif isinstance(value, TensorValue) and not value.meta.spec.is_static:
        spec = value.meta.spec
        known[name] = Form(
            *(tuple(None if isinstance(n, Expr) else n for n in of) for of in (spec.sizes, spec.strides))
        )
    elif isinstance(value, SliceValue):
        for bound, item in zip(("start", "stop", "step"), value.bounds, strict=True):
            _note(tx, f"{name}.{bound}", item, known)
    elif isinstance(value, TupleValue) and value.cls is tuple:
        for index, item in enumerate(value.items):
            _note(tx, f"{name}[{index}]", item, known)


def is_unread(value: Value) -> bool:
    """Whether nobody has asked of how many items it is."""
    return (
        isinstance(value, NumberList | PartsTuple | PartsList | RangeList | RepeatedList) and value.is_unread
    )


def _place_of_result(frame: Frame) -> int | None:
    """Where on its stack a frame will have what its instruction gives, if that gives anything."""
    facts = decoded(frame.code)
    after = facts.depths[frame.next + 1] if frame.next + 1 < len(facts.depths) else None
    if not after or facts.body.instructions[frame.next].opname.startswith(_WITHOUT_RESULT):
        return None
    return after - 1


_WITHOUT_RESULT = ("STORE_", "DELETE_", "POP_", "JUMP_")


def _place(depth: int) -> str:
    """The name of a resume function's parameter for a place on the stack."""
    return parameter_name(Parameter("stack", depth))


def history_of(session: Session, code: CodeType, resumes: ResumeCodes) -> SizeHistory:
    """What code's inputs looked like before; of a function that goes on, what is known to vary."""
    found = session.histories.get(id(code))
    if found is None:
        found = session.histories[id(code)] = SizeHistory()
        _, known = session.varying.get(id(resumes.original(code)), (code, {}))
        if resumes.is_resume_function(code):
            names = (*code.co_varnames[: code.co_argcount], *code.co_freevars)
            found.hand_down(known, {name: LocalSource(name).expression for name in names})
    return found
