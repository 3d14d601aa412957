"""Large products of float32 matrices: the host may know of functions that are faster than torch's operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from inductor_codegen.codegen.wrapper.arguments import bound_arguments
from inductor_codegen.ir.program import Argument, Buffer, BufferRef, CallExtern

PRODUCTS: Mapping[str, str] = {
    "aoti_torch_cpu_mm_out": "fx_mm_out",
    "aoti_torch_cpu_addmm_out": "fx_addmm_out",
}
"""The helpers by the functions that they stand for, with the same arguments. Those whose results may be less exact have
``_high`` at the end of their names."""

HOST_FUNCTIONS = ("fx_split_product", "fx_product")
"""What a host may know: one that is as exact as torch's operator, and one that is less exact."""

PRODUCT_HELPERS = """\
/* 0, or 1 where they do not compute this; a host that knows no such functions binds nothing. */
static int32_t (*fx_split_product)(H out, H row, H lhs, H rhs);
static int32_t (*fx_product)(H out, H row, H lhs, H rhs);
static int32_t fx_mm_out(H out, H lhs, H rhs) {
    if (fx_split_product && !fx_split_product(out, nullptr, lhs, rhs)) return 0;
    return aoti_torch_cpu_mm_out(out, lhs, rhs);
}
static int32_t fx_addmm_out(H out, H row, H lhs, H rhs, double beta, double alpha) {
    if (fx_split_product && !fx_split_product(out, row, lhs, rhs)) return 0;
    return aoti_torch_cpu_addmm_out(out, row, lhs, rhs, beta, alpha);
}
static int32_t fx_mm_out_high(H out, H lhs, H rhs) {
    if (fx_split_product && !fx_split_product(out, nullptr, lhs, rhs)) return 0;
    if (fx_product && !fx_product(out, nullptr, lhs, rhs)) return 0;
    return aoti_torch_cpu_mm_out(out, lhs, rhs);
}
static int32_t fx_addmm_out_high(H out, H row, H lhs, H rhs, double beta, double alpha) {
    if (fx_split_product && !fx_split_product(out, row, lhs, rhs)) return 0;
    if (fx_product && !fx_product(out, row, lhs, rhs)) return 0;
    return aoti_torch_cpu_addmm_out(out, row, lhs, rhs, beta, alpha);
}
"""

PRODUCT_FUNCTIONS: Mapping[str, str] = {
    "aoti_torch_cpu_mm_out": "int32_t, H, H, H",
    "aoti_torch_cpu_addmm_out": "int32_t, H, H, H, H, double, double",
}
"""What the helpers call: result type, then parameter types."""

_LEAST_WORK = 1 << 23
"""Multiplications: smaller products are not faster in parts. Sizes that vary are looked at at run time."""
_LEAST_LESS_EXACT = 1 << 24  # calling oneDNN costs 12 us more, which is its gain on half as many
_LEAST_SIZE = 16  # of a dimension: with 1 row oneDNN takes twice BLAS's time
_MOST_TERMS = 1024
"""Terms of a sum. oneDNN adds in longer chains than MKL: with 1,024 terms errors are 1.6 times those of torch's
operator, with 4,096 2.1 times (root mean squares of normal numbers)."""


def large_product(function: str, call: CallExtern, buffers: Mapping[str, Buffer]) -> str | None:
    """The helper to call instead of ``function``, if the call is a product that may be faster there, and the program
    has asked for faster products of float32 (``torch.set_float32_matmul_precision("high")``). Those in parts are not
    less exact, but slower than torch's where other programs use the same core's matrix unit."""
    if torch.get_float32_matmul_precision() != "high":
        return None
    helper = PRODUCTS.get(function)
    (result,) = call.results
    if helper is None or result is None or not _is_matrix(result) or not _row_major(result):
        return None
    given = [value for _, value in bound_arguments(call)]
    row = given.pop(0) if len(given) > 2 else None
    lhs, rhs = (_buffer(value, buffers) for value in given[:2])
    if lhs is None or rhs is None or not (_is_matrix(lhs) and _is_matrix(rhs)):
        return None
    if not all(1 in matrix.strides for matrix in (lhs, rhs)):
        return None
    if row is not None and not (_is_row(_buffer(row, buffers), result) and given[2:] == [1, 1]):
        return None
    sizes = [size for size in (*lhs.sizes, rhs.sizes[1]) if isinstance(size, int)]
    if len(sizes) == 3 and _product(sizes) < _LEAST_WORK:
        return None
    return f"{helper}_high" if _may_be_less_exact(lhs, rhs, sizes) else helper


def _may_be_less_exact(lhs: Buffer, rhs: Buffer, sizes: Sequence[int]) -> bool:
    """Whether oneDNN's product, which is less exact, is worth it. Sizes have to be constants: oneDNN makes code for
    each shape, in 0.5 to 1 ms."""
    if len(sizes) < 3 or sizes[1] > _MOST_TERMS:
        return False
    has_no_gaps = all(_row_major(matrix) or _column_major(matrix) for matrix in (lhs, rhs))
    return has_no_gaps and _product(sizes) >= _LEAST_LESS_EXACT and min(sizes) >= _LEAST_SIZE


def _buffer(value: Argument, buffers: Mapping[str, Buffer]) -> Buffer | None:
    return buffers[value.name] if isinstance(value, BufferRef) else None


def _is_matrix(buffer: Buffer) -> bool:
    return len(buffer.sizes) == 2 and buffer.dtype == torch.float32


def _row_major(buffer: Buffer) -> bool:
    return buffer.strides == (buffer.sizes[1], 1)


def _column_major(buffer: Buffer) -> bool:
    return buffer.strides == (1, buffer.sizes[0])


def _is_row(row: Buffer | None, result: Buffer) -> bool:
    return (
        row is not None
        and row.dtype == torch.float32
        and row.sizes == result.sizes[1:]
        and row.strides == (1,)
    )


def _product(sizes: Sequence[int]) -> int:
    return sizes[0] * sizes[1] * sizes[2]
