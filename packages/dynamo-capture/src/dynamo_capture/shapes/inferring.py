"""What rules about single operators may ask of the inference that applies them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from torch._ops import OpOverload

from fx_interface.symbols import Expr, ShapeEnv
from fx_interface.torch_symbols.sym_nodes import SizeTable


class Inferring(Protocol):
    """``spec_tensor.Inference``, which says what each member is."""

    env: ShapeEnv
    sizes: SizeTable
    follows_data: bool
    by_data: bool
    counts: dict[object, Expr]
    read: list[Any]

    def infer(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The result of an operator, as tensors without data."""

    def spec_of(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The spec of an operator's result."""

    def results(self, func: OpOverload, spec: Any) -> Any:
        """Tensors for the specs of an operator's results."""

    def plain(self, arg: Any) -> Any:
        """An argument as rules take it: specs of tensors, expressions of sizes."""
