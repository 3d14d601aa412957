"""``torch.tensor(2.0)`` in a program: a number that kernels are written with, and a new tensor at each call."""

from __future__ import annotations

from typing import Any

from fx_interface.events import Event, listening


def constants(function: Any, *arguments: Any) -> tuple[Any, list[str]]:
    """What the compiled function gives, and the constants among the inputs of its graph."""
    found: list[str] = []

    def hear(event: Event) -> None:
        if event.kind == "joint":
            graph = event.facts["forward"].graph
            found.extend(n.name for n in graph.find_nodes(op="placeholder") if n.name.startswith("constant"))

    from aot_autograd import aot_function

    with listening(hear):
        return aot_function(function, lambda graph, examples: graph.forward)(*arguments), found
