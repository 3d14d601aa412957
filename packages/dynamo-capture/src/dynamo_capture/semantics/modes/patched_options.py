"""Parts of the program with options of their own (``patch_options``), by our names and by torch's."""

from __future__ import annotations

import sys
from typing import Any

from dynamo_capture.foundation.part_options import error_on_graph_break, patch_options
from dynamo_capture.semantics.declared import handles_loaded
from dynamo_capture.semantics.modes.modes import Block, switches
from dynamo_capture.semantics.registry import handles
from dynamo_capture.values import NONE, Value
from dynamo_capture.values.base import Context


class PartBlock(Block):
    """``with patch_options(...)``: entered for real while tracing, so that whatever asks sees the options."""

    __slots__ = ("changes",)
    python_class = patch_options

    def __init__(self, changes: dict[str, Any]) -> None:
        super().__init__()
        self.changes = changes

    def enter(self, tx: Context) -> Value:
        self.around = self.inside = switches()
        self.entered.append((patch_options(**self.changes).__enter__(), None))
        tx.blocks.append(self)
        return self

    def undo(self) -> None:
        self.entered.pop()[0].__exit__()

    def leave(self, tx: Context, raised: Value) -> Value:
        if not self.entered:
            return super().leave(tx, raised)
        self.end(tx)
        return NONE

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise self.unsupported("decorating a function inside of the captured code")


@handles(patch_options)
def patched(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    changes = {name: tx.constant(value) for name, value in kwargs.items()}
    return PartBlock(tx.fold(lambda: patch_options(**changes)).changes)


STOCK = "torch._dynamo.decorators"


@handles_loaded(STOCK, "patch_dynamo_config")
def stock_flags(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Torch's block. None of the flags that it may change means anything here, so it is a block without options."""
    names = [tx.constant(value) for value in args]
    changes = {name: tx.constant(value) for name, value in kwargs.items()}
    tx.fold(lambda: sys.modules[STOCK].patch_dynamo_config(*names, **changes))
    return PartBlock({})


@handles(error_on_graph_break)
@handles_loaded(STOCK, "error_on_graph_break")
def errors(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    flag = tx.truth(args[0] if args else kwargs["error_on_graph_break"])
    return PartBlock({"error_on_graph_break": flag})
