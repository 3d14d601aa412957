"""Interpolation to symbolic sizes: the operator that eager calls, with output sizes as formulas.

Under torch's Python dispatcher, which symbolic sizes need, torch itself would take other operators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch.nn import functional

aten = torch.ops.aten

_RESAMPLING: Final[Mapping[tuple[str, int, bool], Any]] = {
    ("nearest", 3, False): aten.upsample_nearest1d.default,
    ("nearest", 4, False): aten.upsample_nearest2d.default,
    ("nearest", 5, False): aten.upsample_nearest3d.default,
    ("nearest-exact", 3, False): aten._upsample_nearest_exact1d.default,
    ("nearest-exact", 4, False): aten._upsample_nearest_exact2d.default,
    ("nearest-exact", 5, False): aten._upsample_nearest_exact3d.default,
    ("linear", 3, False): aten.upsample_linear1d.default,
    ("bilinear", 4, False): aten.upsample_bilinear2d.default,
    ("bicubic", 4, False): aten.upsample_bicubic2d.default,
    ("trilinear", 5, False): aten.upsample_trilinear3d.default,
    ("bilinear", 4, True): aten._upsample_bilinear2d_aa.default,
    ("bicubic", 4, True): aten._upsample_bicubic2d_aa.default,
}
"""What ``interpolate`` calls, by mode, rank of its input and whether it smooths."""


def interpolate(
    input: torch.Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> torch.Tensor:
    """``torch.nn.functional.interpolate``; output sizes are ``floor(size * scale)``, as eager computes them."""
    given = (input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
    operator = _RESAMPLING.get((mode, input.dim(), bool(antialias)))
    is_nearest = mode.startswith("nearest")
    count = input.dim() - 2
    one = scale_factor if size is None else size
    numbers = list(one) if isinstance(one, (tuple, list)) else [one] * count
    if (
        operator is None
        or (size is None) is (scale_factor is None)
        or (is_nearest and align_corners is not None)
        or (size is not None and recompute_scale_factor)
        or len(numbers) != count
        or not _is_symbolic((*input.shape, *numbers))
    ):
        return functional.interpolate(*given)
    sizes = numbers
    scales: list[float | None] = [None] * count
    if size is None:
        sizes = [torch.sym_int(n * float(s)) for n, s in zip(input.shape[2:], numbers, strict=True)]  # type: ignore[no-untyped-call]
        if not recompute_scale_factor:
            scales = [float(s) for s in numbers]
    corners = () if is_nearest else (bool(align_corners),)
    with torch._C._DisablePythonDispatcher():
        made: torch.Tensor = operator(input, sizes, *corners, *scales)
    return made


def _is_symbolic(numbers: Sequence[Any]) -> bool:
    return any(isinstance(n, torch.SymInt) for n in numbers)
