"""What answers for operators where no rules are installed: each operator's own kernel, run once on zeros.

Sizes in play become constants. Rules are installed with primtorch-decomps, or passed to ``optimize(operators=...)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload

from dynamo_capture.foundation.errors import NO_SHAPE_RULE, OPERATOR_REFUSES, UNUSUAL_RESULT, DataDependent
from fx_interface.errors import UnsupportedProgramError
from fx_interface.operator_facts.data_errors import is_opaque
from fx_interface.symbols import Expr, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, ValueSpec

LARGEST_TRIAL_BYTES = 2 << 30
_LIMIT = 50_000
_Fill = Callable[[torch.Tensor], None]


class TrialLibrary:
    """An ``OperatorLibrary``. Results are memoised by operator and arguments as long as no size is symbolic."""

    def __init__(self) -> None:
        self._memo: dict[Any, ValueSpec] = {}

    def infer(
        self, op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv
    ) -> ValueSpec:
        """The spec of ``op``'s result; raises what the operator raises, UnsupportedProgramError CAP404 to CAP406."""
        if env.symbols:
            return _trial(op, args, kwargs, env)
        key = (op, torch.get_default_dtype(), _frozen(args), _frozen(kwargs))
        try:
            return self._memo[key]
        except KeyError:
            pass
        except TypeError:  # an argument that cannot be hashed
            return _trial(op, args, kwargs, env)
        found = _trial(op, args, kwargs, env)
        if len(self._memo) > _LIMIT:
            self._memo.clear()
        self._memo[key] = found
        return found


def _frozen(value: Any) -> Any:
    kind = type(value)
    if kind is list or kind is tuple:
        return tuple(_frozen(item) for item in value)
    if kind is dict:
        return tuple((name, _frozen(item)) for name, item in value.items())
    if kind is TensorSpec:
        return value
    return (kind, value)


def _trial(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv) -> ValueSpec:
    """Run on zeros; an operator that refuses these (``multinomial``, ``cholesky``) may take a positive matrix. What it
    refuses in other words then, or where nothing is known of it, the program's own content may not be refused for."""
    if _has_data_dependent_shape(op, args):
        raise DataDependent(f"the shape of {op}'s result depends on the data")
    try:
        return _trial_on(op, args, kwargs, env, _zeros)
    except RuntimeError as error:
        try:
            return _trial_on(op, args, kwargs, env, _positive)
        except RuntimeError as other:
            if str(other) == str(error) and not is_opaque(op):
                raise error from None
    raise UnsupportedProgramError(OPERATOR_REFUSES, f"{op} refuses what is not the program's content")


def _zeros(tensor: torch.Tensor) -> None:
    tensor.zero_()


def _positive(tensor: torch.Tensor) -> None:
    """Ones, and matrices with twos on the diagonal: positive in every sense."""
    tensor.fill_(1)
    if tensor.dim() >= 2 and 0 not in tensor.stride() and tensor.dtype.is_floating_point:
        tensor.diagonal(dim1=-2, dim2=-1).fill_(2)


def _trial_on(
    op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv, fill: _Fill
) -> ValueSpec:
    with torch._C._DisableTorchDispatch(), torch.no_grad():
        numbers = _numbers(op)
        ready = [_real(a, env, fill, i in numbers) for i, a in enumerate(args)]
        options = {name: _real(value, env, fill, name in numbers) for name, value in kwargs.items()}
        with torch.random.fork_rng(devices=[], enabled=torch.Tag.nondeterministic_seeded in op.tags):
            result = op(*ready, **options)
    return _spec(op, result)


_GIVE_SIZES = frozenset({"aten::arange", "aten::linspace", "aten::logspace", "aten::range"})


def _numbers(op: OpOverload) -> set[int | str]:
    """Position and name of the arguments that may be numbers to compute with, whose value decides no size."""
    found: set[int | str] = set()
    if op._schema.name not in _GIVE_SIZES:
        for index, argument in enumerate(op._schema.arguments):
            if argument.type.kind() in ("NumberType", "TensorType"):
                found |= {index, argument.name}
    return found


def _has_data_dependent_shape(op: OpOverload, args: Sequence[Any]) -> bool:
    if op is torch.ops.aten.index.Tensor:
        return any(isinstance(i, TensorSpec) and i.dtype in (torch.bool, torch.uint8) for i in args[1])
    return torch.Tag.dynamic_output_shape in op.tags


def _real(value: Any, env: ShapeEnv, fill: _Fill, is_number: bool = False) -> Any:
    if isinstance(value, TensorSpec):
        sizes = [env.specialize(n) for n in value.sizes]
        strides = [env.specialize(n) for n in value.strides]
        extent = 0 if 0 in sizes else 1 + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
        if extent * value.dtype.itemsize > LARGEST_TRIAL_BYTES:
            raise UnsupportedProgramError(
                NO_SHAPE_RULE, f"no rule for an operator on {value}, too large for a trial run"
            )
        made = torch.zeros(extent, dtype=value.dtype, device=value.device).as_strided(sizes, strides)
        if fill is not _zeros:
            fill(made)
        return made
    if isinstance(value, Expr):
        return env.hint(value) if is_number else env.specialize(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_real(item, env, fill) for item in value)
    return value


def _spec(op: OpOverload, result: Any) -> ValueSpec:
    if isinstance(result, torch.Tensor):
        if result.is_nested:  # which says that its layout is a strided one
            raise UnsupportedProgramError(UNUSUAL_RESULT, f"{op} returns a nested tensor")
        if result.layout is not torch.strided:
            raise UnsupportedProgramError(UNUSUAL_RESULT, f"{op} returns a tensor of layout {result.layout}")
        if result.is_quantized:
            raise UnsupportedProgramError(UNUSUAL_RESULT, f"{op} returns a quantized tensor ({result.dtype})")
        return TensorSpec(tuple(result.shape), tuple(result.stride()), result.dtype, result.device)
    if isinstance(result, list):
        return [_spec(op, item) for item in result]
    if isinstance(result, tuple):
        return tuple([_spec(op, item) for item in result])
    if result is None:
        return None
    raise DataDependent(f"{op} returns a number that depends on the data")
