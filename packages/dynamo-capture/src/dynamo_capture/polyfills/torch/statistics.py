"""Substitutes for statistics of torch that ask in C what counts and weights are."""

from __future__ import annotations

from typing import Any

import torch

from dynamo_capture.polyfills.registry import substitutes


@substitutes(torch.cov)
def cov(
    input: torch.Tensor,
    *,
    correction: int = 1,
    fweights: torch.Tensor | None = None,
    aweights: torch.Tensor | None = None,
) -> Any:
    """What torch warns of or refuses is left to torch: an assertion that fails here runs it."""
    weights = [w for w in (fweights, aweights) if w is not None]
    count = input.numel() if input.dim() < 2 else input.shape[1]
    wrong = (
        input.dim() > 2
        or input.dtype is torch.bool
        or (fweights is not None and (fweights.is_floating_point() or fweights.is_complex()))
        or (aweights is not None and not aweights.is_floating_point())
        or any(w.dim() != 1 or w.shape[0] != count for w in weights)
    )
    if wrong or not count or (not weights and count <= correction):
        return torch.ops.aten.cov.default(input, correction=correction, fweights=fweights, aweights=aweights)
    observed = input.view(1, -1) if input.dim() < 2 else input
    if not weights:
        centered = observed - (observed.sum(1) / count).unsqueeze(1)
        return torch.true_divide(torch.mm(centered, centered.t().conj()), count - correction).squeeze()
    for given in weights:
        assert given.min() >= 0
    weight = weights[0] if len(weights) == 1 else weights[0] * weights[1]
    total = weight.sum()
    assert total != 0
    mean = (observed * weight).sum(1) / total
    divisor = total - correction
    if aweights is not None and correction != 0:
        divisor = total - correction * (weight * aweights).sum() / total
    assert divisor > 0
    centered = observed - mean.unsqueeze(1)
    products = torch.mm(centered, (centered * weight).t().conj())
    return torch.true_divide(products, divisor).squeeze()


def _expect_shares(q: Any) -> None:
    """What torch checks in eager only, and on the CPU."""
    if isinstance(q, torch.Tensor) and q.device.type == "cpu":
        torch._assert_async(((q >= 0) & (q <= 1)).all(), "quantile() q values must be in the range [0, 1]")


@substitutes(torch.quantile, torch.Tensor.quantile)
def quantile(input: Any, q: Any, *args: Any, **options: Any) -> Any:
    _expect_shares(q)
    return torch.ops.aten.quantile(input, q, *args, **options)


@substitutes(torch.nanquantile, torch.Tensor.nanquantile)
def nanquantile(input: Any, q: Any, *args: Any, **options: Any) -> Any:
    _expect_shares(q)
    return torch.ops.aten.nanquantile(input, q, *args, **options)


@substitutes(torch.corrcoef)
def corrcoef(input: torch.Tensor) -> Any:
    """Covariances divided by both deviations, within -1 and 1."""
    covariances = cov(input)
    if covariances.dim() == 0:
        return covariances / covariances
    variances = covariances.diag()
    deviations = torch.sqrt(variances.real if variances.is_complex() else variances)
    found = covariances / deviations.view(-1, 1) / deviations.view(1, -1)
    if found.is_complex():
        return torch.complex(found.real.clip(-1, 1), found.imag.clip(-1, 1))
    return found.clip(-1, 1)
