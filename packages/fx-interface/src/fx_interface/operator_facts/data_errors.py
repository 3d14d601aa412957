"""Which ATen operators may raise because of what is *in* their tensors, although sizes and dtypes fit.

Such a call has an effect even if nothing uses its result, and what comes after it in the program must not be seen
when it raises: ``y = x[i]`` with ``i`` out of range, a matrix that has no Cholesky factor, a division of integers by 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import torch
from torch._ops import OpOverload

_NAMESPACES: Final = frozenset({"aten", "prim", "prims", "fx_interface"})
"""Of operators of other namespaces nothing is known: they may fail."""

_INDEXING: Final = (
    "index index_put _index_put_impl _unsafe_index_put index_select index_add index_copy index_fill"
)
_MORE_INDEXING: Final = "index_reduce gather scatter scatter_add scatter_reduce take put masked_scatter"
_EMBEDDING: Final = "embedding embedding_renorm embedding_bag _embedding_bag _embedding_bag_forward_only"
_LOSSES: Final = "nll_loss nll_loss_nd nll_loss_forward nll_loss2d nll_loss2d_forward _ctc_loss ctc_loss"
_MARGINS: Final = (
    "multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward binary_cross_entropy"
)
_POOLING: Final = "max_unpool2d max_unpool3d fractional_max_pool2d_backward fractional_max_pool3d_backward"
_COUNTING: Final = (
    "repeat_interleave bincount one_hot segment_reduce histc histogram histogramdd _histogramdd_bin_edges"
    " _pack_padded_sequence searchsorted"
)
_DRAWING: Final = "multinomial poisson binomial"
_MATRICES: Final = (
    "geqrf ormqr orgqr lu_unpack lu_solve triangular_solve lstsq slogdet logdet det pinverse matrix_exp"
)
_NAMING_PLACES: Final = "as_strided as_strided_scatter"
"""Sizes do not tell how much memory there is."""
_ON_VALUES: Final = frozenset(
    name
    for family in (
        _INDEXING,
        _MORE_INDEXING,
        _EMBEDDING,
        _LOSSES,
        _MARGINS,
        _POOLING,
        _COUNTING,
        _DRAWING,
        _MATRICES,
        _NAMING_PLACES,
    )
    for name in family.split()
)
_NEVER: Final = frozenset(
    f"linalg_{name}" for name in ("vector_norm", "cross", "vecdot", "diagonal", "matmul", "multi_dot")
)
_DIVISIONS: Final = frozenset({"floor_divide", "remainder", "fmod"})
_ROUNDED_DIVISIONS: Final = frozenset({"div", "divide"})
_PARAMETERS: Final = frozenset(
    {
        "aten::bernoulli",
        "aten::bernoulli.Tensor",
        "aten::bernoulli_.Tensor",
        "aten::normal.float_Tensor",
        "aten::normal.Tensor_Tensor",
    }
)
"""Random operators whose parameters are in a tensor."""
_DISTRIBUTIONS: Final[Mapping[str, Callable[..., bool]]] = {
    "bernoulli": lambda p=0.5: 0 <= p <= 1,
    "cauchy": lambda median=0.0, sigma=1.0: sigma > 0,
    "exponential": lambda rate=1.0: rate > 0,
    "geometric": lambda p: 0 < p < 1,
    "log_normal": lambda mean=1.0, std=2.0: std > 0,
    "normal": lambda mean=0.0, std=1.0: std >= 0,
    "normal_functional": lambda mean=0.0, std=1.0: std >= 0,
    "random": lambda *ends: not ends or (0, *ends)[-2] < ends[-1],
    "uniform": lambda low=0.0, high=1.0: low <= high,
}
"""Random operators whose parameters are numbers, and which numbers they take: shape rules do not look at them."""


@cache
def is_opaque(op: OpOverload) -> bool:
    """Whether nothing is known of an operator but its schema: a call may do anything besides, and runs as in eager,
    exactly once, whoever uses its results."""
    return op.namespace not in _NAMESPACES


def may_fail(op: OpOverload, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> bool:
    """Whether ``op`` may raise on these arguments: tensors or specs (anything with a ``dtype``), numbers, lists of
    them. Running out of memory does not count."""
    if op.namespace not in _NAMESPACES:
        return True
    if op.namespace == "fx_interface":  # its programs may read at an index from data
        return any(isinstance(arg, str) and "index" in arg for arg in args)
    schema = op._schema
    if not schema.returns:
        return not schema.is_mutable  # ``_assert_async`` and its kin
    name = op._opname.rstrip("_")
    options = kwargs or {}
    if name in _DIVISIONS:
        return _divides_integers(args, options)
    if name in _ROUNDED_DIVISIONS:
        return options.get("rounding_mode") is not None and _divides_integers(args, options)
    if name in _ON_VALUES or schema.name + _overload(schema) in _PARAMETERS:
        return True
    if op is torch.ops.aten.view.dtype:  # wider elements begin at every second, fourth, ... place only
        return bool(args[1].itemsize > args[0].dtype.itemsize)
    if name in _DISTRIBUTIONS:
        return not _has_distribution(_DISTRIBUTIONS[name], args, options)
    if "linalg" in name or "cholesky" in name:
        return name not in _NEVER and not (name.endswith("_ex") and not options.get("check_errors"))
    return False


def _has_distribution(takes: Callable[..., bool], args: Sequence[Any], options: Mapping[str, Any]) -> bool:
    """Whether the parameters are known, and as the operator wants them; named ones are not looked at."""
    numbers = [arg for arg in args if not hasattr(arg, "dtype") and not isinstance(arg, (list, tuple))]
    return (
        all(isinstance(number, (int, float)) for number in numbers)
        and not any(isinstance(option, (int, float)) for option in options.values())
        and takes(*numbers)
    )


def _overload(schema: Any) -> str:
    return f".{schema.overload_name}" if schema.overload_name else ""


def _divides_integers(args: Sequence[Any], options: Mapping[str, Any]) -> bool:
    """Whether all tensors are of integers, and the divisor is no number that is not 0."""
    dtypes = [arg.dtype for arg in args if isinstance(getattr(arg, "dtype", None), torch.dtype)]
    if any(dtype.is_floating_point or dtype.is_complex for dtype in dtypes):
        return False
    divisor = args[1] if len(args) > 1 else options.get("other")
    return not (isinstance(divisor, (int, float)) and divisor != 0)
