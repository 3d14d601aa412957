"""Hooks on autograd's nodes, beside the other hooks: under backends that keep the program's operations."""

from __future__ import annotations

from random import Random

from driver import Comparing, main
from gradients import HOOKS, NODE_HOOKS, draw


def draw_with_nodes(random: Random) -> str:
    """The text of one program."""
    return draw(random, (*HOOKS, *NODE_HOOKS, *NODE_HOOKS))


if __name__ == "__main__":
    main(draw_with_nodes, Comparing({"eager": frozenset({"grad version", "lines"})}, {}))
