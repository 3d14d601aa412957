"""``export(fn)(*args)``: the one graph of a function, with what it relies on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.fx import GraphModule

from dynamo_capture.driver.optimizer import optimize, run_graph
from dynamo_capture.foundation.errors import ExportError
from dynamo_capture.session.report import Report
from fx_interface.errors import UserLocation
from fx_interface.operators import OperatorLibrary
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.signature import SIGNATURE_KEY, Signature


@dataclass(frozen=True, slots=True)
class Exported:
    """A function as one graph of dialect "torch".

    The graph takes what ``signature`` says, each input with the source where the function found it, and gives the
    tensors that the function's results consist of. It stands for the function while ``guards`` hold; what the function
    does to Python objects is not in it.
    """

    graph_module: GraphModule
    guards: tuple[Any, ...]

    @property
    def signature(self) -> Signature:
        """Inputs and outputs of the graph."""
        found: Signature = self.graph_module.meta[SIGNATURE_KEY]
        return found


def export(
    function: Callable[..., Any], *, dynamic: bool | None = None, operators: OperatorLibrary | None = None
) -> Callable[..., Exported]:
    """``export(f)(*args)`` runs ``f`` once on these arguments and returns its graph.

    Raises ExportError, which lists every graph break with its line, if there is more than one graph or none; what ``f``
    raises passes unchanged. ``dynamic`` and ``operators`` are as for ``optimize``.
    """

    def exported(*args: Any, **kwargs: Any) -> Exported:
        optimizer = optimize(run_graph, dynamic=dynamic, operators=operators)
        optimizer(function)(*args, **kwargs)
        return _only(function, optimizer.report)

    return exported


def _only(function: Callable[..., Any], report: Report) -> Exported:
    replacements = [replacement for _, replacement in report.replacements]
    breaks = tuple(replacement.stopped for replacement in replacements if replacement.stopped is not None)
    reasons = [*map(str, breaks), *(reason for _, reason in report.eager)]
    graphs = [replacement for replacement in replacements if replacement.graph is not None]
    if reasons or len(graphs) != 1:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        listed = "\n".join(dict.fromkeys(reasons)) or "it contains no tensor operation"
        first: UserLocation | None = breaks[0].where if breaks else None
        raise ExportError(f"{name} is not one graph:\n{listed}", breaks, first)
    (found,) = graphs
    assert found.graph is not None
    return Exported(found.graph, found.guards)
