"""Integers that are computed from sizes again."""

from __future__ import annotations

from dynamo_capture.codegen.reconstruct import Reconstruction, makes
from dynamo_capture.values import SymValue
from dynamo_capture.values.numbers.condition import DataCondition
from fx_interface.symbols import Apply, Expr, IntLike, Symbol


@makes(SymValue)
def number(to: Reconstruction, value: SymValue) -> None:
    """An integer computed from sizes."""
    _push_expr(to, to.collector.as_written(value.expr))


@makes(DataCondition)
def condition(to: Reconstruction, value: DataCondition) -> None:
    """Comparisons of such integers, or what a tensor holds."""
    if not value.is_number:
        to.tx.effects.by_data.append("a truth that data tell")
        to.call(bool, lambda: to.push_all([value.tensor]), 1)
        return
    for position, relation in enumerate(value.relations):
        _push_expr(to, to.collector.as_written(relation.lhs))
        _push_expr(to, to.collector.as_written(relation.rhs))
        to.emitter.compare_op(relation.op)
        if position:
            to.emitter.binary_op("&")


def _push_expr(to: Reconstruction, expr: IntLike) -> None:
    emitter = to.emitter
    if not isinstance(expr, Expr):
        emitter.load_const(int(expr))
        return
    for position, (monomial, coefficient) in enumerate(expr.terms):
        emitter.load_const(coefficient)
        for atom in monomial:
            _push_atom(to, atom)
            emitter.binary_op("*")
        if position:
            emitter.binary_op("+")


def _push_atom(to: Reconstruction, atom: Symbol | Apply) -> None:
    if isinstance(atom, Symbol) and atom in to.collector.numbers:
        to.tx.effects.by_data.append("a number that data tell")
        to.push_result(to.collector.numbers[atom])
        return
    if isinstance(atom, Symbol):
        to.push_source(to.collector.symbol_source(atom))
        return
    lhs, rhs = atom.args
    if atom.function in ("min", "max"):
        function = min if atom.function == "min" else max

        def arguments() -> None:
            _push_expr(to, lhs)
            _push_expr(to, rhs)

        to.call(function, arguments, 2)
        return
    _push_expr(to, lhs)
    _push_expr(to, rhs)
    to.emitter.binary_op("//" if atom.function == "floordiv" else "%")
