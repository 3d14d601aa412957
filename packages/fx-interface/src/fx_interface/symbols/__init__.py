"""Symbolic integers (``expr``) and what is known about them (``env``)."""

from fx_interface.symbols.env import (
    Range,
    Relation,
    RelationOp,
    ShapeEnv,
    ShapeGuard,
    SymbolInfo,
    indicator,
)
from fx_interface.symbols.expr import (
    Apply,
    Expr,
    IntLike,
    Symbol,
    evaluate,
    floordiv,
    maximum,
    minimum,
    mod,
    product,
    substitute,
    symbol,
)

__all__ = [
    "Apply",
    "Expr",
    "IntLike",
    "Range",
    "Relation",
    "RelationOp",
    "ShapeEnv",
    "ShapeGuard",
    "Symbol",
    "SymbolInfo",
    "evaluate",
    "floordiv",
    "indicator",
    "maximum",
    "minimum",
    "mod",
    "product",
    "substitute",
    "symbol",
]
