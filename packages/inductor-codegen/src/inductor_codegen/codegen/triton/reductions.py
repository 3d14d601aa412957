"""Reductions in a Triton kernel: a running block, and its collapse to one value a row."""

from __future__ import annotations

import torch

from inductor_codegen.codegen.triton.formulas import COMBINE, TYPES, neutral
from inductor_codegen.codegen.triton.scope import Scope
from inductor_codegen.ir.kernel import Accumulate

COLLAPSE: dict[str, str] = {
    "sum": "tl.sum({0}, 1)",
    "prod": "tl.reduce({0}, 1, _multiply)",
    "amax": "tl.reduce({0}, 1, _larger)",
    "amin": "tl.reduce({0}, 1, _smaller)",
    "any": "tl.max({0}.to(tl.int32), 1)",
    "all": "tl.min({0}.to(tl.int32), 1)",
}
"""The row's total of a block."""

PRELUDE = """
@triton.jit
def _plus(a, b):
    return a + b


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def _larger(a, b):
    return tl.where((a > b) | (a != a), a, b)


@triton.jit
def _smaller(a, b):
    return tl.where((a < b) | (a != a), a, b)


@triton.jit
def _first_largest(a, i, b, j):
    left = (a > b) | ((a != a) & (b == b)) | (((a == b) | ((a != a) & (b != b))) & (i < j))
    return tl.where(left, a, b), tl.where(left, i, j)


@triton.jit
def _first_smallest(a, i, b, j):
    left = (a < b) | ((a != a) & (b == b)) | (((a == b) | ((a != a) & (b != b))) & (i < j))
    return tl.where(left, a, b), tl.where(left, i, j)
"""
"""Combining functions that the kernels of a file share: NaN wins, and the first of equals."""

_NOWHERE = {"tl.int32": 2**31 - 1, "tl.int64": 2**63 - 1}
"""A position behind all others."""
_SELECTING = {"argmax": ("amax", "_first_largest"), "argmin": ("amin", "_first_smallest")}


def start(node: Accumulate, width: str) -> list[str]:
    """The lines before the loop; positions have the type ``width``."""
    return [
        f"{name} = tl.full([XBLOCK, RBLOCK], {neutral}, {kind})"
        for (name, neutral), kind in zip(running_names(node, width), _types(node, width), strict=True)
    ]


def step(node: Accumulate, scope: Scope, width: str) -> list[str]:
    """The lines inside the loop, after the value's own."""
    name, value = f"acc{node.accumulator}", f"{scope.value(node.value)}.to({TYPES[_running_dtype(node)]})"
    if node.kind in _SELECTING:
        function = _SELECTING[node.kind][1]
        return [
            f"{name}_new, {name}_new_at = {function}({name}, {name}_at, {value} + tl.zeros_like({name}), "
            f"{_position(node, scope, width)})",
            f"{name} = tl.where({scope.mask}, {name}_new, {name})",
            f"{name}_at = tl.where({scope.mask}, {name}_new_at, {name}_at)",
        ]
    nan = ", propagate_nan=tl.PropagateNan.ALL" if node.value.dtype.is_floating_point else ""
    combined = COMBINE[node.kind].format(name, value, nan=nan)
    return [f"{name} = tl.where({scope.mask}, {combined}, {name})"]


def whole(node: Accumulate, scope: Scope, width: str) -> list[str]:
    """The lines that make the running block of the only block that there is."""
    if node.kind not in _SELECTING:
        return [*start(node, width), *step(node, scope, width)]
    (name, neutral), (at, nowhere) = running_names(node, width)
    dtype = TYPES[_running_dtype(node)]
    value, position = f"{scope.value(node.value)}.to({dtype})", _position(node, scope, width)
    return [
        f"{name} = tl.where({scope.mask}, {value}, tl.full([1, 1], {neutral}, {dtype}))",
        f"{at} = tl.where({scope.mask}, {position}, tl.full([1, 1], {nowhere}, {width}))",
    ]


def _position(node: Accumulate, scope: Scope, width: str) -> str:
    assert node.position is not None
    return f"({scope.address(node.position)}).to({width})"


def _running_dtype(node: Accumulate) -> torch.dtype:
    """The dtype of the running block: half precision runs in float32."""
    dtype = node.value.dtype
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def finish(node: Accumulate, width: str) -> list[str]:
    """The lines after the loop: the row's total."""
    value = partial_names(node)[-1]
    return [*collapse(node, width), f"total{node.accumulator} = {value}.to({TYPES[node.dtype]})"]


def collapse(node: Accumulate, width: str) -> list[str]:
    """The running block as one value a row, named as ``partial_names`` says.

    The first place of the largest number is the least place of what equals the row's largest: two reductions of one
    number each take half the time of one that compares pairs.
    """
    name = f"acc{node.accumulator}"
    if node.kind in _SELECTING:
        one, at = partial_names(node)
        return [
            f"{one} = ({COLLAPSE[_SELECTING[node.kind][0]].format(name)})[:, None]",
            f"{at} = ({name} == {one}) | ({name} != {name})",
            f"{at} = tl.where({at}, {name}_at, tl.full([1, 1], {_NOWHERE[width]}, {width}))",
            f"{at} = tl.min({at}, 1)[:, None]",
        ]
    (one,) = partial_names(node)
    return [f"{one} = ({COLLAPSE[node.kind].format(name)})[:, None]"]


def partial_names(node: Accumulate) -> list[str]:
    """The collapsed block: a value, and behind that of argmax and argmin its position."""
    name = f"row{node.accumulator}"
    return [name, f"{name}_at"] if node.kind in _SELECTING else [name]


def running_names(node: Accumulate, width: str) -> list[tuple[str, str]]:
    """The running block with its neutral element, and the positions of argmax and argmin with theirs."""
    name, kind = f"acc{node.accumulator}", _SELECTING.get(node.kind, (node.kind, ""))[0]
    value = (name, neutral(kind, _running_dtype(node)))
    return [value, (f"{name}_at", str(_NOWHERE[width]))] if node.kind in _SELECTING else [value]


def _types(node: Accumulate, width: str) -> list[str]:
    """The types of ``running_names``."""
    return [TYPES[_running_dtype(node)], *([width] if node.kind in _SELECTING else [])]


def cell_dtypes(node: Accumulate) -> tuple[torch.dtype, ...]:
    """The dtypes in which ``partial_names`` lie in memory."""
    own = _running_dtype(node)
    return (own, torch.int64) if node.kind in _SELECTING else (own,)
