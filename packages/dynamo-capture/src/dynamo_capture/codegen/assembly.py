"""Replacement code of one frame: inputs, the graph's call, effects, and the return or the place of a graph break."""

from __future__ import annotations

import builtins
import contextlib
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from types import CodeType
from typing import Any

import torch

import fx_guards
from dynamo_capture import _eval_frame
from dynamo_capture.bytecode import CodeBody, Instruction, Position, assemble, body_like, function_prologue
from dynamo_capture.bytecode.emit import STARTS_UNINTERRUPTED, Emitter, start_of
from dynamo_capture.bytecode.resume.code import ResumeCodes
from dynamo_capture.bytecode.resume.splice import splice, splice_call
from dynamo_capture.codegen import rerun_on_error
from dynamo_capture.codegen.bridges import bridge, exit_of_call, exits_after, first_of_call, slots
from dynamo_capture.codegen.collect import Collector
from dynamo_capture.codegen.handled_exceptions import HandlingStack, exits_of_handler
from dynamo_capture.codegen.held_objects import FrameLocals, dying_in_turn, frame_locals
from dynamo_capture.codegen.makes import catalogue  # noqa: F401  # fills the table of makers
from dynamo_capture.codegen.method_pairs import prepare_stacks
from dynamo_capture.codegen.modes_aside import ModesAside
from dynamo_capture.codegen.reconstruct import EXISTING, GRAPH, Reconstruction
from dynamo_capture.codegen.replay import compute_late, replay, replay_content, visited
from dynamo_capture.codegen.variables import variables_at_break
from dynamo_capture.foundation.break_kinds import DISPATCH_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.left_functions import left_loop
from dynamo_capture.graph.graph_builder import GraphInput
from dynamo_capture.hook.frame_hook import RegionFunction
from dynamo_capture.runtime import made_tensors, replacement_calls
from dynamo_capture.runtime.calls.random_states import generator_states
from dynamo_capture.runtime.second_runs import leave_blocks
from dynamo_capture.semantics.modes.modes import Block, Switches
from dynamo_capture.semantics.random_numbers.drawing import Draw
from dynamo_capture.semantics.random_numbers.python_generator import MODULE_GENERATOR
from dynamo_capture.sources.sources import NUMBERS, ComputedSource, PlainTensorSource, computing
from dynamo_capture.trace import Trace
from dynamo_capture.values import Value
from fx_interface.source import (
    BuiltinSource,
    ClosureSource,
    GlobalSource,
    ImportedModuleSource,
    LocalSource,
    Source,
)
from fx_interface.torch_internals.dispatch_mode import beside_ignoring_modes

GENERATORS = ".generators"
STATES = ".states"


class Assembly:
    """Emits the replacement of one frame; ``free`` names the cells that it was given, by id, and ``switches`` are those
    at its entry and end. ``finish`` is told the graph's outputs and gives back its compiled form."""

    def __init__(
        self,
        tx: Trace,
        frame: Frame,
        body: CodeBody,
        free: dict[int, str],
        switches: tuple[Switches, Switches],
    ) -> None:
        self._tx, self._frame, self._body = tx, frame, body
        self._free, self._switches = free, switches
        self._emitter = Emitter(Position(line=frame.code.co_firstlineno))
        self._aside = ModesAside(tx.tensors.modes, self._emitter)

    def for_return(
        self, value: Value, finish: Callable[[Sequence[Any]], tuple[Any, list[GraphInput]]]
    ) -> CodeType:
        """The replacement of a frame that was captured up to its return."""
        collector = self._collect([value, *self._aside.left], self._free)
        plain = set(self._body.argument_names)
        to = Reconstruction(self._tx, self._emitter, collector, plain, self._free, replay_content)
        with self._aside.protected():
            self._call_graph(to, collector, finish, ())
            with self._leaving_blocks((), (), None):
                to.push(value)
                replay(self._tx, self._tx.effects, to)
                self._turn(*self._switches)
            self._aside.put_back(to)
        for name in dying_in_turn(self._tx, self._frame, self._body.argument_names):
            self._emitter.delete_fast(name)
        self._emitter.return_value()
        body = body_like(self._body, [])
        body.cellvars = []
        prologue = function_prologue((), self._body.freevars, self._emitter.position, start_of(self._body))
        body.instructions = [*prologue, *self._emitter.instructions]
        return assemble(body)

    def for_break(
        self,
        frames: Sequence[Frame],
        blocks: Sequence[Block],
        resumes: ResumeCodes,
        finish: Callable[[Sequence[Any]], tuple[Any, list[GraphInput]]],
    ) -> CodeType:
        """The replacement of a frame where the graph ends before the next instruction of the innermost of ``frames``,
        which runs as it is; the others are in the middle of calls. ``blocks`` are entered then, outermost first."""
        frame, emitter = self._frame, self._emitter
        prepare_stacks(frames)
        called = bridge(frames, resumes) if len(frames) > 1 else None
        enter = first_of_call(self._body, frame.next) if called is None else frame.next - 1
        kept = frame_locals(frame, frames[-1].stack)
        variables = variables_at_break(frame, enter, self._free, kept.keep)
        stack = frame.stack if called is None else [*frame.stack, called]
        collector = self._collect([*stack, *frame.exceptions, *variables.values(), *blocks], variables.cells)
        plain = set(self._body.argument_names) - set(self._body.cellvars)
        to = Reconstruction(self._tx, emitter, collector, plain, variables.cells, replay_content)
        held = HandlingStack(to, frame) if frame.handling else None
        with self._aside.protected():
            self._call_graph(to, collector, finish, self._body.cellvars)
            with self._leaving_blocks(self._body.cellvars, blocks, frame.next):
                if held is None:
                    to.push_all(stack)
                else:
                    held.make()
                variables.push(to)
                replay(self._tx, self._tx.effects, to)
                self._enter_again(blocks, to)
            variables.store(emitter)
            self._aside.put_back(to)
        to.forget()
        variables.drop_obsolete(emitter)
        if held is not None:
            held.put()
        tail = resumes.is_resume_function(frame.code)
        if called is None:
            exits = self._exits(kept, resumes, tail)
            return assemble(splice(self._body, emitter.instructions, enter, exits))
        leave = exit_of_call(frame, enter, kept, resumes, tail=tail)
        return assemble(splice_call(self._body, emitter.instructions, enter, leave))

    def _leaving_blocks(
        self, cellvars: Iterable[str], blocks: Sequence[Block], end: int | None
    ) -> contextlib.AbstractContextManager[None]:
        """What is raised inside leaves modes, and the blocks that the frame begins in, if it ``end``s in them."""
        resumes, frame, (entry, left) = self._tx.resumes, self._frame, self._switches
        modes = [left, *(modes for block in blocks for modes in (block.around, block.inside))]
        now = {setter: value for each in modes for setter, value in each.items() if value != entry[setter]}
        begin = rerun_on_error.handler_at_beginning(frame, resumes)
        stays = end is not None and (
            rerun_on_error.is_handled_by(frame, end, begin) or rerun_on_error.is_in_all_blocks(frame, begin)
        )
        outside = entry if stays or begin < 0 else rerun_on_error.outside_of_blocks(frame, blocks, left)
        if not (now or stays):
            return contextlib.nullcontext()

        def before() -> None:
            self._turn({**entry, **now}, outside)
            self._aside.put_back_before_rerun()

        raising = functools.partial(resumes.raising, frame.code) if stays else rerun_on_error.nothing_raises
        given = frame.globals.real, set(cellvars), None, before, raising, leave_blocks
        return rerun_on_error.second_run(self._emitter, frame.code, *given)

    def _collect(self, values: list[Value], cells: dict[int, str]) -> Collector:
        """What is reached by these values and the effects. Tensors of a stretch get their history here."""
        tx = self._tx
        collector = visited(tx, values, cells)
        stretch = tx.tensors.stretch
        if stretch is not None and collector.followed:
            if not all(switches[torch._C._set_grad_enabled] for switches in self._switches):
                raise GraphBreak(
                    DISPATCH_IN_PYTHON, "gradients are off where a graph begins or ends, and on inside of it"
                )
            stretch.close(collector.followed)
            collector = visited(tx, values, cells)
        collector.check_generators()
        return collector

    def _exits(self, kept: FrameLocals, resumes: ResumeCodes, tail: bool) -> dict[int, list[Instruction]]:
        """Where the outermost frame goes on compiled, after the instruction before which the graph ends."""
        frame, stack = self._frame, slots(self._frame)
        state = (frame.code, frame.next)
        if not frame.handling:
            loop = left_loop(frame, frame.next)
            return exits_after(*state, stack, kept, resumes, tail=tail, loop=loop)
        below = stack[: frame.handling[0].depth]
        return exits_of_handler(*state, below, kept, resumes, handled=len(frame.handling), tail=tail)

    def _enter_again(self, blocks: Sequence[Block], to: Reconstruction) -> None:
        """Enter the blocks that the graph has left, each in the modes in which it was entered."""
        now, left = self._switches
        for block in blocks:
            self._turn(now, block.around)
            to.call(replacement_calls.enter_block, functools.partial(to.push, block))
            self._emitter.pop_top()
            now = block.inside
        self._turn(now, left)

    def _turn(self, now: Switches, wanted: Switches) -> None:
        """Set the switches that stand at something else."""
        for setter, value in wanted.items():
            if now[setter] != value:
                self._emitter.begin_call()
                self._emitter.load_const(setter)
                self._emitter.end_callable()
                self._emitter.load_const(value)
                self._emitter.call(1)
                self._emitter.pop_top()

    def _call_graph(
        self,
        to: Reconstruction,
        collector: Collector,
        finish: Callable[[Sequence[Any]], tuple[Any, list[GraphInput]]],
        cellvars: Iterable[str],
    ) -> None:
        cells = set(cellvars)
        with self._in_blocks(cells):
            self._draw(to, cells)
            for variable, make in self._tx.tensors.leaves:
                to.call(make, lambda: None, 0)
                to.store(variable)
            compiled, inputs = finish(list(collector.nodes))
            self._compute(to, [*(item.source for item in inputs), *to.indirect], cells)
            if to.indirect:
                self._fetch(list(to.indirect), cells)
                to.store(EXISTING)
            if compiled is None:
                compute_late(self._tx.effects, to)
                self._let_signals_in()
                return
            self._follow(to, inputs, cells)
        with self._repeated(cells):
            self._push_results(compiled, inputs, cells)
            to.store(GRAPH) if collector.nodes else self._emitter.pop_top()
        with self._in_blocks(cells):
            compute_late(self._tx.effects, to)

    def _in_blocks(self, cells: set[str]) -> contextlib.AbstractContextManager[None]:
        """What is raised inside leaves the blocks that the frame begins in."""
        frame, resumes = self._frame, self._tx.resumes
        raising = functools.partial(resumes.raising, frame.code)
        if start_of(self._body) != STARTS_UNINTERRUPTED:
            return contextlib.nullcontext()
        given = frame.globals.real, cells, None, self._aside.put_back_before_rerun, raising, leave_blocks
        return rerun_on_error.second_run(self._emitter, frame.code, *given)

    def _let_signals_in(self) -> None:
        """A frame that begins in blocks looks for signals behind its beginning, in what leaves the blocks, so that a
        loop whose rounds call nothing can be interrupted."""
        if start_of(self._body) == STARTS_UNINTERRUPTED:
            self._emitter.begin_call()
            self._emitter.load_const(_eval_frame.let_signals_in)
            self._emitter.end_callable()
            self._emitter.call(0)
            self._emitter.pop_top()

    def _repeated(self, cells: set[str]) -> contextlib.AbstractContextManager[None]:
        """What is raised inside, where the graph is called, makes the frame run again as it is, if it may."""
        if not self._tx.output.fails_whole:
            return self._in_blocks(cells)
        frame, (entry, left) = self._frame, self._switches
        states = STATES if self._tx.draws.log else None
        runs = rerun_on_error.runs_again(self._tx)
        raising = functools.partial(self._tx.resumes.raising, frame.code)

        def before() -> None:  # interrupted behind its last operation, it has left its modes
            self._turn(left, entry)
            self._aside.put_back_before_rerun()

        return rerun_on_error.second_run(
            self._emitter, frame.code, frame.globals.real, cells, states, before, raising, runs
        )

    def _draw(self, to: Reconstruction, cells: set[str]) -> None:
        """Draw random numbers into variables, which the graph and what follows it read."""
        draws = self._tx.draws.log
        if not draws:
            return
        sources = sorted(dict.fromkeys(draw.source for draw in draws), key=lambda source: source is None)
        self._fetch([source for source in sources if source is not None], cells)
        to.store(GENERATORS)
        to.call(generator_states, lambda: self._emitter.load_fast(GENERATORS))
        to.store(STATES)
        for draw in draws:
            self._draw_one(draw, sources.index(draw.source), to.collector, cells)
            to.store(draw.variable)

    def _draw_one(self, draw: Draw, index: int, collector: Collector, cells: set[str]) -> None:
        emitter = self._emitter
        if draw.source is None:
            emitter.load_const(MODULE_GENERATOR)
        else:
            emitter.load_fast(GENERATORS)
            emitter.load_const(index)
            emitter.binary_subscr()
        if isinstance(draw.method, str) and not draw.keywords:
            emitter.load_method(draw.method)
            for argument in draw.arguments:
                emitter.load_const(argument)
            emitter.call(len(draw.arguments))
            return
        emitter.store_fast(draw.variable)
        emitter.begin_call()
        symbols = draw.symbols
        emitter.load_const(
            replacement_calls.drawing(draw.method, draw.arguments, dict(draw.keywords), symbols)
        )
        emitter.end_callable()
        emitter.load_fast(draw.variable)
        if symbols:
            self._fetch([collector.symbol_source(atom) for atom in symbols], cells)
        else:
            emitter.load_const(())
        emitter.call(2)

    def _compute(self, to: Reconstruction, read: Iterable[Source], cells: set[str]) -> None:
        """Compute the numbers that the graph and what follows it read."""
        made = self._tx.numbers.made
        needed: set[int] = set()
        for source in read if made else ():
            step: Source | None = source
            while step is not None and not isinstance(step, ComputedSource):
                step = step.base
            if step is not None:
                needed.add(step.index)
        if not needed:
            return
        leaves, compute = computing([f if i in needed else None for i, f in enumerate(made)])
        self._emitter.begin_call()
        self._emitter.load_const(RegionFunction(compute, None))
        self._emitter.end_callable()
        self._fetch(list(leaves), cells)
        self._emitter.call_function_ex()
        to.store(NUMBERS.name)

    def _follow(self, to: Reconstruction, inputs: list[GraphInput], cells: set[str]) -> None:
        """Tell autograd what the program has told it of tensors before it used them: of the tensor itself, not of the
        plain view of it that the graph takes."""
        told = {
            item.source.parent if isinstance(item.source, PlainTensorSource) else item.source: item.followed
            for item in inputs
            if item.followed is not None
        }
        if told:
            follow = functools.partial(made_tensors.follow_all, tuple(told.values()))
            to.call(follow, functools.partial(self._fetch, list(told), cells))
            self._emitter.pop_top()

    def _push_results(self, compiled: Any, inputs: list[GraphInput], cells: set[str]) -> None:
        """Call the graph."""
        emitter = self._emitter
        direct = all(isinstance(i.source, LocalSource) and i.source.name not in cells for i in inputs)
        emitter.begin_call()
        if self._tx.ignoring_modes:
            compiled = RegionFunction(beside_ignoring_modes(compiled), None)
        emitter.load_const(self._aside.running(compiled))
        emitter.end_callable()
        if direct:
            for item in inputs:
                assert isinstance(item.source, LocalSource)
                emitter.load_fast(item.source.name)
            emitter.call(len(inputs))
        else:
            self._fetch([item.source for item in inputs], cells)
            emitter.call_function_ex()

    def _fetch(self, sources: list[Source], cells: set[str]) -> None:
        """Push the tuple of the sources' values."""
        emitter = self._emitter
        fetcher = fx_guards.build_fetcher(sources)
        emitter.begin_call()
        emitter.load_const(fetcher)
        emitter.end_callable()
        for root in fetcher.roots:
            self._push_root(root, cells)
        emitter.call(len(fetcher.roots))

    def _push_root(self, root: Source, cells: set[str]) -> None:
        emitter = self._emitter
        match root:
            case LocalSource(name):
                (emitter.load_deref if name in cells else emitter.load_fast)(name)
            case ClosureSource(name):
                emitter.load_deref(self._body.freevars[self._frame.code.co_freevars.index(name)])
            case GlobalSource(name):
                emitter.load_global(name)
            case ImportedModuleSource(name):
                emitter.load_const(sys.modules)
                emitter.load_const(name)
                emitter.binary_subscr()
            case BuiltinSource(name):
                emitter.load_const(vars(builtins))
                emitter.load_const(name)
                emitter.binary_subscr()
            case _:
                raise AssertionError(root)
