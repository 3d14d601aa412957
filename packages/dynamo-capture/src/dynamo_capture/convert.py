"""From a frame that is about to run to replacement code: trace, compile the graph, write the code, build the guards."""

from __future__ import annotations

import logging
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import guards
import torch
from fx_interface import DIALECT_KEY, SHAPE_ENV_KEY, SIGNATURE_KEY, OutputDecl, OutputKind, Signature
from fx_interface.errors import StackError, UnsupportedProgramError
from fx_interface.operators import OperatorLibrary
from fx_interface.source import ClosureSource, LocalSource, Source
from fx_interface.tensor_spec import SPEC_KEY
from torch.fx import GraphModule

from dynamo_capture.bytecode.assemble import assemble
from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.emit import Emitter, function_prologue
from dynamo_capture.bytecode.instruction import Position
from dynamo_capture.emission import Emission
from dynamo_capture.bytecode.resume_code import ResumeCodes
from dynamo_capture.frame import Frame, source_of_namespace
from dynamo_capture.graph_breaks import GraphBreak, Raised, RunEagerly, Stopped
from dynamo_capture.hook import disabled, propagate
from dynamo_capture.metadata import RunKernels
from dynamo_capture.suspension import Suspension, first_of_call
from dynamo_capture.tracer import Tracer
from dynamo_capture.values.base import NULL, Value
from dynamo_capture.values.functions import CellValue

logger = logging.getLogger("dynamo_capture")


@dataclass(frozen=True)
class CaptureOptions:
    """What ``optimize`` was asked for."""

    backend: Callable[..., Any]
    fullgraph: bool = False
    dynamic: bool | None = None
    operators: OperatorLibrary = field(default_factory=RunKernels)


@dataclass(frozen=True)
class Replacement:
    """Code to run in the frame's place while the guards hold. ``stopped``: the graph break at which it hands over."""

    code: CodeType
    guards: tuple[Any, ...]
    evaluator: Any
    graph: GraphModule | None
    stopped: GraphBreak | None


@dataclass(frozen=True)
class Activation:
    """A frame that is about to run."""

    code: CodeType
    namespace: dict[str, Any]
    closure: tuple[Any, ...]
    locals: Mapping[str, Any]
    function: Any = None


def convert(
    activation: Activation,
    options: CaptureOptions,
    is_dynamic: Callable[[Source, int], bool],
    resumes: ResumeCodes,
) -> Replacement:
    """Trace one call. RunEagerly or CaptureError where it cannot be replaced."""
    try:
        tracer, frame, result = _trace(activation, options, is_dynamic, None)
    except GraphBreak as stop:
        if options.fullgraph:
            raise propagate(stop.as_error()) from None
        assert stop.index is not None
        return _convert_broken(activation, options, is_dynamic, resumes, stop)
    try:
        return _finish(tracer, frame, [result], result, None, options)
    except GraphBreak as stop:
        if options.fullgraph:
            raise propagate(stop.as_error()) from None
        raise RunEagerly(f"what the program made cannot be rebuilt: {stop.what}") from stop


def _convert_broken(
    activation: Activation,
    options: CaptureOptions,
    is_dynamic: Callable[[Source, int], bool],
    resumes: ResumeCodes,
    stop: GraphBreak,
) -> Replacement:
    """Capture up to the break, and hand over there."""
    assert stop.index is not None
    index = first_of_call(activation.code, stop.index)
    try:
        tracer, frame, _ = _trace(activation, options, is_dynamic, index)
        suspension = Suspension(frame, index, resumes)
        return _finish(tracer, frame, suspension.values(), suspension, stop, options)
    except GraphBreak as second:
        raise RunEagerly(f"{stop.what}; and the state there cannot be rebuilt: {second.what}") from second


def _finish(
    tracer: Tracer,
    frame: Frame,
    roots: list[Value],
    end: Value | Suspension,
    stop: GraphBreak | None,
    options: CaptureOptions,
) -> Replacement:
    code = frame.code
    emitter = Emitter(position=Position(line=code.co_firstlineno))
    emission = Emission(tracer, emitter)
    emission.cells = frozenset(code.co_cellvars) & frozenset(code.co_varnames)
    effects = list(tracer.effects)
    emission.plan([*roots, *effects])
    module = _graph_module(tracer, emission)
    if module is not None:
        _call_graph(tracer, emission, _compile(module, tracer, options))
    if tracer.grad_mode != tracer.entry_grad_mode:
        emission.call_now(torch._C._set_grad_enabled, tracer.grad_mode)
    if effects:
        emission.read_existing()
    for effect in effects:
        emission.effect(effect)
    if isinstance(end, Suspension):
        end.emit(emission)
        replacement = end.assemble(emitter)
    else:
        emission.value(end)
        emitter.return_value()
        replacement = _assemble(code, emitter)
    return Replacement(replacement, *_guards(tracer, code), module, stop)


def _trace(
    activation: Activation,
    options: CaptureOptions,
    is_dynamic: Callable[[Source, int], bool],
    stop_at: int | None,
) -> tuple[Tracer, Frame, Value]:
    tracer = Tracer(options.operators, is_dynamic)
    code = activation.code
    frame = Frame(tracer, code, activation.namespace, source_of_namespace(activation.namespace))
    frame.stop_at = stop_at
    for name, value in activation.locals.items():
        frame.slots[name] = tracer.wrap(value, LocalSource(name))
    for name, cell in zip(code.co_freevars, activation.closure, strict=True):
        source = ClosureSource(name)
        try:
            content: Value | None = tracer.wrap(cell.cell_contents, source)
        except ValueError:
            content = None
        frame.slots[name] = tracer.adopt_cell(cell, CellValue(content, source))
    grad_mode = torch.is_grad_enabled()
    result: Value = NULL
    try:
        result = frame.run()
    except Stopped:
        pass
    except Raised as raised:
        raise RunEagerly(f"the program raises {raised.value!r}") from raised
    finally:
        torch._C._set_grad_enabled(grad_mode)
    return tracer, frame, result


def _graph_module(tracer: Tracer, emission: Emission) -> GraphModule | None:
    """The captured graph; None when there is nothing to compute."""
    graph = tracer.graph
    calls = any(node.op.startswith("call") for node in graph.nodes)
    if not emission.outputs and not calls:
        return None
    if tracer.grad_mode != tracer.entry_grad_mode:
        restored = graph.call_function(torch._C._set_grad_enabled, (tracer.entry_grad_mode,))
        restored.meta[SPEC_KEY] = None
    graph.output(tuple(value.node for value in emission.outputs))  # type: ignore[attr-defined]
    module = GraphModule(torch.nn.Module(), graph)
    outputs = tuple(OutputDecl(OutputKind.USER) for _ in emission.outputs)
    module.meta = {
        DIALECT_KEY: "torch",
        SIGNATURE_KEY: Signature(tuple(tracer.inputs), outputs),
        SHAPE_ENV_KEY: tracer.env,
    }
    return module


def _compile(module: GraphModule, tracer: Tracer, options: CaptureOptions) -> Any:
    """The backend's callable. What the backend cannot handle runs as captured, and is reported."""
    try:
        return _outside(options.backend(module, tracer.input_values))
    except UnsupportedProgramError as error:
        logger.warning("the backend cannot compile this graph, which runs as captured: %s", error)
        return _outside(module.forward)
    except StackError as error:
        raise propagate(error) from None


def _outside(compiled: Any) -> Any:
    """Compiled graphs that are Python code must not be captured again."""
    is_python = isinstance(compiled, (types.FunctionType, types.MethodType)) or hasattr(
        getattr(type(compiled), "__call__", None), "__code__"
    )
    return disabled(compiled) if is_python else compiled


def _call_graph(tracer: Tracer, emission: Emission, compiled: Any) -> None:
    e = emission.emitter
    sources = [declared.source for declared in tracer.inputs]
    e.begin_call()
    e.load_const(compiled)
    e.end_callable()
    if all(isinstance(source, LocalSource) for source in sources):
        for source in sources:
            emission.load_source(source)  # type: ignore[arg-type]
        e.call(len(sources))
    else:
        fetcher = guards.build_fetcher(sources)
        e.begin_call()
        e.load_const(fetcher)
        e.end_callable()
        for root in fetcher.roots:
            emission.load_source(root)
        e.call(len(fetcher.roots))
        e.call_function_ex()
    if emission.outputs:
        e.store_fast(".outputs")
    else:
        e.pop_top()


def _assemble(code: CodeType, emitter: Emitter) -> CodeType:
    body = decode(code)
    prologue = function_prologue(
        [name for name in code.co_cellvars if name in code.co_varnames], code.co_freevars, Position(line=code.co_firstlineno)
    )
    body.instructions = [*prologue, *emitter.instructions]
    return assemble(body)


def _guards(tracer: Tracer, code: CodeType) -> tuple[tuple[Any, ...], Any]:
    facts = list(tracer.guards)
    if len(tracer.tensor_sources) > 1:
        first, *others = tracer.tensor_sources
        facts.append(guards.DistinctObjects(first, tuple(others)))
    facts.extend(tracer.distinct_from_changed())
    facts.append(guards.global_state())
    relations = guards.shape_relations(tracer.env)
    if relations is not None:
        facts.append(relations)
    evaluator = guards.build(facts, varnames=code.co_varnames, freevars=code.co_freevars)
    return tuple(facts), evaluator
