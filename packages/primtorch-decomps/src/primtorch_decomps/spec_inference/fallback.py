"""Specs of operators without a rule: their own kernel is run on zeros, with the random state put back.

Torch's Python meta functions are no option: they import another compiler (and are slower than many kernels).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload

from fx_interface.errors import UnsupportedProgramError
from fx_interface.operator_facts.data_errors import is_opaque
from fx_interface.symbols import Expr, IntLike, Relation, ShapeEnv
from fx_interface.tensor_spec import SymFloatSpec, SymSpec, TensorSpec, ValueSpec

LARGEST_TRIAL_BYTES = 2 << 30
"""No trial run allocates inputs beyond this."""


def _has_data_dependent_shape(
    op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv
) -> bool:
    """As the operator's tag says, but for calls whose arguments tell the shape where others do not."""
    aten = torch.ops.aten
    if op is aten.index.Tensor:
        return _indexes_by_mask(args)
    if op is aten._ctc_loss.default:
        return False  # the lengths are given as integers
    if op is aten.linalg_lstsq.default:
        return _asks_for_rank(args[0], kwargs.get("driver", args[3] if len(args) > 3 else None), env)
    return torch.Tag.dynamic_output_shape in op.tags


def _asks_for_rank(matrix: TensorSpec, driver: str | None, env: ShapeEnv) -> bool:
    """Two drivers of least squares give residuals only where a matrix, taller than wide, has full rank."""
    rows, columns = (env.specialize(size) for size in matrix.sizes[-2:])
    return driver in ("gelss", "gelsd") and rows > columns


def run_for_spec(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv) -> ValueSpec:
    """The spec of ``op``'s result by a trial run; the sizes in play become constants of this compilation.

    Raises what the operator raises for these arguments, and UnsupportedProgramError DEC101 where the result's shape
    depends on data, DEC102 where the inputs are too large for a trial run, DEC103 where it returns a number, DEC108
    where what it refuses may be the content that a trial run makes up.
    """
    if _has_data_dependent_shape(op, args, kwargs, env):
        raise UnsupportedProgramError(
            "DEC101",
            f"the shape of {op}'s result depends on the data",
            where=env.location,
            action="keep the operation out of the compiled region, or replace it by one of fixed shape (torch.where)",
        )
    try:
        result = _trial(op, args, kwargs, env, torch.zeros)
    except (NotImplementedError, MemoryError):
        raise
    except RuntimeError as error:
        if _gives_views(op):  # what a view refuses is a layout, which the content does not change
            raise
        result = _other_trials(op, args, kwargs, env, error)
    return _spec_of_result(op, result, env)


def _indexes_by_mask(args: Sequence[Any]) -> bool:
    masks = (torch.bool, torch.uint8)
    return any(isinstance(item, TensorSpec) and item.dtype in masks for item in args[1])


def _other_trials(
    op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv, error: RuntimeError
) -> Any:
    """Once more with ones and identity matrices, for the sake of factorisations, which fail on zeros, and with numbers
    of which no two are equal, for the sake of places. What is refused in other words then, or by an operator of which
    nothing is known, may be the content, which is none of the program's."""
    for fill in (_identity, _counting):
        try:
            return _trial(op, args, kwargs, env, fill)
        except RuntimeError as other:
            if str(other) != str(error) or is_opaque(op):
                break
    else:
        raise error from None
    raise UnsupportedProgramError(
        "DEC108",
        f"{op} refuses what is not the program's content ({str(error).splitlines()[0]})",
        where=env.location,
        action="keep the operation out of the compiled region",
    )


def _identity(length: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.ones(length, dtype=dtype, device=device)


def _counting(length: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.arange(length, device=device).to(dtype)


def _trial(
    op: OpOverload,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    env: ShapeEnv,
    fill: Callable[..., torch.Tensor],
) -> Any:
    devices = {torch.device("cpu")}
    strides_of = _fixed_strides if _gives_views(op) else _strides_of_same_layout

    def real(value: Any) -> Any:
        match value:
            case TensorSpec():
                devices.add(value.device)
                return _real_tensor(value, env, fill, strides_of)
            case torch.device():
                devices.add(value)
            case torch.Generator():
                return value.clone_state()  # the program's own does not move on
            case SymSpec():
                return env.specialize(value.expr)
            case Expr():
                return env.specialize(value)
            case list() | tuple():
                return type(value)(real(item) for item in value)
        return value

    with torch._C._DisableTorchDispatch(), torch.no_grad():
        ready, options = real(tuple(args)), {name: real(value) for name, value in kwargs.items()}
        cuda = [d.index or 0 for d in devices if d.type == "cuda"]
        with torch.random.fork_rng(cuda, enabled=torch.Tag.nondeterministic_seeded in op.tags):
            return op(*ready, **options)


def _gives_views(op: OpOverload) -> bool:
    return any(result.alias_info is not None for result in op._schema.returns)


def _fixed_strides(spec: TensorSpec, sizes: Sequence[int], env: ShapeEnv) -> list[int]:
    return [env.specialize(n) for n in spec.strides]


def _strides_of_same_layout(spec: TensorSpec, sizes: Sequence[int], env: ShapeEnv) -> list[int]:
    """Strides that stand for all others of the same layout: new results depend on the order of an input's dimensions
    and on where it is dense, and on its strides in no other way."""
    if not spec.is_static:
        order = sorted((d for d, n in enumerate(sizes) if n != 1), key=lambda d: env.hint(spec.strides[d]))
        packed: IntLike = 1
        for dim in order:
            stride = spec.strides[dim]
            env.decide(Relation("==", stride, 0))
            env.decide(Relation("==", stride, packed))
            env.decide(Relation("<=", packed, stride))
            packed = stride * sizes[dim]
    return [env.hint(n) for n in spec.strides]


def _real_tensor(
    spec: TensorSpec,
    env: ShapeEnv,
    fill: Callable[..., torch.Tensor],
    strides_of: Callable[[TensorSpec, Sequence[int], ShapeEnv], list[int]],
) -> torch.Tensor:
    sizes = [env.specialize(n) for n in spec.sizes]
    strides = strides_of(spec, sizes, env)
    extent = 0 if 0 in sizes else 1 + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    if extent * spec.dtype.itemsize > LARGEST_TRIAL_BYTES:
        raise UnsupportedProgramError(
            "DEC102",
            f"no rule for an operator on {spec}, and it is too large for a trial run",
            where=env.location,
        )
    matrix = len(sizes) >= 2 and (spec.dtype.is_floating_point or spec.dtype.is_complex)  # pivots are none
    if fill is _identity and matrix:
        eye = torch.eye(sizes[-2], sizes[-1], dtype=spec.dtype, device=spec.device).expand(sizes)
        storage = torch.zeros(extent, dtype=spec.dtype, device=spec.device).as_strided(sizes, strides)
        return eye if 0 in strides else storage.copy_(eye)
    return fill(extent, dtype=spec.dtype, device=spec.device).as_strided(sizes, strides)


def _gives_sizes(op: OpOverload) -> bool:
    """Whether the integers that the operator returns are sizes, as the schema says, and no data."""
    return "SymInt" in str(op._schema).rpartition("->")[2]


def _spec_of_result(op: OpOverload, result: Any, env: ShapeEnv) -> ValueSpec:
    match result:
        case torch.Tensor():
            if result.is_nested:  # which says that its layout is a strided one
                raise UnsupportedProgramError("DEC104", f"{op} returns a nested tensor", where=env.location)
            if result.layout is not torch.strided:
                raise UnsupportedProgramError(
                    "DEC104", f"{op} returns a tensor of layout {result.layout}", where=env.location
                )
            if result.is_quantized:
                raise UnsupportedProgramError(
                    "DEC104", f"{op} returns a quantized tensor ({result.dtype})", where=env.location
                )
            return TensorSpec(tuple(result.shape), tuple(result.stride()), result.dtype, result.device)
        case list():
            return [_spec_of_result(op, item, env) for item in result]
        case tuple():
            return tuple(_spec_of_result(op, item, env) for item in result)
        case int() if not isinstance(result, bool) and _gives_sizes(op):
            return SymSpec(result)
        case None:
            return None
        case float():
            return SymFloatSpec()
    raise UnsupportedProgramError(
        "DEC103",
        f"{op} returns a number that depends on the data",
        where=env.location,
        action="keep the operation out of the compiled region",
    )
