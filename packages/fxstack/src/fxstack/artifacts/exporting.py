"""``fxstack.export``: a model as one graph, with a contract of its inputs in the place of guards."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import torch
from torch.fx import GraphModule

import dynamo_capture
from fx_interface import SHAPE_ENV_KEY, UnsupportedProgramError, print_graph, signature_of
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.signature import Signature
from fx_interface.symbols import ShapeEnv
from fxstack.artifacts.arguments import Arguments, bind, reading_numbers
from fxstack.artifacts.dynamic_shapes import (
    Varying,
    mark,
    sizes_among_numbers,
    varying_numbers,
    varying_sizes,
)
from fxstack.artifacts.errors import ExportError
from fxstack.artifacts.relied_on import check_guards, check_varying
from fxstack.compile import original
from fxstack.options import Options
from fxstack.pipeline import PrimitiveGraphs, primitive_graphs
from primtorch_decomps import LIBRARY


@dataclass(frozen=True, slots=True)
class Exported:
    """A model as one graph: ``graph_module`` in dialect "torch", ``graphs`` in primitives, and all that its contract
    is written from. ``result`` is what the model returned for the copies of the arguments, ``outputs`` the graph's.
    ``training``: with a backward; ``mode``: the module's ``training`` then, None for a function."""

    model: Any
    graph_module: GraphModule
    graphs: PrimitiveGraphs
    example_inputs: Sequence[Any]
    arguments: Arguments
    varying: Varying
    guards: Sequence[Any]
    result: Any
    outputs: Sequence[Any]
    training: bool = False
    mode: bool | None = None

    @property
    def signature(self) -> Signature:
        """Inputs and outputs of the graph."""
        found = signature_of(self.graph_module)
        assert found is not None
        return found

    @property
    def env(self) -> ShapeEnv:
        """The symbols of sizes, and what was relied on."""
        found: ShapeEnv | None = self.graph_module.meta.get(SHAPE_ENV_KEY)
        return ShapeEnv() if found is None else found

    def __str__(self) -> str:
        return print_graph(self.graph_module)

    def __repr__(self) -> str:
        name = getattr(self.model, "__qualname__", type(self.model).__qualname__)
        kind = "training" if self.training else "inference"
        return f"<Exported {name} for {kind}: {', '.join(self.arguments.names)}>"


def export(
    model: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    training: bool = False,
    options: Options | Mapping[str, Any] | None = None,
) -> Exported:
    """``model`` as one graph for arguments like these.

    ``training``: with its backward, for the parameters and arguments that require grad now; otherwise nothing is
    recorded for autograd. The model runs once, on copies of the arguments; buffers that it writes, and the state of
    random numbers, stay as they are. ``dynamic_shapes`` names the sizes that vary (``{"x": {0: "batch"}}``, with
    ``fxstack.Dim`` for bounds; ``{"n": "batch"}`` of an argument that is an int and a size) and with
    ``fxstack.Number()`` the arguments that are numbers and vary; all others are fixed.

    ExportError (FXS5xx) if it is not one graph, which lists every graph break with its line and what to do, or if
    something in it cannot be stated as a contract. What the model raises passes unchanged.
    """
    plain = original(model)
    chosen = Options.make(options)
    arguments = bind(
        plain,
        args,
        kwargs or {},
        training=training,
        varying=varying_numbers(dynamic_shapes),
        sizes=sizes_among_numbers(dynamic_shapes),
    )
    varying = varying_sizes(arguments, dynamic_shapes)
    mark(arguments, varying)
    recording = _Recording(chosen)
    optimizer = dynamo_capture.optimize(recording, dynamic=False, operators=LIBRARY)
    on_gpus = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    gpus = range(torch.cuda.device_count()) if on_gpus else ()
    with torch.set_grad_enabled(training), torch.random.fork_rng(devices=gpus):
        result = optimizer(reading_numbers(plain, arguments))(*arguments.args, **arguments.kwargs)
    replacement = _only(plain, optimizer.report, recording)
    _check_effects(replacement.effects)
    _check_by_data(replacement.by_data)
    check_guards(replacement.guards)
    assert replacement.graph is not None
    assert recording.graphs is not None
    check_varying(arguments, varying, replacement.graph.meta.get(SHAPE_ENV_KEY) or ShapeEnv())
    return Exported(
        plain,
        replacement.graph,
        recording.graphs,
        recording.example_inputs,
        arguments,
        varying,
        replacement.guards,
        result,
        recording.outputs,
        training,
        plain.training if isinstance(plain, torch.nn.Module) else None,
    )


@dataclass(slots=True)
class _Recording:
    """The backend of an export: it traces a graph ahead of time, and runs it on copies of what it writes to."""

    options: Options
    graphs: PrimitiveGraphs | None = None
    example_inputs: Sequence[Any] = ()
    outputs: Sequence[Any] = ()
    refusals: list[UnsupportedProgramError] = field(default_factory=list)

    def __call__(self, graph_module: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        try:
            graphs = primitive_graphs(graph_module, example_inputs, self.options)
        except UnsupportedProgramError as error:
            self.refusals.append(error)
            raise
        self.graphs, self.example_inputs = graphs, example_inputs
        written = [m.input_index for m in graphs.plan.mutated]

        def run(*inputs: Any) -> Sequence[Any]:
            given = list(inputs)
            for index in written:
                given[index] = given[index].clone()
            self.outputs = graph_module.forward(*given)
            return self.outputs

        return run


def _only(model: Any, report: dynamo_capture.Report, recording: _Recording) -> dynamo_capture.Replacement:
    """The one replacement with a graph. ExportError FXS501 with every reason why there is not one."""
    replacements = [replacement for _, replacement in report.replacements]
    breaks = [replacement.stopped for replacement in replacements if replacement.stopped is not None]
    reasons = [*map(str, breaks), *(reason for _, reason in report.eager), *map(str, recording.refusals)]
    graphs = [replacement for replacement in replacements if replacement.graph is not None]
    if not reasons and len(graphs) == 1 and recording.graphs is not None:
        return graphs[0]
    name = getattr(model, "__qualname__", type(model).__qualname__)
    listed = "\n".join(dict.fromkeys(reasons)) or "it contains no tensor operation"
    raise ExportError(
        "FXS501",
        f"{name} is not one graph:\n{listed}",
        where=breaks[0].where if breaks else None,
        action="change the lines named above, or export the parts between them and call one after the other; "
        "fxstack.explain shows the graphs",
    )


def _check_by_data(found: Sequence[str]) -> None:
    """An artifact gives the tensors that the graph computes, and has no code that makes anything else of them."""
    if found:
        raise ExportError(
            "FXS503",
            f"the model gives or keeps {'; '.join(found)}, which Python computes when the graph has run",
            action="return it as a tensor; torch.where chooses between tensors",
        )


def _check_effects(effects: Sequence[tuple[str, str]]) -> None:
    """What the program does besides computing is not in an artifact: notes (messages, caches) are told of, all else is
    refused."""
    changes = [words for kind, words in effects if kind != "note"]
    if changes:
        raise ExportError(
            "FXS504",
            f"the model does more than to compute tensors: {'; '.join(dict.fromkeys(changes))}",
            action="return what changes, or keep it in a buffer that is written in place",
        )
    notes = [words for kind, words in effects if kind == "note"]
    if notes:
        warnings.warn(f"not in the artifact: {'; '.join(dict.fromkeys(notes))}", stacklevel=4)
