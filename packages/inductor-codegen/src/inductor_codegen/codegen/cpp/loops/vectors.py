"""How wide the vectors of a loop are."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from inductor_codegen.codegen.cpp.loops.half_blocks import HalfBlocks
from inductor_codegen.codegen.cpp.text.stored_bits import HALVES
from inductor_codegen.ir.kernel import Pass, Store
from inductor_codegen.ir.scalar import Load
from inductor_codegen.ir.traverse import postorder, roots_of


def narrowest(step: Pass, blocks: HalfBlocks, dtypes: Mapping[str, torch.dtype]) -> int:
    """The bytes of the smallest element that a pass's loop sees: a vector of them is one turn of the loop.

    Said in a long loop's pragma, gcc leaves out the narrower vectors for the last few elements, a sixth of the time
    that it takes for such a kernel.
    """
    nodes = postorder([root for statement in step.points for root in roots_of(statement)])
    sizes = [
        4 if item in blocks.stores else dtypes[item.buffer].itemsize
        for item in step.points
        if isinstance(item, Store)
    ]
    for node in nodes:
        if isinstance(node, Load):
            converted = node in blocks.loads or node in blocks.rows
            sizes.append(4 if converted else node.dtype.itemsize)
        elif node.dtype != torch.bool:
            sizes.append(4 if node.dtype in HALVES else node.dtype.itemsize)
    return min(sizes, default=8)
