"""Specs of collective operators' results.

A collective is never run for its spec: the other processes would not take part in it. They may compile at another time,
or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from torch._ops import OpOverload

from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import IntLike, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, ValueSpec, contiguous_strides


def infer_collective(
    op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any], env: ShapeEnv
) -> ValueSpec:
    """The spec of a functional collective's result; UnsupportedProgramError DEC107 for other collectives."""
    rule = _RULES.get(op._opname) if op.namespace.startswith("_c10d_functional") else None
    if rule is None:
        raise UnsupportedProgramError(
            "DEC107", f"{op} speaks to other processes, and nothing says what it returns", where=env.location
        )
    try:
        found: ValueSpec = rule(*args, **kwargs)
    except _WithoutRowsError:
        raise UnsupportedProgramError(
            "DEC107", f"{op} is given a tensor without dimensions", where=env.location
        ) from None
    return found


class _WithoutRowsError(Exception):
    """What is cut into rows, or joined from rows, has no dimensions."""


def _alike(input: TensorSpec, *others: Any, **options: Any) -> TensorSpec:
    return _row_major(input, input.sizes)


def _row_major(input: TensorSpec, sizes: tuple[IntLike, ...]) -> TensorSpec:
    return TensorSpec(sizes, contiguous_strides(sizes), input.dtype, input.device)


def _with_rows(input: TensorSpec, rows: Callable[[IntLike], IntLike]) -> TensorSpec:
    if not input.sizes:
        raise _WithoutRowsError
    first, *rest = input.sizes
    return _row_major(input, (rows(first), *rest))


def _same(tensor: TensorSpec) -> TensorSpec:
    return tensor


def _gathered(input: TensorSpec, group_size: int, group_name: Any) -> TensorSpec:
    return _with_rows(input, lambda rows: rows * group_size)


def _scattered(input: TensorSpec, reduce_op: str, group_size: int, group_name: Any) -> TensorSpec:
    return _with_rows(input, lambda rows: rows // group_size)


def _exchanged(
    input: TensorSpec,
    output_split_sizes: Sequence[IntLike],
    input_split_sizes: Sequence[IntLike],
    group_name: Any,
) -> TensorSpec:
    return _with_rows(input, lambda rows: sum(output_split_sizes) if output_split_sizes else rows)


def _each(rule: Callable[..., TensorSpec]) -> Callable[..., list[TensorSpec]]:
    def of_all(inputs: Sequence[TensorSpec], *others: Any, **options: Any) -> list[TensorSpec]:
        return [rule(input, *others, **options) for input in inputs]

    return of_all


_RULES: Final[Mapping[str, Callable[..., Any]]] = {
    "wait_tensor": _same,
    "all_reduce": _alike,
    "broadcast": _alike,
    "all_gather_into_tensor": _gathered,
    "reduce_scatter_tensor": _scattered,
    "all_to_all_single": _exchanged,
    "all_reduce_coalesced": _each(_alike),
    "all_gather_into_tensor_coalesced": _each(_gathered),
    "reduce_scatter_tensor_coalesced": _each(_scattered),
}
