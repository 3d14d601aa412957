"""Tensors that are joined: by loops that read each part where it stands, or by torch's own kernel.

A loop over a joined tensor that reduces tests at every point which part it lies in, and does not run in vector lanes
once there are more than a few (others are split: ``codegen.cpp.parts``). Then the parts are computed, and one call
copies them, which is what eager does.
"""

from __future__ import annotations

from collections.abc import Sequence

from fx_interface.symbols import IntLike
from fx_interface.tensor_spec import TensorSpec
from inductor_codegen.lower.values import Operand, Placed
from inductor_codegen.lower.views import Layout

PARTS_IN_A_LOOP = {"cpu": 3}
"""Up to how many parts a loop reads, by the type of device. On one thread, 32 rows of 384 floats a part, in us (loop
against call): 3 parts 18 against 20, 4 parts 50 against 23, 6 parts 215 against 40, 50 parts 10,000 against 220."""
PARTS_IN_A_LOOP_ELSEWHERE = 8


def wants_a_call(operands: Sequence[Operand], spec: TensorSpec) -> bool:
    """Whether there are so many parts that torch's kernel joins them faster."""
    return len(operands) > PARTS_IN_A_LOOP.get(spec.device.type, PARTS_IN_A_LOOP_ELSEWHERE)


def joins_to_rows(placed: Sequence[Placed], spec: TensorSpec) -> bool:
    """Whether the kernel surely lays its result out in row-major order, as ``spec`` wants it.

    It does so unless every part is laid out with its channels last.
    """
    return spec.is_contiguous and (len(spec.sizes) not in (4, 5) or any(map(_is_plain, placed)))


def _is_plain(placed: Placed) -> bool:
    """Whether a part is row-major and nothing else."""
    layout: Layout = placed.layout
    if any(not isinstance(size, int) or size < 2 for size in layout.sizes):
        return False
    expected: IntLike = 1
    for size, stride in zip(reversed(layout.sizes), reversed(layout.strides), strict=True):
        if stride != expected:
            return False
        expected = expected * size
    return True
