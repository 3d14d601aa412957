"""From a trace that has just begun to a cache entry: interpret the frame, call the backend, assemble, guard."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from types import CodeType

import torch

import fx_guards
from dynamo_capture.bytecode.decode import free_variables
from dynamo_capture.codegen.assembly import Assembly
from dynamo_capture.codegen.replay import close_dropped
from dynamo_capture.driver.active_interpreters import forward_level_guard
from dynamo_capture.driver.backend_call import BackendCall
from dynamo_capture.driver.retry import gives_other_sizes
from dynamo_capture.foundation.break_kinds import NOT_RESUMABLE, OTHER_INTERPRETER
from dynamo_capture.foundation.break_positions import Stopped
from dynamo_capture.foundation.errors import GUARD_FAILS, CaptureError, GraphBreak
from dynamo_capture.foundation.graph_breaks import BreakReport
from dynamo_capture.frames.callee_sizes import note_for_callees
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.resume_symbols import note
from dynamo_capture.frames.steps import PreparedCode
from dynamo_capture.function_transforms.captured import check_graph
from dynamo_capture.guard_kinds.floats import float_facts
from dynamo_capture.guard_kinds.guard_filter import kept_guards
from dynamo_capture.guard_kinds.interpreters.dispatch_modes import DispatchModes, ignoring_modes
from dynamo_capture.guard_kinds.interpreters.function_modes import FunctionModes, surrounding_modes
from dynamo_capture.guard_kinds.interpreters.function_transforms import function_transforms
from dynamo_capture.guard_kinds.tensor_contents import tensor_contents
from dynamo_capture.hook.frame_hook import Entry, FrameView, propagate
from dynamo_capture.interpreter.opcodes.dropping import check_before_generators
from dynamo_capture.interpreter.root_frame import Broken, RootFrame
from dynamo_capture.semantics.modes.modes import leave_all, switches
from dynamo_capture.session.report import Replacement
from dynamo_capture.session.session import Session
from dynamo_capture.sources.sources import ArrayTensorSource, FloatTensorSource
from dynamo_capture.trace import Trace
from dynamo_capture.values import CellValue, Lazy, Value
from fx_guards.kinds.state import FACTS
from fx_interface.errors import UnsupportedProgramError
from fx_interface.events import emit, is_heard, span
from fx_interface.python_runtime.own_builtins import CURRENT, WATCHED
from fx_interface.source import ClosureSource, LocalSource, Scope
from fx_interface.torch_internals.function_levels import levels_aside, open_levels
from fx_interface.torch_internals.modes import restored

_log = logging.getLogger("dynamo_capture")
_BUILTINS = fx_guards.known_object(CURRENT)


def capture(
    session: Session,
    view: FrameView,
    prepared: PreparedCode,
    broken: Broken | None,
    report: BreakReport | None,
    tx: Trace,
) -> Entry:
    """The cache entry for a frame whose trace has just begun: up to its return, or to where it has ``broken``."""
    tx.entry = switches()
    _surround(tx)
    tx.guards.add(fx_guards.DictEntries(_BUILTINS, WATCHED))
    tx.guards.add(forward_level_guard())
    with levels_aside():
        code, backend = _translated(session, view, prepared, broken, report, tx)
    if report is not None:
        _log.info("%s", report)
        emit("break", code=view.code, report=report)
    if backend.compiled is None and not tx.effects and report is None:
        code = view.code
    with span("guards", code=view.code) as event:
        made = _entry(session, view, tx, code, backend)
        event.note(replacement=made.extra, scope=scope_of(view) if is_heard() else None)
    return made


def _translated(
    session: Session,
    view: FrameView,
    prepared: PreparedCode,
    broken: Broken | None,
    report: BreakReport | None,
    tx: Trace,
) -> tuple[CodeType, BackendCall]:
    """The replacement code for a frame, and the graph that it calls."""
    with span("trace", code=view.code), _modes_restored(tx):
        variables = _variables(tx, view, session)
        given = {id(variables[name]): name for name in free_variables(view.code)}
        frame = RootFrame(tx, prepared, tx.inliner.root_scope(view.globals, view.builtins), variables)
        frames: list[Frame] = [frame]
        done = None
        if broken is not None and broken.stop is not None:
            tx.stop = broken.stop
            try:
                frame.run_until(None)
                raise GraphBreak(NOT_RESUMABLE, "tracing again took another way")
            except Stopped as stopped:
                frames = stopped.frames
        else:
            done = frame.run_until(None if broken is None else broken.count)
            if done is not None:
                check_before_generators(frame, done.value)
                close_dropped(tx, frame, done.value)
        left = switches()
        if done is None and tx.tensors.modes.has_changed:
            raise GraphBreak(
                OTHER_INTERPRETER, "a TorchFunctionMode is entered or left, and the graph ends there"
            )
        if done is not None and tx.blocks:
            raise GraphBreak(NOT_RESUMABLE, "a block of a mode is entered and not left")
        blocks = leave_all(tx)
        if tx.tensors.disabled:
            raise GraphBreak(NOT_RESUMABLE, "where __torch_function__ is disabled")
        if tx.levels:
            check_graph(tx)
        tx.calls.equal.check_changes()
    backend = BackendCall(session, tx, view, report)
    if session.weighs_arrays and _is_of_arrays(tx):
        from dynamo_capture.driver.small_arrays import is_left

        if is_left(session, view, tx, backend, done is not None):
            return view.code, backend
    assembly = Assembly(tx, frame, prepared.body, given, (tx.entry, left))
    if done is not None:
        code = assembly.for_return(done.value, backend.finish)
    else:
        note(session, tx, frames, broken is not None and gives_other_sizes(broken.reason))
        code = assembly.for_break(frames, blocks, session.resumes, backend.finish)
        note_for_callees(session, tx, frames, code)
    return code, backend


def _entry(session: Session, view: FrameView, tx: Trace, code: CodeType, backend: BackendCall) -> Entry:
    records = _guards(tx) if backend.guards is None else backend.guards
    try:
        kept = kept_guards(records, scope_of(view), session.guard_filter)
    except CaptureError as error:
        raise propagate(error) from error.__cause__
    guard_set = fx_guards.GuardSet(kept)
    evaluator = fx_guards.build(guard_set, varnames=view.code.co_varnames, freevars=view.code.co_freevars)
    if not evaluator.check(scope_of(view)):
        failure = fx_guards.first_failure(guard_set, scope_of(view))
        raise UnsupportedProgramError(
            GUARD_FAILS, f"a guard does not hold for the call it was made from: {failure}"
        )
    effects, by_data = tx.effects.described(), tuple(dict.fromkeys(tx.effects.by_data))
    replacement = Replacement(
        code, guard_set.guards, evaluator, backend.graph_module, backend.report, effects, by_data
    )
    session.report.replacements.append((view.code, replacement))
    entry = Entry(code, evaluator, replacement)
    if tx.tensors.state.assumed is not None:
        tx.tensors.state.assumed.belongs_to(entry)
    return entry


def _is_of_arrays(tx: Trace) -> bool:
    """Whether a graph reads tensors of numpy's arrays alone, and floats beside them."""
    sources = [item.source for item in tx.output.inputs if isinstance(item.example, torch.Tensor)]
    given = [source for source in sources if not isinstance(source, FloatTensorSource)]
    return bool(given) and all(isinstance(source, ArrayTensorSource) for source in given)


def _guards(tx: Trace) -> Sequence[fx_guards.GuardRecord]:
    """All that the replacement code of a trace depends on."""
    if tx.output.mutates:
        tx.guards.distinct([value.source for value in tx.tensors.inputs if value.source is not None])
    tx.guards.distinct([value.source for value in tx.keyed.values() if value.source is not None])
    tx.wrapping.guard_presence()
    for iterator in tx.running:
        iterator.guard(tx)
    for sources in tx.wrapping.possible_aliases(tx.effects.changed()):
        tx.guards.distinct(sources)
    sizes = tx.numbers.settle()
    if tx.facts:
        tx.guards.add(float_facts(tx.facts, tx.tensors.followed.written))
    if tx.tensors.state.relied:
        tx.guards.add(tensor_contents(tx.tensors.state.relied, tx.output.written))
    bindings = [(expr.as_symbol, source) for expr, source in tx.size_bindings]
    shapes = fx_guards.shape_relations(sizes, bindings, tx.packed_strides) if sizes.symbols else None
    if shapes is not None:
        tx.guards.add(shapes)
    return tx.guards.records


def _surround(tx: Trace) -> None:
    """Guard torch's state, and read the modes that are asked, and the transforms that are at work."""
    tx.levels = open_levels()
    if tx.levels:
        tx.output.in_transform = True
        tx.guards.add(function_transforms(tx.levels))
    guard, modes = surrounding_modes()
    ignoring = ignoring_modes()
    if not modes and ignoring is None:
        tx.guards.add(fx_guards.global_state())
        return
    tx.ignoring_modes = ignoring is not None
    found: list[FunctionModes | DispatchModes] = [guard] if modes else []
    found += [ignoring] if ignoring is not None else []
    for record in found:
        tx.guards.add(record)
    facts = {record.fact for record in found}
    tx.guards.add(fx_guards.global_state(name for name in FACTS if name not in facts))
    tx.tensors.modes.surround([tx.force(tx.wrap(mode, source)) for mode, source in modes])


@contextlib.contextmanager
def _modes_restored(tx: Trace) -> Iterator[None]:
    with restored():
        try:
            yield
        finally:
            if not tx.is_released:
                for block in reversed(tx.blocks):
                    block.undo()
                if tx.tensors.modes.devices is not None:
                    tx.tensors.modes.devices()


def _variables(tx: Trace, view: FrameView, session: Session) -> dict[str, Value]:
    """A frame's variables at its entry: arguments and free variables, unread."""
    handed_on = session.handed_on.get(id(view.code))
    variables: dict[str, Value] = {
        name: Lazy(real, LocalSource(name, handed_on)) for name, real in view.locals.items()
    }
    names = view.code.co_freevars, free_variables(view.code)
    for name, slot, cell in zip(*names, view.closure, strict=True):
        content: Value | None = None
        with contextlib.suppress(ValueError):
            content = Lazy(cell.cell_contents, ClosureSource(name))
        made = CellValue(content, cell)
        tx.wrapping.remember(cell, made)
        variables[slot] = made
    return variables


def scope_of(view: FrameView) -> Scope:
    """The roots that guards read from, for this call."""
    closure = {}
    for name, cell in zip(view.code.co_freevars, view.closure, strict=True):
        with contextlib.suppress(ValueError):
            closure[name] = cell.cell_contents
    return Scope(dict(view.locals), view.globals, closure, view.builtins)
