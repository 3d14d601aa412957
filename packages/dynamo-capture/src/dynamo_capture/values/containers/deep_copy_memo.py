"""What ``copy.deepcopy`` hands to a ``__deepcopy__``: the copies made so far."""

from __future__ import annotations

from dynamo_capture.foundation.errors import NotConstant
from dynamo_capture.values.base import Context, Value


class DeepCopyMemo(Value):
    """The copies, by the value that was copied, and by the ``id`` of an object that existed before the trace.

    A program passes it on, notes a copy (``memo[id(self)] = copy``), and asks for one. What else it might do with the
    dictionary that Python has there ends the graph.
    """

    __slots__ = ("_by_id", "_by_value", "memories")
    python_class = dict
    is_mutable = True

    def __init__(self) -> None:
        self._by_value: dict[int, tuple[Value, Value]] = {}
        self._by_id: dict[int, Value] = {}
        self.memories: dict[int, Value] = {}
        """For each memory the tensor that was copied."""

    def children(self, tx: Context) -> list[Value]:
        raise self.unsupported("keeping the memo of copy.deepcopy()")

    def note(self, value: Value, copied: Value) -> None:
        """``copied`` is the copy of ``value``."""
        self._by_value[id(value)] = value, copied
        real = getattr(value, "real", None)
        if real is not None:
            self._by_id[id(real)] = copied

    def copy_of(self, value: Value) -> Value | None:
        """The copy of a value, if there is one."""
        noted = self._by_value.get(id(value))
        if noted is not None:
            return noted[1]
        real = getattr(value, "real", None)
        return None if real is None else self._by_id.get(id(real))

    def truth(self, tx: Context) -> bool:
        raise self.unsupported("asking whether anything has been copied")

    def contains(self, tx: Context, item: Value) -> bool:
        return self._identity(item) in self._by_id

    def get_item(self, tx: Context, key: Value) -> Value:
        found = self._by_id.get(self._identity(key))
        if found is None:
            raise tx.raises(KeyError, key)
        return found

    def set_item(self, tx: Context, key: Value, value: Value) -> None:
        self._by_id[self._identity(key)] = value

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "get" and len(args) in (1, 2) and not kwargs:
            otherwise = args[1] if len(args) > 1 else tx.known(None)
            return self._by_id.get(self._identity(args[0]), otherwise)
        raise self.unsupported(f"calling {name}")

    def _identity(self, key: Value) -> int:
        try:
            constant = key.as_constant()
        except NotConstant:
            constant = None
        if type(constant) is not int:
            raise self.unsupported("a key that is no id")
        return constant
