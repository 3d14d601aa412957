"""What Python accepts as the result of ``__len__``, ``__bool__`` and ``__index__``, and what it raises for others."""

from __future__ import annotations

from typing import Any

from dynamo_capture.foundation.type_names import message_name
from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.constant import Const
from fx_interface.symbols import Relation


class _Sized:
    """Has Python check what a ``__len__`` gives."""

    def __init__(self, size: Any) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size  # type: ignore[no-any-return]


def length_from(tx: Context, answer: Value) -> int:
    """``len`` of what has answered ``answer``."""
    found = tx.index(answer)
    return tx.fold(lambda: len(_Sized(found)))


def size_from(tx: Context, answer: Value) -> Value:
    """``len`` of what has answered ``answer``, as a value: a size that varies is not fixed."""
    if answer.expr is not None and answer.python_type() is int:
        in_order = Relation("<=", 0, answer.expr)
        if tx.env.known(in_order) or (not tx.env.is_from_data(answer.expr) and tx.decide(in_order)):
            return answer
    return Const(length_from(tx, answer))


def truth_from(tx: Context, answer: Value) -> bool:
    """``bool`` of what has answered ``answer``."""
    if answer.python_type() is not bool:
        kind = answer.python_type().__name__
        raise tx.raises(TypeError, f"__bool__ should return bool, returned {kind}")
    return tx.truth(answer)


def index_from(tx: Context, answer: Value) -> Any:
    """``operator.index`` of what has answered ``answer``."""
    kind = answer.python_type()
    if not issubclass(kind, int):
        raise tx.raises(TypeError, f"__index__ returned non-int (type {message_name(kind)})")
    if kind is not int:
        raise answer.unsupported("taking as an index, of which Python warns,")
    return tx.index(answer)
