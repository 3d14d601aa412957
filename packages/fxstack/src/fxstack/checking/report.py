"""How a graph that differs from eager is reported: a warning, an error in the log, and a script that shows it."""

from __future__ import annotations

import hashlib
import logging
import re
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.fx import GraphModule, Node

from fx_interface.errors import UserLocation
from fx_interface.graph import outputs, placeholders, stack_of_node
from fxstack.checking.check_warning import CheckWarning
from fxstack.verification.compare import Difference
from fxstack.verification.repro import CHECK, script_of

logger = logging.getLogger("fxstack")
_MOST_LISTED = 10


def report(
    graph_module: GraphModule,
    inputs: Sequence[Any],
    found: Sequence[Difference],
    backend: str | Callable[..., Any],
) -> None:
    """Log the differences, and warn of them."""
    names = [node.name for node in placeholders(graph_module.graph)]
    lines = [f"FXS401: a compiled graph differs from eager in {len(found)} ways; eager runs it from now on"]
    lines += [f"  {_named(item, names)}" for item in found[:_MOST_LISTED]]
    lines += [f"  at {where}" for where in _places(graph_module, found)]
    path = _written(graph_module, inputs, found[0], backend)
    if path is not None:
        lines.append(f"  shown again by: python {path}")
    text = "\n".join(lines)
    logger.error("%s", text)
    warnings.warn(text, CheckWarning, stacklevel=2)


def _named(found: Difference, names: Sequence[str]) -> str:
    """A difference; inputs by their names in the graph."""
    return re.sub(r"\binput (\d+)\b", lambda match: f"{match[0]} ({names[int(match[1])]})", str(found))


def _places(graph_module: GraphModule, found: Sequence[Difference]) -> tuple[UserLocation, ...]:
    """The user's lines, innermost first, of the first result that differs; else of the last operation."""
    nodes: list[Node] = [node for node in graph_module.graph.nodes if node.op.startswith("call")]
    results = outputs(graph_module.graph)
    for item in found:
        words = item.what.split(":")[0].split()
        if words[0] == "result" and words[1].isdigit() and int(words[1]) < len(results):
            result = results[int(words[1])]
            if isinstance(result, Node):
                nodes.append(result)
                break
    return tuple(reversed(stack_of_node(nodes[-1]))) if nodes else ()


def _written(
    graph_module: GraphModule, inputs: Sequence[Any], first: Difference, backend: str | Callable[..., Any]
) -> Path | None:
    """A script in a folder of its own; None where it cannot be written."""
    try:
        with torch._C.DisableTorchFunction():
            text = script_of(graph_module, inputs, str(first), backend, CHECK)
        digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:12]
        path = Path(tempfile.mkdtemp(prefix="fxstack-check-")) / f"fxs401_{digest}.py"
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except Exception as error:
        logger.warning("FXS401: no script could be written: %s: %s", type(error).__name__, error)
        return None
    return path
