"""Split reductions of a GPU that differ in sizes alone are one kernel, which is compiled once.

    kernel_1(x, out)    64 columns of 802816 rows, 64 apart        kernel(x, out, s0, s1)    called with 8, 100352
    kernel_2(x, out)   128 columns of 200704 rows, 128 apart                                       and 16, 25088

A convolutional network has one such reduction for each number of channels. Its indices need no division, so that sizes
that are known when it is launched cost nothing: the power of two that divides a size stays in the text (``8 * s0``),
and loads are as wide as before. Kernels that divide by their sizes stay apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fx_interface.symbols import IntLike, ShapeEnv, symbol
from inductor_codegen.codegen.triton.index_width import all_indices, index_type
from inductor_codegen.codegen.triton.launch.kernels import KernelRecord
from inductor_codegen.codegen.triton.split import cells_of
from inductor_codegen.ir.index import LoopVar
from inductor_codegen.ir.kernel import BufferParameter, Kernel, SizeParameter, extent_product
from inductor_codegen.ir.program import Program, RunKernel
from inductor_codegen.ir.scalar import ScalarBuilder
from inductor_codegen.native.launch_classes import bits
from inductor_codegen.schedule.kernels.build import kernel_name
from inductor_codegen.schedule.kernels.size_names import SizeRenamer

_LEAST = 8
"""Sizes below this stay in the text."""
_WIDEST = 8
"""The largest power of two that stays with a size: what loads need to be as wide as they can be."""


def with_shared_kernels(program: Program, kernels: Sequence[Kernel]) -> Program:
    """The program with those of these ``kernels`` merged that differ in sizes alone."""
    formed: dict[str, tuple[Kernel, tuple[int, ...]]] = {}
    for kernel in filter(_is_free_of_divisions, kernels):
        taker = _SizeTaker()
        formed[kernel.name] = taker.kernel(kernel), taker.sizes
    names = [kernel.name for kernel, _ in formed.values()]
    merged = {name: one for name, one in formed.items() if names.count(one[0].name) > 1}
    if not merged:
        return program
    found: dict[str, Kernel] = {}
    for kernel in program.kernels:
        one = merged[kernel.name][0] if kernel.name in merged else kernel
        found.setdefault(one.name, one)
    steps = tuple(
        _of_merged(step, *merged[step.kernel])
        if isinstance(step, RunKernel) and step.kernel in merged
        else step
        for step in program.steps
    )
    return replace(program, kernels=tuple(found.values()), steps=steps)


def _of_merged(step: RunKernel, kernel: Kernel, sizes: tuple[int, ...]) -> RunKernel:
    return replace(step, kernel=kernel.name, sizes=sizes)


def _is_free_of_divisions(kernel: Kernel) -> bool:
    """Whether a kernel of fixed sizes is split and has indices that are sums of its loops."""
    if type(kernel) is not Kernel or len(kernel.outer) > 1 or len(kernel.inner) > 1:
        return False
    if not all(isinstance(parameter, BufferParameter) for parameter in kernel.parameters):
        return False
    if not cells_of(kernel) or index_type(kernel) != "tl.int32":
        return False
    if not all(isinstance(atom, LoopVar) for index in all_indices(kernel) for atom, _ in index.terms):
        return False
    rows, points = extent_product(kernel.outer), extent_product(kernel.inner)
    assert isinstance(rows, int)
    assert isinstance(points, int)
    return len(KernelRecord.of(kernel).functions(bits(rows), bits(points))[2]) == 2


class _SizeTaker(SizeRenamer):
    """Makes sizes of one kernel its parameters."""

    def __init__(self) -> None:
        super().__init__(ScalarBuilder(), ShapeEnv(), ())
        self._values: dict[int, IntLike] = {}

    @property
    def sizes(self) -> tuple[int, ...]:
        """What the kernel is called with."""
        return tuple(value // _power(value) for value in self._values)

    def kernel(self, kernel: Kernel) -> Kernel:
        """The kernel with sizes as parameters, whose indices fit 32 bits as they did."""
        outer, inner = tuple(map(self.loop, kernel.outer)), tuple(map(self.loop, kernel.inner))
        passes = tuple(map(self.run, kernel.passes))
        given = [SizeParameter(f"s{position}") for position in range(len(self._values))]
        made = replace(
            kernel,
            parameters=(*kernel.parameters, *given),
            outer=outer,
            inner=inner,
            passes=passes,
            narrow=True,
        )
        return replace(made, name=f"{kernel_name(made)}_sized")

    def _size(self, value: IntLike) -> IntLike:
        if not isinstance(value, int) or abs(value) < _LEAST:
            return value
        if value < 0:
            return self._size(-value) * -1
        found = self._values.get(value)
        if found is None:
            found = self._values[value] = symbol(f"s{len(self._values)}") * _power(value)
        return found


def _power(value: int) -> int:
    """The power of two that stays with a size."""
    return min(_WIDEST, value & -value)
