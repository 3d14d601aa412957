"""Containers that are made: tuples, lists, dicts, sets, and what is a view of one; texts, arrays, slices and ranges."""

from __future__ import annotations

import collections
import operator
import types

import torch

from dynamo_capture.codegen.reconstruct import Reconstruction, makes
from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.runtime import made_tensors, replacement_calls
from dynamo_capture.values import (
    CachedPart,
    Const,
    DictValue,
    DictView,
    ListValue,
    OpenText,
    SetValue,
    SliceValue,
    SymRange,
    TextValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.containers.late_sequences import (
    NumberList,
    PartsList,
    PartsTuple,
    RangeList,
    RepeatedList,
)
from dynamo_capture.values.containers.mapping_views import ProxyValue
from dynamo_capture.values.containers.sets import Making
from dynamo_capture.values.new_class import NewClass, NewType
from dynamo_capture.values.objects.instance_dict import FunctionDictValue, InstanceDictValue
from dynamo_capture.values.tensors.array import ArrayValue


@makes(TupleValue)
def tuple_(to: Reconstruction, value: TupleValue) -> None:
    """Tuples, named tuples, ``torch.Size`` and torch's result tuples."""
    if value.cls is tuple:
        to.push_tuple(value.items)
    elif value.cls in to.tx.new_classes:
        to.call(
            replacement_calls.new_tuple, lambda: to.push_all([Const(value.cls), TupleValue(value.items)]), 2
        )
    elif has_member(value.cls, "_fields"):
        to.call(value.cls._make, lambda: to.push_tuple(value.items))  # type: ignore[attr-defined]
    else:
        to.call(value.cls, lambda: to.push_tuple(value.items))


@makes(NewClass)
def class_(to: Reconstruction, value: NewClass) -> None:
    """Classes of named tuples."""
    arguments = value.arguments
    to.call(lambda: collections.namedtuple(**arguments), lambda: None, 0)


@makes(NewType)
def type_(to: Reconstruction, value: NewType) -> None:
    """Classes by ``type`` and by ``class`` statements."""

    def arguments() -> None:
        to.push(Const(value.name))
        to.push_tuple(value.bases)
        to.push_dict([(Const(name), entry) for name, entry in value.entries.items()])

    to.call(type, arguments, 3)


@makes(ListValue)
def list_(to: Reconstruction, value: ListValue) -> None:
    """Lists and deques."""
    if value.cls is list:
        to.push_list(value.items)
    else:
        limit = value.maxlen
        to.call(lambda items: collections.deque(items, limit), lambda: to.push_list(value.items))


@makes(NumberList)
def numbers(to: Reconstruction, value: NumberList) -> None:
    """Lists of a tensor's numbers."""
    if not value.is_unread:
        list_(to, value)
    else:
        to.call(torch.Tensor.tolist, lambda: to.push(value.tensor))


@makes(RangeList)
def counted(to: Reconstruction, value: RangeList) -> None:
    """Lists of a range of sizes."""
    if value.is_unread:
        to.call(list, lambda: to.push(value.range))
    else:
        list_(to, value)


@makes(RepeatedList)
def repeated(to: Reconstruction, value: RepeatedList) -> None:
    """Lists of constants that are repeated by a size."""
    if not value.is_unread:
        return list_(to, value)

    def operands() -> None:
        to.push_all(value.part)
        to.emitter.build_list(len(value.part))
        to.push(value.times)

    to.call(operator.mul, operands, 2)


@makes(PartsTuple)
def parts(to: Reconstruction, value: PartsTuple) -> None:
    """Parts of a tensor."""
    modes = Const((value.with_gradients, value.inferring))
    if not value.is_unread:
        tuple_(to, value)
    elif value.sizes is None:
        to.call(made_tensors.unbound, lambda: to.push_all([modes, value.whole, Const(value.dim)]), 3)
    else:
        given: list[Value] = [modes, value.whole, value.sizes, Const(value.dim)]
        to.call(made_tensors.split, lambda: to.push_all(given), 4)


@makes(PartsList)
def parts_in_list(to: Reconstruction, value: PartsList) -> None:
    """Lists of such parts."""
    if value.is_unread:
        to.call(list, lambda: to.push(value.origin))
    else:
        list_(to, value)


@makes(DictValue)
def dict_(to: Reconstruction, value: DictValue) -> None:
    """Dictionaries of the standard library's classes."""
    pairs = [(entry[0], entry[1]) for entry in value.all_entries(to.tx).values()]
    if value.cls is dict:
        to.push_dict(pairs)
    elif value.cls is collections.defaultdict:
        to.emitter.begin_call()
        to.emitter.load_const(collections.defaultdict)
        to.emitter.end_callable()
        to.push(value.factory or Const(None))
        to.push_dict(pairs)
        to.emitter.call(2)
    elif not value.attrs:
        to.call(value.cls, lambda: to.push_dict(pairs))
    else:

        def with_attributes() -> None:
            to.call(value.cls, lambda: to.push_dict(pairs))
            to.push_dict([(Const(name), part) for name, part in value.attrs.items()])

        to.call(replacement_calls.with_attributes, with_attributes, 2)


@makes(SetValue)
def set_(to: Reconstruction, value: SetValue) -> None:
    """Sets and frozensets."""
    if value.all_constant and not to.tx.new_classes:
        members = frozenset if value.cls is frozenset else set
        to.call(members, lambda: to.emitter.load_const(value.order))
        return
    making = value.making(to.tx)
    if making is not None:
        _set_of_existing(to, making)
        return
    to.push_all(list(value.items.values()))
    to.emitter.build_set(len(value.items))
    if value.cls is not set:
        to.store(".set")
        to.call(value.cls, lambda: to.emitter.load_fast(".set"))


def _set_of_existing(to: Reconstruction, making: Making) -> None:
    def operands() -> None:
        for operand in making.operands:
            if isinstance(operand, Making):
                _set_of_existing(to, operand)
            else:
                to.push(operand)

    to.call(making.function, operands, len(making.operands))


@makes(CachedPart)
def cached_part(to: Reconstruction, value: CachedPart) -> None:
    """Containers that a function with a cache has given."""

    def arguments() -> None:
        to.emitter.load_const(value.function)
        to.emitter.load_const(value.steps)
        to.push_tuple(value.args)
        to.push_dict([(Const(name), part) for name, part in value.kwargs.items()])

    to.call(replacement_calls.cached_part, arguments, 4)


@makes(SliceValue)
def slice_(to: Reconstruction, value: SliceValue) -> None:
    """Slices."""
    to.push_all(list(value.bounds))
    to.emitter.build_slice(3)


@makes(SymRange)
def range_(to: Reconstruction, value: SymRange) -> None:
    """Ranges."""
    to.call(range, lambda: to.push_all(list(value.bounds)), 3)


@makes(DictView)
def view(to: Reconstruction, value: DictView) -> None:
    """Views of dictionaries."""
    to.push(value.owner)
    to.emitter.load_method(value.kind)
    to.emitter.call(0)


@makes(ProxyValue)
def proxy(to: Reconstruction, value: ProxyValue) -> None:
    """Read-only views of dictionaries."""
    to.call(types.MappingProxyType, lambda: to.push(value.mapping))


@makes(InstanceDictValue)
def instance_dict(to: Reconstruction, value: InstanceDictValue) -> None:
    """An object's own ``__dict__``."""
    to.call(replacement_calls.instance_dict, lambda: to.push(value.owner))


@makes(FunctionDictValue)
def function_dict(to: Reconstruction, value: FunctionDictValue) -> None:
    """The ``__dict__`` of a new function."""
    to.push(value.function)
    to.emitter.load_attr("__dict__")


@makes(TextValue, OpenText)
def text(to: Reconstruction, value: TextValue | OpenText) -> None:
    """Strings that tensors or numbers are part of."""
    parts = [
        part for piece, conversion, spec in value.pieces for part in (piece, Const(conversion), Const(spec))
    ]
    to.call(replacement_calls.joined, lambda: to.push_all(parts), len(parts))


@makes(ArrayValue)
def array(to: Reconstruction, value: ArrayValue) -> None:
    """Arrays of numpy: over a tensor's memory, or with the numbers that the trace knows."""
    tensor = value.tensor
    if tensor is None and value.part_of is not None:
        to.push_all(list(value.part_of))
        to.emitter.binary_subscr()
        return
    if tensor is None:
        content = value.content
        to.call(content.copy, lambda: None, 0)
        return
    if value.is_read_only:
        to.call(made_tensors.read_only_array, lambda: to.push(tensor))
        return
    to.push(tensor)
    to.emitter.load_method("numpy")
    to.emitter.call(0)
    if value.is_number:
        to.emitter.load_const(())
        to.emitter.binary_subscr()
