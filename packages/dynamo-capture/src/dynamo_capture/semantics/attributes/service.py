"""The service of a trace for attributes."""

from __future__ import annotations

from dynamo_capture.foundation.errors import UserRaise
from dynamo_capture.semantics.attributes.known import KnownAttributes
from dynamo_capture.semantics.attributes.made import MadeAttributes
from dynamo_capture.semantics.attributes.writing import WrittenAttributes
from dynamo_capture.values import Value


class Attributes(WrittenAttributes, KnownAttributes, MadeAttributes):
    """Attribute reads, writes and deletions of one trace."""

    def has(self, value: Value, name: str) -> bool:
        """``hasattr(value, name)``."""
        try:
            value.get_attr(self._tx, name)
        except UserRaise as raised:
            if issubclass(raised.value.python_type(), AttributeError):
                return False
            raise
        return True
