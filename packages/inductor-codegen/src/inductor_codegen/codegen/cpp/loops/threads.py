"""How the threads of a call share a kernel.

The function that is compiled for a kernel does one share of its work:

    int32_t kernel(const int64_t* given, int64_t share, int64_t shares)

    given  = addresses of the buffers, sizes, bits of the floats
    pieces = rows, or blocks of points or of lanes      6 pieces, 4 shares: 0 | 1, 2 | 3 | 4, 5
    share i of n is the pieces from pieces * i / n up to pieces * (i + 1) / n

and the caller starts the threads, in one place for all kernels. With a parallel region in each, which OpenMP makes a
function of its own, the C++ compiler takes half as long again.
"""

from __future__ import annotations

from enum import Enum

from fx_interface.symbols import IntLike
from inductor_codegen.ir.attention.form import AttentionKernel
from inductor_codegen.ir.kernel import Accumulate, Kernel, extent_product
from inductor_codegen.ir.traverse import statements_of

PARALLEL_FROM = 32768
"""Points below which starting threads costs more than it saves."""


class Sharing(Enum):
    """Who starts threads."""

    ALONE = "alone"
    """Nobody: there is one share."""
    CALLER = "caller"
    """The caller, for each a share, if the kernel says that there is enough to do when it is asked for 0 shares."""
    KERNEL = "kernel"
    """The kernel: what its ``shares`` threads have found must be joined. The caller takes the only share."""


def work_of(kernel: Kernel) -> IntLike:
    """The points of a kernel."""
    return extent_product((*kernel.outer, *kernel.inner))


def sharing_of(kernel: Kernel) -> Sharing:
    """How a kernel is written and has to be called."""
    if isinstance(kernel, AttentionKernel):
        return Sharing.CALLER
    work = work_of(kernel)
    if isinstance(work, int) and work < PARALLEL_FROM:
        return Sharing.ALONE
    if kernel.outer:
        return Sharing.CALLER
    reductions = [item for item in statements_of(kernel.passes) if isinstance(item, Accumulate)]
    if not reductions:
        return Sharing.CALLER if kernel.inner else Sharing.ALONE
    searches = any(item.position is not None for item in reductions)
    row = kernel.inner[0].extent if kernel.inner else 1
    split = len(kernel.passes) == 1 and not searches and not (isinstance(row, int) and row < 2)
    return Sharing.KERNEL if split else Sharing.ALONE
