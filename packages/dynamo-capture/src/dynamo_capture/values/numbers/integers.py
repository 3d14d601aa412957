"""Integers that are computed from sizes, and floats known only at run time."""

from __future__ import annotations

from typing import Any

from dynamo_capture.sources.formulas import FUNCTIONS
from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.functions import BuiltinMethod
from fx_interface.symbols import Expr, Relation


class SymValue(Value):
    """A symbolic integer. Comparing it asks the shape environment, which records the answer as a guard."""

    __slots__ = ("expr",)
    expr: Expr
    python_class = int
    varies = True

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    def __repr__(self) -> str:
        return f"SymValue({self.expr})"

    def number(self) -> Any:
        return self.expr

    def index(self, tx: Context) -> Any:
        return self.specialize(tx)

    def index_width(self) -> Any:
        return 1

    def python_object(self, tx: Context) -> Any:
        return tx.index(self)

    def fake(self, tx: Context, fakes: dict[int, Any]) -> Any:
        return tx.inference.sizes.to_torch(self.expr)

    def argument(self, tx: Context) -> Any:
        env = tx.env
        if env.has_data and env.is_from_data(
            self.expr
        ):  # what is known of it, the operation itself may check
            return tx.output.size(self.expr)
        return tx.output.size(env.simplify(self.expr))

    def frozen(self, tx: Context, tensors: list[Any]) -> Any:
        return self.expr

    def identity(self) -> object:
        return self.expr

    def truth(self, tx: Context) -> bool:
        return tx.decide(Relation("!=", self.expr, 0))

    def specialize(self, tx: Context) -> int:
        """The integer of this call, with a guard that it stays this one."""
        return tx.env.specialize(self.expr)

    def get_attr(self, tx: Context, name: str) -> Value:
        if f"int.{name}" in FUNCTIONS:
            return BuiltinMethod(self, name)
        return tx.known(self.specialize(tx)).get_attr(tx, name)

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        computed = tx.numbers.method(f"int.{name}", self, args, kwargs)
        if computed is not None:
            return computed
        return tx.known(self.specialize(tx)).call_method(tx, name, args, kwargs)
