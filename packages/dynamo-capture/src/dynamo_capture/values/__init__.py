"""The values on the symbolic stack, one module per family."""

from dynamo_capture.values.base import (
    NULL,
    Context,
    IdentityKey,
    IteratorStop,
    IteratorValue,
    Lazy,
    NullValue,
    Value,
)
from dynamo_capture.values.constant import (
    CALLED_BY_ITSELF,
    CALLED_WITH_SELF,
    FALSE,
    NONE,
    TRUE,
    Const,
    RangeIterator,
    SourcedConst,
    boolean,
    is_none,
)
from dynamo_capture.values.containers.cached_part import CachedPart
from dynamo_capture.values.containers.keys import HashedKey, is_opaque
from dynamo_capture.values.containers.mapping import DictIterator, DictValue
from dynamo_capture.values.containers.mapping_views import DictView
from dynamo_capture.values.containers.ranges import SymRange, SymRangeIterator
from dynamo_capture.values.containers.sequences import ListValue, SequenceValue, TupleValue
from dynamo_capture.values.containers.sets import SetValue
from dynamo_capture.values.containers.slices import SliceValue, size_of, size_value
from dynamo_capture.values.functions import (
    BuiltinMethod,
    CellValue,
    DescriptorValue,
    FunctionValue,
    MethodValue,
    SuperValue,
)
from dynamo_capture.values.iteration.iterators import (
    CallIterator,
    EnumerateIterator,
    MapIterator,
    ZipIterator,
)
from dynamo_capture.values.numbers.integers import SymValue
from dynamo_capture.values.numbers.text import OpenText, Piece, TextValue
from dynamo_capture.values.objects.instances import IndexIterator, ObjectIterator, ObjectValue
from dynamo_capture.values.opaque import OpaqueValue
from dynamo_capture.values.partial import KeyValue, PartialValue, RestValue
from dynamo_capture.values.sequence_iterator import (
    DequeIterator,
    ListIterator,
    ReversedListIterator,
    SequenceIterator,
    WatchingIterator,
)
from dynamo_capture.values.tensors.tensor import TensorMeta, TensorValue, are_tensors, one_tensor, tensors_of

__all__ = [
    "CALLED_BY_ITSELF",
    "CALLED_WITH_SELF",
    "FALSE",
    "NONE",
    "NULL",
    "TRUE",
    "BuiltinMethod",
    "CallIterator",
    "CachedPart",
    "CellValue",
    "Const",
    "Context",
    "DescriptorValue",
    "DictIterator",
    "DictValue",
    "DictView",
    "EnumerateIterator",
    "FunctionValue",
    "HashedKey",
    "IdentityKey",
    "IndexIterator",
    "IteratorStop",
    "IteratorValue",
    "KeyValue",
    "Lazy",
    "ListIterator",
    "ListValue",
    "MapIterator",
    "MethodValue",
    "NullValue",
    "ObjectIterator",
    "ObjectValue",
    "OpaqueValue",
    "PartialValue",
    "RestValue",
    "RangeIterator",
    "ReversedListIterator",
    "SequenceIterator",
    "SequenceValue",
    "SetValue",
    "SliceValue",
    "SourcedConst",
    "SuperValue",
    "SymRange",
    "SymRangeIterator",
    "SymValue",
    "TensorMeta",
    "TensorValue",
    "TextValue",
    "OpenText",
    "Piece",
    "TupleValue",
    "Value",
    "WatchingIterator",
    "ZipIterator",
    "are_tensors",
    "boolean",
    "DequeIterator",
    "is_none",
    "is_opaque",
    "one_tensor",
    "size_of",
    "size_value",
    "tensors_of",
]
