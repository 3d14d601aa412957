"""What an operator's kernel refuses: a decomposition holds for any dtype, while the kernel takes some.

``gelu`` of integers, ``-`` of booleans and indices that are floats raise in eager. What a kernel takes is written
nowhere but in the kernel, so it is asked: it runs on small tensors, once for each kind of call.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import torch
from torch._ops import OpOverload

from fx_interface.symbols import Expr, ShapeEnv
from fx_interface.tensor_spec import SymSpec, TensorSpec

LARGEST_ELEMENTS: Final = 1 << 12
"""The kernel is asked about larger tensors in sizes of at most two. What it then refuses may be the sizes, so that only
an exception about a missing kernel, or about a number, counts."""
_ANY_DTYPE_HOLDS: Final = 127
_RANGES: Final[tuple[torch.iinfo | torch.finfo, ...]] = (
    *(torch.iinfo(dtype) for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)),
    *(torch.finfo(dtype) for dtype in (torch.float16, torch.bfloat16, torch.float32)),
)
_BOUNDS: Final = sorted(bound for info in _RANGES for bound in (info.min, info.max))
"""The least and largest numbers of all dtypes: numbers between the same two are converted alike."""
_OVERFLOW: Final = "without overflow"
"""What a kernel says of a number that its dtype cannot hold, whatever the sizes."""
_FILLS: Final = {torch.ops.aten.scalar_tensor.default: 0, torch.ops.aten.full.default: 1}
"""Operators without tensors that convert a number, and which argument that is."""


class Kernels:
    """Which kinds of calls torch's kernels take: each is asked about once, as long as they take it."""

    def __init__(self) -> None:
        self._taken: set[object] = set()

    def check(self, op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv) -> None:
        """Raise what the kernel of ``op`` raises for arguments of this kind, if it does so whatever the tensors hold.

        The kind is the dtypes and ranks of the tensors, and what other arguments are: of a number also which dtypes
        can hold it.
        """
        if _takes_any_dtype(op):
            return
        others = tuple((name, _kind(value)) for name, value in kwargs.items())
        kind = (op, torch.get_default_dtype(), _kind(args), others)
        if kind in self._taken or torch.Tag.nondeterministic_seeded in op.tags:
            return
        if env.has_data and _is_open((*args, *kwargs.values())):
            return  # perhaps only data tell the size, and any that we choose may be a wrong one
        specs = list(_specs((*args, *kwargs.values())))
        if (
            specs
            and all(spec.device.type == "cpu" for spec in specs)
            and (not _takes(op, args, kwargs, specs, env) or _any_empty(specs, env))
        ):
            return
        if op in _FILLS:
            _convert(args[_FILLS[op]], kwargs.get("dtype"))
        self._taken.add(kind)


@functools.cache
def _takes_any_dtype(op: OpOverload) -> bool:
    """Whether ``op`` is a view's kernel, which looks at sizes alone; a composite may look at more (``positive``)."""
    name = op.name()  # type: ignore[no-untyped-call]
    composite = torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
    return op.is_view and not composite


def _convert(number: Any, dtype: torch.dtype | None) -> None:
    """Raise what a kernel raises that fills a tensor of ``dtype`` with a number that the dtype cannot hold."""
    if isinstance(number, float) or (isinstance(number, int) and dtype is not None):
        with torch._C._DisableTorchDispatch():
            torch.scalar_tensor(number, dtype=dtype)


def _kind(value: Any) -> object:
    match value:
        case TensorSpec():
            return value.dtype, value.device, len(value.sizes)
        case list() | tuple():
            return tuple(map(_kind, value))
        case bool() | str() | None | torch.dtype():
            return value
        case int() | float() if abs(value) > _ANY_DTYPE_HOLDS:
            return type(value), bisect.bisect_left(_BOUNDS, value)
    return type(value)


def _takes(
    op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], specs: Sequence[TensorSpec], env: ShapeEnv
) -> bool:
    """Whether the kernel took such a call. False where it cannot be told, since the sizes were others."""
    whole = _are_few(specs, env)
    refusal: Exception | None = None
    for fill in (torch.zeros, torch.ones):
        try:
            with torch._C._DisableTorchDispatch(), torch.no_grad():
                op(*_small(tuple(args), env, fill, whole), **_small(dict(kwargs), env, fill, whole))
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            refusal = refusal or error
        else:
            return True
    if refusal is not None and (
        whole or isinstance(refusal, NotImplementedError) or _OVERFLOW in str(refusal)
    ):
        raise refusal
    return False


def _specs(values: Sequence[Any]) -> Iterator[TensorSpec]:
    for value in values:
        if isinstance(value, TensorSpec):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _specs(value)


def _any_empty(specs: Sequence[TensorSpec], env: ShapeEnv) -> bool:
    """Whether a kernel may have looked at no dtype, since there was nothing to do."""
    return any(env.hint(size) == 0 for spec in specs for size in spec.sizes)


def _are_few(specs: Sequence[TensorSpec], env: ShapeEnv) -> bool:
    """Whether the tensors can be made as large as they are."""
    return sum(math.prod(map(env.hint, spec.sizes)) for spec in specs) <= LARGEST_ELEMENTS


def _is_open(value: Any) -> bool:
    """Whether the value is, or has, a size that is not known."""
    match value:
        case TensorSpec():
            return not value.is_static
        case Expr() | SymSpec():
            return True
        case list() | tuple():
            return any(map(_is_open, value))
    return False


def _small(value: Any, env: ShapeEnv, fill: Callable[..., torch.Tensor], whole: bool) -> Any:
    match value:
        case TensorSpec():
            sizes = [env.hint(size) for size in value.sizes]
            return fill(sizes if whole else [min(size, 2) for size in sizes], dtype=value.dtype)
        case SymSpec():
            return env.hint(value.expr)
        case Expr():
            return env.hint(value)
        case list() | tuple():
            return type(value)(_small(item, env, fill, whole) for item in value)
        case dict():
            return {name: _small(item, env, fill, whole) for name, item in value.items()}
    return value
