"""Specs of Fourier transforms on a CPU, where oneMKL does them: the transformed dimensions lie innermost in memory."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fx_interface.symbols import IntLike, ShapeEnv, floordiv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.shapes import Sizes, canonical_dim, same
from primtorch_decomps.spec_inference.complex_numbers import COMPLEX, REAL
from primtorch_decomps.strides import is_inside, ordered_strides, preserved_strides


def _by_stride(dims: Sequence[int], x: TensorSpec, env: ShapeEnv) -> list[int]:
    """Dimensions with the largest stride first; of equal ones the first."""
    ordered: list[int] = []
    for dim in dims:
        place = len(ordered)
        while place and is_inside(x.strides[ordered[place - 1]], x.strides[dim], env):
            place -= 1
        ordered.insert(place, dim)
    return ordered


def _transformed(
    x: TensorSpec, sizes: Sizes, dims: Sequence[int], fixed: int, dtype: torch.dtype, env: ShapeEnv
) -> TensorSpec:
    """What is not transformed lies outside; of ``dims`` the last ``fixed`` stay innermost, others by stride."""
    if x.device.type != "cpu" or not torch._C.has_mkl or 0 in x.sizes:
        raise RuleMismatchError("another library, or a transform of nothing")
    if len(set(dims)) != len(dims):
        raise RuleMismatchError("a dimension is transformed twice")
    outer = [dim for dim in range(x.rank) if dim not in dims]
    cut = len(dims) - fixed
    order = [*_by_stride(outer, x, env), *_by_stride(dims[:cut], x, env), *dims[cut:]]
    return TensorSpec(sizes, ordered_strides(sizes, order), dtype, x.device)


def _with_size(x: TensorSpec, dim: int, size: IntLike) -> Sizes:
    return (*x.sizes[:dim], size, *x.sizes[dim + 1 :])


def _canonical(x: TensorSpec, dim: Sequence[int]) -> list[int]:
    return [canonical_dim(d, x.rank) for d in dim]


@spec_rule("aten._fft_r2c.default")
def from_real(
    x: TensorSpec, dim: Sequence[int], normalization: int, onesided: bool, *, env: ShapeEnv
) -> TensorSpec:
    """Real -> complex; ``onesided``: about half of the last transformed dimension tells the rest."""
    dims = _canonical(x, dim)
    if x.dtype not in COMPLEX or not dims:
        raise RuleMismatchError("not a transform of real numbers")
    last = dims[-1]
    sizes = _with_size(x, last, floordiv(x.sizes[last], 2) + 1) if onesided else x.sizes
    return _transformed(x, sizes, dims, 1, COMPLEX[x.dtype], env)


@spec_rule("aten._fft_c2c.default")
def complex_to_complex(
    x: TensorSpec, dim: Sequence[int], normalization: int, forward: bool, *, env: ShapeEnv
) -> TensorSpec:
    dims = _canonical(x, dim)
    if not x.dtype.is_complex:
        raise RuleMismatchError("not a transform of complex numbers")
    if not dims:
        return TensorSpec(x.sizes, preserved_strides(x.sizes, x.strides, env), x.dtype, x.device)
    return _transformed(x, x.sizes, dims, 0, x.dtype, env)


@spec_rule("aten._fft_c2r.default")
def to_real(
    x: TensorSpec, dim: Sequence[int], normalization: int, last_dim_size: IntLike, *, env: ShapeEnv
) -> TensorSpec:
    """Complex -> real of ``last_dim_size`` along the last transformed dimension."""
    dims = _canonical(x, dim)
    if x.dtype not in REAL or not dims:
        raise RuleMismatchError("not a transform of complex numbers")
    last = dims[-1]
    if not same(x.sizes[last], floordiv(last_dim_size, 2) + 1, env):
        raise RuleMismatchError("a half that does not fit")
    return _transformed(x, _with_size(x, last, last_dim_size), dims, 1, REAL[x.dtype], env)
