"""``fxstack.explain(fn)(*args)``: graphs, graph breaks with the user's line and reason, and guards of one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.fx import GraphModule

import dynamo_capture
from fx_guards import GuardSet
from fx_interface import UserLocation, print_graph
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.compile import original
from primtorch_decomps import LIBRARY


@dataclass(frozen=True, slots=True)
class Break:
    """One graph break: its code in the catalogue, the user's line, what was met and what to change."""

    code: str
    where: UserLocation | None
    what: str
    advice: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """What compiling one call did. ``str()`` of it is the report."""

    graphs: tuple[GraphModule, ...]
    breaks: tuple[Break, ...]
    guards: tuple[tuple[str, ...], ...]
    eager: tuple[tuple[str, str], ...]
    result: Any

    def __str__(self) -> str:
        lines = [f"{len(self.graphs)} graphs, {len(self.breaks)} graph breaks"]
        for number, graph in enumerate(self.graphs):
            lines += ["", f"graph {number}", print_graph(graph)]
        for number, stop in enumerate(self.breaks):
            lines += [
                "",
                f"break {number} [{stop.code}] at {stop.where}",
                f"  {stop.what}",
                f"  to do: {stop.advice}",
            ]
        for name, reason in self.eager:
            lines += ["", f"{name} runs uncompiled: {reason}"]
        for number, guards in enumerate(self.guards):
            lines += ["", f"guards of code {number}: {len(guards)}", *(f"  {guard}" for guard in guards)]
        return "\n".join(lines)


def explain(function: Callable[..., Any], *, dynamic: bool | None = None) -> Callable[..., Explanation]:
    """A callable that runs ``function`` once, with what was captured run by torch's own kernels, prints what
    happened and returns it. Exceptions of the function pass unchanged."""
    plain = original(function)

    def run(*args: Any, **kwargs: Any) -> Explanation:
        optimize = dynamo_capture.optimize(_as_captured, dynamic=dynamic, operators=LIBRARY)
        result = optimize(plain)(*args, **kwargs)
        made = _explanation(optimize.capture.report, result)
        print(made)
        return made

    return run


def _as_captured(graph_module: GraphModule, example_inputs: Any) -> Any:
    return graph_module.forward


def _explanation(report: dynamo_capture.Report, result: Any) -> Explanation:
    replacements = [replacement for _, replacement in report.replacements]
    stops = [replacement.stopped for replacement in replacements if replacement.stopped is not None]
    return Explanation(
        graphs=tuple(r.graph for r in replacements if r.graph is not None),
        breaks=tuple(Break(s.kind.code, s.where, s.what, s.kind.advice) for s in stops),
        guards=tuple(tuple(map(_line, GuardSet(r.guards).guards)) for r in replacements),
        eager=tuple((code.co_qualname, reason) for code, reason in report.eager),
        result=result,
    )


def _line(guard: Any) -> str:
    text = str(guard)
    return text if len(text) <= 160 else f"{text[:157]}..."
