"""What a region is: a call target that takes sub-graphs first, and what the rest of the stack must know of it.

A region's target is an ordinary function that can be run: with its sub-graphs as callables it does, with torch's own
operators and autograd, exactly what the node means. So a backend that runs a graph as it is runs regions rightly
without knowing any; one that wants more (to recompute, to inline) looks the target up in ``REGIONS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from torch.fx import GraphModule, Node

from fx_interface.dialects.dialect import Context, broken, same_spec
from fx_interface.graph import block_of, outputs, placeholders, spec_of_node
from fx_interface.python_runtime.quick_dataclasses import dataclass

Target = TypeVar("Target", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class RegionCall:
    """A node that calls a region, for its check."""

    node: Node
    bodies: tuple[GraphModule, ...]
    context: Context

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What follows the sub-graphs."""
        return self.node.args[len(self.bodies) :]

    def takes(self, body: GraphModule, given: tuple[Any, ...], what: str = "the sub-graph") -> None:
        """FXI113 unless ``given`` (nodes or constants, or specs) fit the placeholders of ``body``."""
        wanted = placeholders(body.graph)
        if len(wanted) != len(given):
            broken("FXI113", self.node, f"{what} takes {len(wanted)} positional arguments, not {len(given)}")
        for place, argument in zip(wanted, given, strict=True):
            if isinstance(argument, (int, float, str, type(None))):
                continue
            spec = spec_of_node(argument) if isinstance(argument, Node) else argument
            if not same_spec(spec_of_node(place), spec):
                broken("FXI113", self.node, f"{argument} is {spec}, {what} wants {spec_of_node(place)}")

    def gives(self, results: tuple[Any, ...]) -> None:
        """FXI113 unless the node's spec is ``results``."""
        if not same_spec(results, spec_of_node(self.node)):
            broken(
                "FXI113", self.node, f"its spec is {spec_of_node(self.node)}, the sub-graph returns {results}"
            )


def code_of(body: Callable[..., Any]) -> Callable[..., Any]:
    """What runs a sub-graph, without the hooks and the error texts that calling it as a module adds."""
    if isinstance(body, GraphModule):
        forward: Callable[..., Any] = body.forward
        return forward
    return body


def results_of(body: GraphModule) -> tuple[Any, ...]:
    """The specs of what a sub-graph returns."""
    return tuple(spec_of_node(result) if isinstance(result, Node) else None for result in outputs(body.graph))


@dataclass(frozen=True, slots=True)
class Region:
    """One kind of region.

    ``name`` stands in the text form; ``parts`` are names for its sub-graphs, which are its first arguments; ``check``
    raises InvalidGraphError FXI113 for a call that does not fit them; ``dialects`` are those in which it may stand.
    """

    name: str
    parts: tuple[str, ...]
    check: Callable[[RegionCall], None]
    dialects: frozenset[str]

    @property
    def bodies(self) -> int:
        """How many sub-graphs it takes."""
        return len(self.parts)


REGIONS: dict[Callable[..., Any], Region] = {}
"""Every kind of region by its target."""


def region(
    name: str,
    *,
    parts: tuple[str, ...],
    check: Callable[[RegionCall], None],
    dialects: tuple[str, ...] = ("torch",),
) -> Callable[[Target], Target]:
    """Declare a target as a region; ValueError where the name is taken."""

    def register(target: Target) -> Target:
        if target in REGIONS or any(known.name == name for known in REGIONS.values()):
            raise ValueError(f"the region {name!r} is declared twice")
        REGIONS[target] = Region(name, parts, check, frozenset(dialects))
        return target

    return register


def region_of(node: Node) -> Region | None:
    """The declaration of the region that a node calls, or None."""
    return REGIONS.get(node.target) if node.op == "call_function" else None  # type: ignore[arg-type]


def bodies_of(node: Node, owner: GraphModule) -> tuple[GraphModule, ...]:
    """The sub-graphs of a node that calls a region. InvalidGraphError FXI113 where one is missing."""
    declared = region_of(node)
    count = 0 if declared is None else declared.bodies
    given = node.args[:count]
    if len(given) < count or not all(isinstance(held, Node) for held in given):
        broken("FXI113", node, f"a {declared.name if declared else ''} region takes {count} sub-graphs first")
    return tuple(block_of(held, owner) for held in given if isinstance(held, Node))
