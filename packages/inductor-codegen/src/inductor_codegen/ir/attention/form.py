"""Attention as one kernel: tiles of queries and keys, an online softmax, and programs for what is done at a point.

    for every tile of queries of one head, in parallel:
        for every tile of keys that it sees, by the lists of blocks or all of them:
            s = q @ k.T * scale;  s = score(s);  s = -inf where mask does not hold, but in blocks seen as a whole
            join s to the running maximum, sum of exponentials and weighted sum of values

``score`` and ``mask`` are scalars over the loops ``b``, ``h``, ``q`` and ``kv``; the score that they are given is the
value kept under ``SCORE``, the gradient that arrives for the new one that under ``ARRIVING``.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike
from inductor_codegen.ir.index import Index, LoopVar
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.ir.scalar import Kept, Scalar

SCORE, ARRIVING = 0, 1
"""The places of values that a kernel keeps for its programs."""
CPU_TILE = 64
"""Queries, and keys, of a tile on a CPU."""


class Task(Enum):
    """What a kernel computes."""

    FORWARD = "forward"
    KEYS = "keys"
    """Gradients of keys and values."""
    QUERIES = "queries"
    """Gradients of queries, and of operands."""


@dataclass(frozen=True, slots=True)
class Strided:
    """A tensor parameter: its name, sizes, and strides in elements."""

    name: str
    sizes: tuple[IntLike, ...]
    strides: tuple[IntLike, ...]


@dataclass(frozen=True, slots=True)
class BlockLists:
    """For each block of queries how many blocks of keys it sees, and which (or the other way round)."""

    counts: Strided
    indices: Strided


@dataclass(frozen=True, slots=True)
class Scatter:
    """What every point adds to a buffer: the gradient of an operand. No index where that is one number."""

    target: Strided
    value: Scalar
    places: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class AttentionForm:
    """Sizes, tensors and programs. ``dtype`` is that of queries, keys and values; ``tensors`` are known by role."""

    task: Task
    dtype: torch.dtype
    working: torch.dtype
    tensors: dict[str, Strided]
    scale: float
    block_size: tuple[int, int] | None
    partial: BlockLists | None
    full: BlockLists | None
    points: tuple[LoopVar, LoopVar, LoopVar, LoopVar]
    score: Scalar
    mask: Scalar
    joint: Scalar | None = None
    scatters: tuple[Scatter, ...] = ()

    @property
    def batch(self) -> IntLike:
        """How many sequences there are."""
        return self.tensors["query"].sizes[0]

    @property
    def heads(self) -> int:
        """Heads of queries."""
        return int(self.tensors["query"].sizes[1])  # type: ignore[arg-type]

    @property
    def group(self) -> int:
        """Heads of queries for each of keys."""
        return self.heads // int(self.tensors["key"].sizes[1])  # type: ignore[arg-type]

    @property
    def queries(self) -> IntLike:
        """The length of the queries."""
        return self.tensors["query"].sizes[2]

    @property
    def keys(self) -> IntLike:
        """The length of the keys."""
        return self.tensors["key"].sizes[2]

    @property
    def width(self) -> int:
        """Numbers of a query and of a key."""
        return int(self.tensors["query"].sizes[3])  # type: ignore[arg-type]

    @property
    def value_width(self) -> int:
        """Numbers of a value."""
        return int(self.tensors["value"].sizes[3])  # type: ignore[arg-type]

    @property
    def keeps_scores(self) -> bool:
        """Whether scores are left as they are."""
        return isinstance(self.score, Kept)


@dataclass(frozen=True, slots=True, eq=False)
class AttentionKernel(Kernel):
    """A kernel of attention; its only loop is over tiles, and it has no passes."""

    form: Any = None
