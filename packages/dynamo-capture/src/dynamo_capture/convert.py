"""From a frame that is about to run to replacement code: trace, compile the graph, write the code, build the guards."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

import guards
import torch
from fx_interface import DIALECT_KEY, SHAPE_ENV_KEY, SIGNATURE_KEY, OutputDecl, OutputKind, Signature
from fx_interface.operators import OperatorLibrary
from fx_interface.source import ClosureSource, LocalSource, Source
from torch.fx import GraphModule

from dynamo_capture.bytecode.assemble import assemble
from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.emit import Emitter, function_prologue
from dynamo_capture.bytecode.instruction import Position
from dynamo_capture.emission import Emission
from dynamo_capture.frame import Frame, source_of_globals
from dynamo_capture.graph_breaks import GraphBreak, Raised, RunEagerly
from dynamo_capture.metadata import RunKernels
from dynamo_capture.tracer import Tracer
from dynamo_capture.values.base import Value
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
    """Code to run in the frame's place while the guards hold."""

    code: CodeType
    guards: tuple[Any, ...]
    evaluator: Any


def convert(
    function: FunctionType, locals_: Mapping[str, Any], options: CaptureOptions, varying: set[Source]
) -> Replacement:
    """Trace one call. GraphBreak, RunEagerly or CaptureError where it cannot be replaced as a whole."""
    tracer, result = _trace(function, locals_, options, varying)
    code = function.__code__
    emitter = Emitter(position=Position(line=code.co_firstlineno))
    emission = Emission(tracer, emitter)
    emission.cells = frozenset(code.co_cellvars) & frozenset(code.co_varnames)
    effects = list(tracer.effects)
    emission.plan([result, *effects])
    compiled = _compile(tracer, emission, options)
    if compiled is not None:
        _call_graph(tracer, emission, compiled)
    for effect in effects:
        emission.effect(effect)
    emission.value(result)
    emitter.return_value()
    return Replacement(_assemble(code, emitter), *_guards(tracer, code))


def _trace(
    function: FunctionType, locals_: Mapping[str, Any], options: CaptureOptions, varying: set[Source]
) -> tuple[Tracer, Value]:
    def is_dynamic(source: Source, value: int) -> bool:
        if options.dynamic is not None:
            return options.dynamic and not _is_parameter_size(source)
        return source in varying

    tracer = Tracer(options.operators, is_dynamic)
    frame = Frame(tracer, function.__code__, function.__globals__, source_of_globals(function))
    for name, value in locals_.items():
        frame.slots[name] = tracer.wrap(value, LocalSource(name))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        source = ClosureSource(name)
        try:
            content: Value | None = tracer.wrap(cell.cell_contents, source)
        except ValueError:
            content = None
        frame.slots[name] = CellValue(content, source)
    grad_mode = torch.is_grad_enabled()
    try:
        result = frame.run()
    except Raised as raised:
        raise RunEagerly(f"the program raises {raised.value!r}") from raised
    finally:
        torch._C._set_grad_enabled(grad_mode)
    if tracer.grad_mode != grad_mode:
        raise GraphBreak("side-effect", "the function returns with another grad mode")
    return tracer, result


def _is_parameter_size(source: Source) -> bool:
    return "_parameters" in source.expression or "_buffers" in source.expression


def _compile(tracer: Tracer, emission: Emission, options: CaptureOptions) -> Any:
    """The backend's callable; None when there is nothing to compute."""
    graph = tracer.graph
    calls = [node for node in graph.nodes if node.op.startswith("call")]
    if not emission.outputs and not calls:
        return None
    graph.output(tuple(value.node for value in emission.outputs))  # type: ignore[attr-defined]
    module = GraphModule(torch.nn.Module(), graph)
    outputs = tuple(OutputDecl(OutputKind.USER) for _ in emission.outputs)
    module.meta = {
        DIALECT_KEY: "torch",
        SIGNATURE_KEY: Signature(tuple(tracer.inputs), outputs),
        SHAPE_ENV_KEY: tracer.env,
    }
    return options.backend(module, tracer.input_values)


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
    facts.append(guards.global_state())
    relations = guards.shape_relations(tracer.env)
    if relations is not None:
        facts.append(relations)
    evaluator = guards.build(facts, varnames=code.co_varnames, freevars=code.co_freevars)
    return tuple(facts), evaluator
