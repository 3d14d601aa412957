"""From the nodes of a finished trace to a compiled graph: outputs, signature, and the backend's answer."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any

from torch import nn
from torch.fx import GraphModule

from dynamo_capture.driver.profiled_ranges import name_range, shown_code
from dynamo_capture.foundation.break_kinds import DATA_NUMBER
from dynamo_capture.foundation.errors import BACKEND_RAISED, BACKEND_RESULT, BackendError, GraphBreak
from dynamo_capture.foundation.graph_breaks import BreakReport
from dynamo_capture.function_transforms.batched import Batched, may_be_batched
from dynamo_capture.graph.graph_builder import GraphInput
from dynamo_capture.graph.target_names import rely_on_names
from dynamo_capture.hook.frame_hook import FrameView, RegionFunction, propagate
from dynamo_capture.runtime import replacement_calls
from dynamo_capture.semantics.tensors.arguments.scalars import note_fixed
from dynamo_capture.session.controls import forced_backend
from dynamo_capture.session.session import Session
from dynamo_capture.trace import Trace
from fx_guards import GuardRecord
from fx_interface.errors import StackError, UnsupportedProgramError, UserLocation
from fx_interface.events import emit, span
from fx_interface.execution.rehearsal import rehearsal_of, rehearsing
from fx_interface.execution.undo import is_all_or_nothing, undoing, undoing_if_shared
from fx_interface.plugins import load_backend
from fx_interface.signature import (
    DIALECT_KEY,
    SHAPE_ENV_KEY,
    SIGNATURE_KEY,
    OutputDecl,
    OutputKind,
    Signature,
)

_ENTRIES = str(Path(__file__).with_name("optimizer.py"))
"""The file with the functions by which optimized objects are called."""


class BackendCall:
    """Closes a graph over its outputs and has it compiled. ``guards``: the frame is left to Python
    instead, as long as these hold."""

    def __init__(self, session: Session, tx: Trace, view: FrameView, report: BreakReport | None) -> None:
        self._session = session
        self._tx = tx
        self._view = view
        self.report = report
        self.graph_module: GraphModule | None = None
        self.compiled: Any = None
        self.guards: Sequence[GuardRecord] | None = None

    def finish(self, results: Sequence[Any]) -> tuple[Any, list[GraphInput]]:
        """The compiled graph (None: nothing to run) and its inputs."""
        output = self._tx.output
        module = output.module(results)
        if not results and not any(node.op.startswith("call") for node in output.graph.nodes):
            return None, []
        module.meta[DIALECT_KEY] = "torch"
        module.meta[SIGNATURE_KEY] = Signature(
            output.declarations(), tuple(OutputDecl(OutputKind.USER) for _ in results)
        )
        if self._tx.env.symbols:
            module.meta[SHAPE_ENV_KEY] = self._tx.env
        self.graph_module = module
        rely_on_names(self._tx.guards, module.graph)
        relied = len(self._tx.env.guards)
        shorter = output.rehearsal(module)
        if self._tx.levels:
            self.compiled = self._in_transforms(module, results)
        else:
            compiled = self._call_backend(module, [item.example for item in output.inputs])
            self.compiled = self._failing_whole(compiled, shorter)
        note_fixed(self._tx, relied)
        if output.changes_modes:
            self.compiled = replacement_calls.call_restoring_modes(self.compiled)
        return self.compiled, output.inputs

    def _in_transforms(self, module: GraphModule, results: Sequence[Any]) -> Any:
        """The graph as torch's own operators, which the levels of transforms around the function see one by one; in
        ``vmap`` compiled with that."""
        output = self._tx.output
        emit("graph", code=self._view.code, graph=module)
        output.fails_whole = output.is_repeatable
        if output.assumes and not output.fails_whole:
            raise GraphBreak(DATA_NUMBER, "a number from data decides in a graph that cannot be undone")
        run: Any = module.forward
        if self._session.alone is not None and may_be_batched(self._tx.levels, output, results):
            run = Batched(module, self._tx.levels, output.drawing(), self._session.alone(self._session))
        return RegionFunction(run, None)

    def _call_backend(self, module: GraphModule, inputs: list[Any]) -> Any:
        backend = forced_backend() or self._session.backend
        if isinstance(backend, str):
            backend = load_backend(backend)
        refusals = self._session.refusals
        earlier = refusals.earlier(module)
        if earlier is not None:
            raise earlier
        try:
            emit("graph", code=self._view.code, graph=module)
            with span("backend", code=self._view.code):
                compiled = backend(module, inputs)
        except UnsupportedProgramError as error:
            refusals.note(module, error.with_traceback(None))
            raise
        except StackError as error:
            raise propagate(error) from error.__cause__
        except Exception as error:
            name = getattr(backend, "__qualname__", repr(backend))
            raise propagate(
                BackendError(
                    BACKEND_RAISED,
                    f"the backend {name} raised {type(error).__name__}: {error}",
                    where=location_of_code(self._view.code),
                    action="see the chained exception; backend='eager' runs the captured graph as it is",
                )
            ) from error
        if not callable(compiled):
            raise propagate(
                BackendError(BACKEND_RESULT, f"the backend returned {compiled!r}, which cannot be called")
            )
        return compiled

    def _failing_whole(self, compiled: Any, shorter: GraphModule | None) -> Any:
        """The compiled graph, which leaves nothing behind where it raises, if that can be had (``fails_whole``):
        content is put back, and ``shorter`` is run on copies before."""
        output = self._tx.output
        output.fails_whole = output.is_repeatable or (is_all_or_nothing(compiled) and not output.speaks)
        written = None if output.fails_whole else output.changed_inputs()
        if written is not None:
            if output.may_fail:
                rehearse = None if shorter is None else rehearsing(shorter.forward)
                compiled = undoing(compiled, written, draws=output.draws, rehearse=rehearse)
            else:
                assert self.graph_module is not None
                compiled = undoing_if_shared(
                    compiled,
                    written,
                    again=output.rewritten_inputs(),
                    fixed_sizes=not self._tx.env.symbols,
                    rehearse=rehearsal_of(self.graph_module),
                )
            output.fails_whole = True
        if output.assumes and not output.fails_whole:
            raise UnsupportedProgramError(
                DATA_NUMBER, "a number from data decides in a graph that cannot be undone"
            )
        if isinstance(compiled, BuiltinFunctionType):
            return compiled
        region = RegionFunction(compiled, None)
        shown = self._session.shown.get(id(self._view.code)) or shown_code(self._view.code)
        name_range(region, f"graph of {shown}")
        return region


def location_of_code(code: CodeType) -> UserLocation:
    """Where a function is defined."""
    return UserLocation(code.co_filename, code.co_firstlineno, code.co_qualname)


def location_of_frame(view: FrameView) -> UserLocation:
    """Where the function of a frame is defined. Of the one by which an object is called: where its class says what a
    call does."""
    code = view.code
    if code.co_filename == _ENTRIES and code.co_freevars == ("self",):
        kind = type(view.closure[0].cell_contents)
        method = inspect.getattr_static(kind, "forward" if issubclass(kind, nn.Module) else "__call__", None)
        if isinstance(method, FunctionType):
            user_code = method.__code__
            return UserLocation(user_code.co_filename, user_code.co_firstlineno, code.co_qualname)
    return location_of_code(code)
