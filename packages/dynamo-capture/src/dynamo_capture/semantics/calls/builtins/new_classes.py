"""``collections.namedtuple`` of constants: a class that is made in each call, if anything of it outlives the graph."""

from __future__ import annotations

import collections

from dynamo_capture.foundation.errors import GraphBreak, NotConstant
from dynamo_capture.semantics.registry import handles
from dynamo_capture.values import Const, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.new_class import NewClass

_NAMES = ("typename", "field_names")


@handles(collections.namedtuple)
def named_tuple_class(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The sample; None where not all arguments are known, so that the function is followed."""
    if len(args) > len(_NAMES):
        return None
    try:
        named = dict(zip(_NAMES, args, strict=False)) | kwargs
        given = {name: tx.calls.python_object(value) for name, value in named.items()}
    except (NotConstant, GraphBreak):
        return None
    if not isinstance(given.get("field_names"), (str, list, tuple)):
        return None
    module = tx.frames[-1].globals.real.get("__name__", "__main__")
    arguments = {**given, "module": given.get("module") or module}
    sample: type = tx.fold(lambda: collections.namedtuple(**arguments))
    tx.new_classes[sample] = NewClass(sample, arguments)
    return Const(sample)
