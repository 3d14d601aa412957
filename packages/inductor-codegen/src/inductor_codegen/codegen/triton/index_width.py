"""How wide a kernel's indices are: 32 bits where all are known to fit, because dividing 64 bits is slow."""

from __future__ import annotations

from collections.abc import Iterator

from fx_interface.symbols import ShapeEnv
from inductor_codegen.ir.index import Index
from inductor_codegen.ir.kernel import Kernel, extent_product
from inductor_codegen.ir.traverse import indices_of, postorder, roots_of, statement_indices, statements_of

LARGEST = 2**31 - 2**16
"""What a position may reach: a program's last block runs over the end by less than the difference to 2**31."""


def index_type(kernel: Kernel) -> str:
    """The Triton type of the kernel's loop variables and addresses (in elements)."""
    if kernel.narrow:
        return "tl.int32"
    points = extent_product((*kernel.outer, *kernel.inner))
    if not isinstance(points, int) or points > LARGEST:
        return "tl.int64"
    return "tl.int32" if all(_fits(index) for index in all_indices(kernel)) else "tl.int64"


def all_indices(kernel: Kernel) -> Iterator[Index]:
    """Every index of a kernel: where it reads and writes, and those that its scalars compute with."""
    statements = list(statements_of(kernel.passes))
    for statement in statements:
        yield from statement_indices(statement)
    for scalar in postorder(root for statement in statements for root in roots_of(statement)):
        yield from indices_of(scalar)


def _fits(index: Index) -> bool:
    """Whether every sum on the way to the index is small; a loaded or symbolic part is not known to be."""
    bounds = index.bounds(_NO_SYMBOLS)
    if bounds is None:
        return False
    low, high = bounds
    return isinstance(low, int) and isinstance(high, int) and high - low <= LARGEST and low >= -LARGEST


_NO_SYMBOLS = ShapeEnv()
