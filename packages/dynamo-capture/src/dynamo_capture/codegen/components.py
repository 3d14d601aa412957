"""The values that a value made by the trace is built from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo_capture.codegen.generators import remade
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.frames.generator_values import GeneratorValue
from dynamo_capture.semantics.modes.contexts import ContextFunction, NullContext
from dynamo_capture.semantics.modes.modes import Autocast, DeviceBlock, GradMode, InferenceMode
from dynamo_capture.semantics.modes.patched_options import PartBlock
from dynamo_capture.values import (
    BuiltinMethod,
    CallIterator,
    CellValue,
    DescriptorValue,
    DictIterator,
    DictValue,
    DictView,
    EnumerateIterator,
    FunctionValue,
    IndexIterator,
    ListIterator,
    ListValue,
    MapIterator,
    MethodValue,
    ObjectIterator,
    ObjectValue,
    PartialValue,
    RangeIterator,
    SequenceIterator,
    SetValue,
    SliceValue,
    SuperValue,
    SymRange,
    SymRangeIterator,
    TextValue,
    TupleValue,
    Value,
    ZipIterator,
)
from dynamo_capture.values.containers.mapping import ProxyValue
from dynamo_capture.values.objects.instance_dict import FunctionDictValue, InstanceDictValue
from dynamo_capture.values.opaque import NewReference
from dynamo_capture.values.tensors.array import ArrayValue
from dynamo_capture.values.tensors.followed import FollowedResults
from dynamo_capture.values.tensors.wrapper import WrapperValue
from dynamo_capture.values.traceback import TracebackValue

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace


def components(tx: Trace, value: Value) -> list[Value]:
    """What must be made before ``value``; a graph break (CAP240) where Python cannot make it anew."""
    for of in (_of_container, _of_callable_or_block, _of_iterator):
        found = of(tx, value)
        if found is not None:
            return found
    raise GraphBreak("CAP240", f"{value.describe()} outlives the captured code")


def kept_attributes(value: ObjectValue) -> list[tuple[str, Value]]:
    """The attributes of an object that the trace made."""
    return [(name, part) for name, part in value.attrs.items() if part is not None]


def _of_container(tx: Trace, value: Value) -> list[Value] | None:
    match value:
        case TupleValue() | ListValue():
            return list(value.items)
        case InstanceDictValue():
            return [value.owner]
        case FunctionDictValue():
            return [value.function]
        case DictValue():
            entries = [part for entry in value.all_entries(tx).values() for part in entry]
            return [*entries, value.factory] if value.factory is not None else entries
        case SetValue():
            return list(value.items.values())
        case ObjectValue():
            attributes = [part for _, part in kept_attributes(value)]
            return [value.base, *attributes] if value.base is not None else attributes
        case CellValue():
            return [value.content] if value.content is not None else []
        case TextValue():
            return [piece for piece, _ in value.pieces]
        case SliceValue() | SymRange():
            return list(value.bounds)
        case DictView():
            return [value.owner]
        case ProxyValue():
            return [value.mapping]
        case TracebackValue():
            return [value.following]
        case NewReference():
            return [value.target]
        case ArrayValue():
            return [value.tensor] if value.tensor is not None else []
        case WrapperValue(joined=(results, _)):
            return [results]
        case FollowedResults():
            return [*value.results, *value.carriers, *value.inputs]
        case WrapperValue(plain=Value() as plain):
            return [plain]
        case WrapperValue():
            return [*value.given, *(value.attrs or {}).values()]
    return None


def _of_callable_or_block(tx: Trace, value: Value) -> list[Value] | None:
    match value:
        case MethodValue():
            return [value.function, value.receiver]
        case BuiltinMethod() | SuperValue():
            return [value.receiver]
        case PartialValue():
            keywords = [value.keywords] if value.shown else list(value.kwargs(tx).values())
            return [value.function, *value.args, *keywords, *value.attrs.values()]
        case DescriptorValue():
            return list(value.arguments)
        case FunctionValue():
            return [*value.defaults, *value.kwdefaults.values(), *value.closure, *value.attrs.values()]
        case GradMode() | Autocast() | InferenceMode() | DeviceBlock() | PartBlock():
            return []
        case NullContext():
            return [value.result]
        case ContextFunction():
            return [value.manager, value.function]
    return None


def _of_iterator(tx: Trace, value: Value) -> list[Value] | None:
    match value:
        case SequenceIterator():
            left = value.items[value.position :]
            return left if value.owner is None or value.has_ended else [value.owner, *left]
        case ListIterator():
            return [value.holder]
        case DictIterator() | IndexIterator():
            return [value.owner]
        case SymRangeIterator():
            return value.rest(tx)
        case RangeIterator():
            return []
        case EnumerateIterator():
            return [value.inner]
        case ZipIterator():
            return list(value.inners)
        case MapIterator():
            return [value.function, *value.inners]
        case ObjectIterator():
            return [value.value]
        case CallIterator():
            return [value.function, value.sentinel]
        case GeneratorValue():
            return remade(value, tx.resumes)
    return None
