"""Specs of random permutations, integers and choices: tried on zeros, choices would end a GPU's context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fx_interface.symbols import IntLike, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.pointwise import pointwise_spec
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.rules.data_movement.scatter import fresh
from primtorch_decomps.shapes import at_most, broadcast, required_at_most, same_sizes
from primtorch_decomps.strides import preserved_strides


@spec_rule("aten.multinomial.default")
def multinomial(
    weights: TensorSpec,
    num_samples: IntLike,
    replacement: bool = False,
    *,
    generator: Any = None,
    env: ShapeEnv,
) -> TensorSpec:
    """Weights [n] or [m, n] -> indices [k] or [m, k]."""
    if weights.rank not in (1, 2) or not weights.dtype.is_floating_point or not at_most(1, num_samples, env):
        raise RuleMismatchError("weights of another rank or dtype, or no samples")
    if not replacement and not at_most(num_samples, weights.sizes[-1], env):
        raise RuleMismatchError("more samples than weights")
    return fresh((*weights.sizes[:-1], num_samples), dtype=torch.int64, device=weights.device, env=env)


@spec_rule("aten.randperm.default", "aten.randperm.generator")
def randperm(
    n: IntLike,
    *,
    generator: Any = None,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    env: ShapeEnv,
) -> TensorSpec:
    if not required_at_most(0, n, env):
        raise RuleMismatchError("a permutation of less than nothing")
    return fresh((n,), dtype=dtype or torch.int64, device=device, env=env)


@spec_rule("aten.randint.default", "aten.randint.generator")
def randint(
    high: IntLike,
    size: Sequence[IntLike],
    *,
    generator: Any = None,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    env: ShapeEnv,
) -> TensorSpec:
    return randint_from(0, high, size, dtype=dtype, device=device, env=env)


@spec_rule("aten.randint.low", "aten.randint.low_generator")
def randint_from(
    low: IntLike,
    high: IntLike,
    size: Sequence[IntLike],
    *,
    generator: Any = None,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    env: ShapeEnv,
) -> TensorSpec:
    in_range = all(required_at_most(0, number, env) for number in size)
    if not in_range or not required_at_most(low + 1, high, env):
        raise RuleMismatchError("no number to draw, or sizes below zero")
    return fresh(size, dtype=dtype or torch.int64, device=device, env=env)


@spec_rule("aten.cauchy.default", "aten.geometric.default", "aten.log_normal.default")
def drawn_like(x: TensorSpec, *args: Any, env: ShapeEnv, **kwargs: Any) -> TensorSpec:
    """As many numbers, of the same dtype and layout."""
    return TensorSpec(x.sizes, preserved_strides(x.sizes, x.strides, env), x.dtype, x.device)


@spec_rule("aten.normal.Tensor_Tensor", "aten.normal.Tensor_float", "aten.normal.float_Tensor")
def normal(mean: Any, std: Any = 1.0, *, generator: Any = None, env: ShapeEnv) -> TensorSpec:
    """A number for each mean and deviation."""
    given = [part for part in (mean, std) if isinstance(part, TensorSpec)]
    if any(part.dtype is not given[0].dtype or not part.dtype.is_floating_point for part in given):
        raise RuleMismatchError("deviations of other dtypes")
    sizes = broadcast([part.sizes for part in given], env)
    return TensorSpec(sizes, contiguous_strides(sizes), given[0].dtype, given[0].device)


@spec_rule("aten.normal.float_float")
def normal_of_numbers(
    mean: Any, std: Any, size: Sequence[IntLike], *, env: ShapeEnv, **options: Any
) -> TensorSpec:
    dtype = options.get("dtype") or torch.get_default_dtype()
    return fresh(size, dtype=dtype, device=options.get("device"), env=env)


@spec_rule(
    "aten.poisson.default",
    "aten.binomial.default",
    "aten._standard_gamma.default",
    "aten._standard_gamma_grad.default",
    "aten._sample_dirichlet.default",
    "aten._dirichlet_grad.default",
)
def of_a_distribution(*args: Any, generator: Any = None, env: ShapeEnv) -> TensorSpec:
    """A number for each parameter, or its derivative for each sample, one after the other in memory."""
    x, *others = [part for part in args if isinstance(part, TensorSpec)]
    for other in others:
        if other.dtype is not x.dtype or not same_sizes(other.sizes, x.sizes, env):
            raise RuleMismatchError("parameters of other sizes or dtypes")
    if not x.dtype.is_floating_point:
        raise RuleMismatchError("numbers that are no floats")
    return fresh(x.sizes, dtype=x.dtype, device=x.device, env=env)


@spec_rule("aten.rrelu_with_noise.default")
def leaky(x: TensorSpec, noise: TensorSpec, *args: Any, env: ShapeEnv, **kwargs: Any) -> TensorSpec:
    """A rectifier with drawn slopes, which are kept as noise."""
    return TensorSpec(x.sizes, contiguous_strides(x.sizes), x.dtype, x.device)


@spec_rule("aten.rrelu_with_noise_functional.default")
def leaky_with_noise(
    x: TensorSpec, noise: TensorSpec, *args: Any, env: ShapeEnv, **kwargs: Any
) -> tuple[TensorSpec, TensorSpec]:
    return drawn_like(x, env=env), drawn_like(noise, env=env)


@spec_rule("aten.rrelu_with_noise_backward.default")
def leaky_backward(
    grad: TensorSpec,
    x: TensorSpec,
    noise: TensorSpec,
    lower: float,
    upper: float,
    training: bool,
    self_is_result: bool,
    *,
    env: ShapeEnv,
) -> TensorSpec:
    if not training or upper - lower <= 1e-6:
        raise RuleMismatchError("one slope for all")
    return pointwise_spec([noise, grad], grad.dtype, env)
