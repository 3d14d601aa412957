"""Symbolic integers (``expr``), their ``ranges``, ``relations`` between them, and what is known of them (``env``)."""

from fx_interface.symbols.env import ShapeEnv, ShapeGuard
from fx_interface.symbols.evaluation import evaluate, substitute
from fx_interface.symbols.expr import (
    Apply,
    Expr,
    IntLike,
    Symbol,
    floordiv,
    mod,
    symbol,
)
from fx_interface.symbols.extremes import maximum, minimum, product
from fx_interface.symbols.origins import SymbolInfo
from fx_interface.symbols.ranges import Range
from fx_interface.symbols.relations import Relation, RelationOp, indicator

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
