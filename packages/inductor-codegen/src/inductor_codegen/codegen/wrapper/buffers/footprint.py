"""What a call holds in memory, step by step, and how large a buffer may be to live in the scratch block.

The block is held whole for a call, and kept for the next one. Where its largest moment coincides with the call's, that
costs nothing; elsewhere it stands beside tensors that live at other times: what a training step keeps for the backward.
So buffers go into the block, small ones first, as long as the call's peak stays where it would be without a block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.ir.program import Buffer, Free, Program, Reuse, View, defined_by

SLACK = 128
"""The peak of a call may grow by this fraction of itself: one part in so many."""
FLOOR = 1 << 17
"""A block of this many bytes is always allowed: small buffers are cheap to keep, and dear to allocate."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Memory of ``size`` bytes under the name of its first buffer, in use from step ``first`` to step ``last``."""

    name: str
    size: int
    first: int
    last: int


def lifetimes(program: Program, size_of: dict[str, int]) -> list[Lifetime]:
    """Every piece of memory that a call uses: inputs (from step 0 on), and what steps allocate, successors included.

    What is never freed lasts to the end of the call, ``len(program.steps)``.
    """
    end = len(program.steps)
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    size: dict[str, int] = {}
    root: dict[str, str] = {}

    def begin(name: str, position: int) -> None:
        root[name] = name
        first[name], last[name], size[name] = position, end, size_of[name]

    for name in input_names(program):
        begin(name, 0)
    for position, step in enumerate(program.steps):
        match step:
            case View():
                continue
            case Reuse(buffer, of):
                root[buffer.name] = owner = root.get(of, of)
                size[owner] = max(size.get(owner, 0), size_of[buffer.name])
            case Free(name):
                if name in root:
                    last[root[name]] = position
            case _:
                for buffer in defined_by(step):
                    begin(buffer.name, position)
    return [Lifetime(name, size[name], first[name], last[name]) for name in first]


def input_names(program: Program) -> list[str]:
    """The names of the tensors among the inputs."""
    return [item.name for item in program.inputs if isinstance(item, Buffer)]


def curve(pieces: Sequence[Lifetime], steps: int) -> list[int]:
    """Live bytes at every step, and at last after the call."""
    change = [0] * (steps + 2)
    for piece in pieces:
        change[piece.first] += piece.size
        change[piece.last + 1] -= piece.size
    return list(accumulate(change[: steps + 1]))


def small_enough(
    pieces: Sequence[Lifetime],
    candidates: frozenset[str],
    steps: int,
    block_size: Callable[[frozenset[str]], int],
) -> frozenset[str]:
    """Those of ``candidates`` (names of lifetimes) that may live in the block: all up to some size.

    ``block_size`` tells how large a block for some of them is.
    """
    peak = max(curve(pieces, steps))
    allowed = peak + peak // SLACK
    sizes = sorted({piece.size for piece in pieces if piece.name in candidates})

    def fits(limit: int) -> frozenset[str] | None:
        chosen = frozenset(p.name for p in pieces if p.name in candidates and p.size <= limit)
        block = block_size(chosen)
        outside = curve([p for p in pieces if p.name not in chosen], steps)
        return chosen if block <= FLOOR or max(outside) + block <= allowed else None

    found: frozenset[str] = frozenset()
    low, high = 0, len(sizes)
    while low < high:
        middle = (low + high) // 2
        chosen = fits(sizes[middle])
        if chosen is None:
            high = middle
        else:
            found, low = chosen, middle + 1
    return found
