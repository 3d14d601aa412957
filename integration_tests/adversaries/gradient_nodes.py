"""Hooks on autograd's nodes, beside the other hooks.

A program that begins by asking for a node runs in Python, and its nodes are its operations. Nodes that it asks for
after a graph break are those of the graphs before; hooks on those only note what they see, which is not compared under
backends that compile ahead of time.
"""

from __future__ import annotations

from random import Random

from driver import main
from gradients import COMPARING, HOOKS, draw

_HOOKS = (
    "{a}.grad_fn.register_hook(node_hook('node {n}'))",
    "{a}.grad_fn.register_prehook(node_prehook('pre {n}', {f}))",
)
_NOTING = "{a}.grad_fn.register_hook(noting_node('node {n}'))"


def draw_with_nodes(random: Random) -> str:
    """The text of one program."""
    if random.random() < 0.5:
        return draw(random, (*HOOKS, *_HOOKS, *_HOOKS), "say('history', (x * MODULE.weight).grad_fn is None)")
    return draw(random, (*HOOKS, _NOTING, _NOTING, _NOTING))


if __name__ == "__main__":
    main(draw_with_nodes, COMPARING)
