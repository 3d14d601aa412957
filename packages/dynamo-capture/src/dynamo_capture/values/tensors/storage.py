"""The memory of an existing tensor as an object: ``x.untyped_storage()``, which can be asked for its size, and emptied.

x.untyped_storage().resize_(0)     # done behind the graph; what shows this memory is not used after it
"""

from __future__ import annotations

from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import TENSOR_MEMORY
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.sources.sources import AnswerSource
from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.constant import Const
from dynamo_capture.values.functions import BuiltinMethod
from fx_interface.source import Source


class StorageValue(Value):
    """``torch.UntypedStorage``. ``is_emptied``: the program has resized it to nothing."""

    __slots__ = ("is_emptied", "real", "source")
    python_class = torch.UntypedStorage

    def __init__(self, real: torch.UntypedStorage, source: Source) -> None:
        self.real = real
        self.source = source
        self.is_emptied = False

    def get_attr(self, tx: Context, name: str) -> Value:
        if name in ("size", "nbytes", "resize_"):
            return BuiltinMethod(self, name)
        raise GraphBreak(TENSOR_MEMORY, f"the attribute {name!r} of a tensor's storage is read")

    def truth(self, tx: Context) -> bool:
        raise GraphBreak(TENSOR_MEMORY, "the truth of a tensor's storage is asked for")

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name in ("size", "nbytes") and not args and not kwargs:
            if self.is_emptied:
                return Const(0)
            assert self.source is not None
            return tx.force(tx.wrap(self.real.nbytes(), AnswerSource(self.source, "nbytes")))
        if name == "resize_" and len(args) == 1 and not kwargs and tx.is_constant(args[0]):
            return self._resized(tx, tx.constant(args[0]))
        raise GraphBreak(TENSOR_MEMORY, f"{name}() of a tensor's storage is called")

    def _resized(self, tx: Context, size: Any) -> Value:
        if type(size) is not int or size != 0:
            raise GraphBreak(TENSOR_MEMORY, "the storage of a tensor is resized to something")
        self.is_emptied = True
        tx.effects.deferred(torch.UntypedStorage.resize_, [self, Const(0)], {})
        tx.tensors.emptied = True
        return self
