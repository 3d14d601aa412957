"""The table of primitives for the docs: schema, shape rule, dtype rule, aliasing and reference of each."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator

import torch

from fx_interface.dialects.prims import PRIMS, PrimKind, PrimOp

_SHAPES = {
    "broadcast_in_dim": "`sizes`",
    "reshape": "`sizes`",
    "permute": "x's, in the order `dims`",
    "slice": "`ceil((limit - start) / step)` each",
    "flip": "x's",
    "pad": "`low + size + high` each",
    "cat": "the operands', added up along `dim`",
    "index": "the indices' shape in place of the dimensions that they index",
    "gather": "the index's",
    "full": "`sizes`",
    "iota": "`[length]`",
}
_SHAPES_OF_KINDS = {
    PrimKind.POINTWISE: "the operands'",
    PrimKind.REDUCTION: "x's without the reduced dimensions",
}


def rows() -> list[str]:
    """The table in Markdown, one row for each primitive in the order of declaration."""
    made = [
        "| primitive | kind | shape | dtype | memory | reference |",
        "|---|---|---|---|---|---|",
    ]
    for op in PRIMS.values():
        cells = (
            f"`{op.schema}`",
            op.kind.value,
            shape_rule(op),
            dtype_rule(op),
            memory(op),
            f"`{reference(op)}`",
        )
        made.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return made


def shape_rule(op: PrimOp) -> str:
    """What the sizes of the result are, in words; KeyError for a primitive that nothing is said of."""
    return _SHAPES[op.name] if op.name in _SHAPES else _SHAPES_OF_KINDS[op.kind]


def dtype_rule(op: PrimOp) -> str:
    """What the dtype of the result is: as the schema says, or as the reference has it."""
    result = op.schema.rpartition("->")[2]
    for name in ("bool", "int64"):
        if f"Tensor({name})" in result:
            return name
    if "dtype d" in op.schema:
        return "`d`"
    if op.kind is PrimKind.POINTWISE and "Tensor x)" in op.schema and _gives_bool(op):
        return "bool"
    return "x's" if op.kind is not PrimKind.POINTWISE else "the operands'"


def _gives_bool(op: PrimOp) -> bool:
    for dtype in (torch.float32, torch.int64):
        try:
            found: torch.Tensor = op(torch.ones(1, dtype=dtype))
        except (RuntimeError, NotImplementedError):  # not every function is there for every dtype
            continue
        return found.dtype is torch.bool
    return False


def memory(op: PrimOp) -> str:
    """Whether the result may lie in an operand's memory."""
    return "may be x's" if op.kind is PrimKind.VIEW else "its own"


def reference(op: PrimOp) -> str:
    """The torch expression that a primitive means: a public function's name, else the source of our own one."""
    function = op.reference
    module = getattr(function, "__module__", None) or "torch"
    if module != "fx_interface.dialects.prims":
        return f"{module.removeprefix('_').partition('.')[0]}.{function.__name__}"
    if function.__name__ != "<lambda>":
        return f"{module}.{function.__qualname__.partition('.')[0]}"
    return next(_lambdas_of(op))


def _lambdas_of(op: PrimOp) -> Iterator[str]:
    """The source of a lambda, out of the statement that it stands in."""
    source = textwrap.dedent(inspect.getsource(op.reference))
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a part of a longer statement: its own lines only
        tree = ast.parse(source[source.index("lambda") :].rstrip().rstrip(",)"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            yield ast.unparse(node)
