"""Functions and methods of numpy on arrays whose numbers the trace does not know: numpy computes when the graph runs.

What comes out is learnt by a call on arrays of the same form. What shows the memory of an argument there becomes a view
of its tensor; what is new is a result of ``calls.numpy_calls``. What gives Python objects, whose value or length
data tell, breaks the graph.
"""

from __future__ import annotations

import operator
import pickle
from typing import Any

import torch

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON, OBJECT_OPERATION
from dynamo_capture.foundation.errors import GraphBreak, NotConstant
from dynamo_capture.runtime.calls.numpy_calls import (
    Form,
    NumpyCall,
    Place,
    filled,
    name_of,
    new_parts,
    parts_of,
    shown_by,
)
from dynamo_capture.runtime.calls.numpy_calls import operator as numpy_operator
from dynamo_capture.semantics.given_warnings import SilentWarnings
from dynamo_capture.values import (
    Const,
    ListValue,
    SliceValue,
    TensorValue,
    TupleValue,
    Value,
    one_tensor,
    size_value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.array import ArrayValue
from dynamo_capture.values.tensors.floating import RuntimeFloat

_BY_DATA = frozenset(
    {
        "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "nonzero", "flatnonzero",
        "argwhere",
        "extract", "compress", "setdiff1d", "union1d", "intersect1d", "setxor1d", "trim_zeros", "bincount", "repeat",
        "choose", "place", "item", "tolist", "tobytes", "tostring", "dump", "dumps", "__array__", "__reduce__", "view",
    }
)  # fmt: skip
"""Functions and methods whose result has a form that data tell, or is no array."""


class NumpyOperation:
    """One call: its operands, and arrays of their form."""

    def __init__(self, tx: Context, function: Any) -> None:
        self._tx = tx
        self._function = function
        self._operands: list[ArrayValue] = []
        self._tensors: list[TensorValue] = []
        self._samples: list[Any] = []
        self._floats: dict[int, ArrayValue] = {}

    def result(self, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """What the call gives."""
        tx, function = self._tx, self._function
        if getattr(function, "__name__", "") in _BY_DATA or (len(args) == 1 and function is _where()):
            raise self._refusal()
        given = tuple([self._template(value) for value in args])
        named = {name: self._template(value) for name, value in kwargs.items()}
        if function is operator.getitem and any(sample.dtype == bool for sample in self._samples[1:]):
            raise GraphBreak(OBJECT_OPERATION, "a numpy array is indexed by what data tell")
        found = self._tried(given, named)
        try:
            forms = tuple([Form.of(part) for part in new_parts(found, self._samples)])
            name = name_of(NumpyCall(function, given, named, forms)) if forms else 0
        except (TypeError, ValueError, AttributeError, pickle.PicklingError) as error:
            raise GraphBreak(OBJECT_OPERATION, f"{function!r} of a numpy array: {error}") from None
        made: list[Value] = []
        if forms:
            operands = ListValue(list(self._tensors))
            made = tx.tensors.call_function(numpy_operator(), [operands, Const(name)], {}).unpack(tx)
        return self._values(found, made)

    def _refusal(self) -> GraphBreak:
        return GraphBreak(
            OBJECT_OPERATION, f"{self._function!r} of a numpy array whose numbers are not known"
        )

    def _template(self, value: Value) -> Any:
        tx = self._tx
        value = tx.force(value)
        if isinstance(value, ArrayValue):
            if value.is_known:
                return value.content.copy()
            return Place(self._place(value), value.is_number)
        if isinstance(value, RuntimeFloat) and value.is_open:
            return Place(self._place(self._seen(value)), is_number=False, is_float=True)
        if isinstance(value, ListValue) and value.cls is list:
            return [self._template(item) for item in value.items]
        if isinstance(value, TupleValue) and value.cls is tuple:
            return tuple([self._template(item) for item in value.items])
        if isinstance(value, SliceValue):
            return slice(*(self._template(bound) for bound in value.bounds))
        try:
            return tx.calls.python_object(value)
        except NotConstant:
            raise GraphBreak(NOT_IN_PYTHON, f"{self._function!r} is called with {value.describe()}") from None

    def _seen(self, value: RuntimeFloat) -> ArrayValue:
        """A float that is read when the code runs, as an operand."""
        return self._floats.setdefault(id(value), ArrayValue(tensor=value.tensor()))

    def _place(self, value: ArrayValue) -> int:
        for place, known in enumerate(self._operands):
            if known is value:
                return place
        tensor = value.as_tensor(self._tx)
        if tensor.meta.spec.device.type != "cpu":
            raise self._refusal()
        self._operands.append(value)
        self._tensors.append(tensor)
        self._samples.append(self._sample(tensor))
        return len(self._operands) - 1

    def _sample(self, tensor: TensorValue) -> Any:
        """An array of the form of a tensor, with numbers in it that are neither equal nor 0, or indices."""
        spec = tensor.meta.spec
        sizes, strides = (
            [self._tx.index(size_value(n)) for n in part] for part in (spec.sizes, spec.strides)
        )
        array = torch.empty_strided(sizes, strides, dtype=spec.dtype).numpy()
        import numpy

        if array.dtype.kind in "fc":
            array[...] = (numpy.arange(array.size).reshape(array.shape) * 0.6180339887 % 1 + 0.5).astype(
                array.dtype
            )
        else:
            array[...] = array.dtype.kind == "b"
        return array

    def _tried(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import numpy

        before = [sample.copy() for sample in self._samples]
        with numpy.errstate(all="ignore"), SilentWarnings():
            try:
                found = self._function(*filled(args, self._samples), **filled(kwargs, self._samples))
            except Exception as error:  # of numpy's: eager meets it, or other numbers do not
                raise GraphBreak(OBJECT_OPERATION, f"{self._function!r} of a numpy array: {error}") from None
        check_unchanged(self._function, before, self._samples)
        if found is NotImplemented or not all(
            isinstance(p, (numpy.ndarray, numpy.generic)) for p in parts_of(found)
        ):
            raise self._refusal()
        return found

    def _values(self, found: Any, made: list[Value]) -> Value:
        """The result in which arrays are values."""
        if isinstance(found, list):
            return ListValue([self._values(item, made) for item in found])
        if isinstance(found, tuple):
            return TupleValue([self._values(item, made) for item in found], type(found))
        place = shown_by(found, self._samples)
        if place is not None:
            same = self._samples[place] is found
            return self._operands[place] if same else self._view(place, found)
        tensor = one_tensor(made.pop(0))
        value = ArrayValue(tensor=tensor, is_number=not isinstance(found, numpy_types.ARRAYS))
        value.is_read_only = not value.is_number and not found.flags.writeable
        return value

    def _view(self, place: int, shown: Any) -> Value:
        """A view of an operand: of its dimensions in another order, or of all elements in another shape."""
        tensor, sample = self._tensors[place], self._samples[place]
        apart = shown.__array_interface__["data"][0] - sample.__array_interface__["data"][0]
        if shown.dtype != sample.dtype or not shown.flags.writeable:
            raise GraphBreak(OBJECT_OPERATION, "a view of a numpy array is made")
        starts = _block(sample, shown, apart)
        if starts is not None and shown.shape != sample.shape:
            found: Value = tensor
            for dim, start in enumerate(starts):
                if shown.shape[dim] != sample.shape[dim]:
                    given: list[Value] = [Const(dim), Const(start), Const(shown.shape[dim])]
                    found = self._tx.tensors.call_method(found, "narrow", given, {})
            assert isinstance(found, TensorValue)
            return ArrayValue(tensor=found)
        if apart:
            raise GraphBreak(OBJECT_OPERATION, "a view of a numpy array is made")
        form = tuple(zip(shown.shape, shown.strides, strict=True))
        order = _permutation(form, tuple(zip(sample.shape, sample.strides, strict=True)))
        if order is not None:
            found = self._tx.tensors.call_method(tensor, "permute", [Const(tuple(order))], {})
        elif shown.size == sample.size and _views_as(sample, shown):
            found = self._tx.tensors.call_method(tensor, "view", [Const(shown.shape)], {})
        else:
            raise GraphBreak(OBJECT_OPERATION, "a view of a numpy array is made")
        assert isinstance(found, TensorValue)
        return ArrayValue(tensor=found)


def check_unchanged(function: Any, before: list[Any], after: list[Any]) -> None:
    """End the graph where a function changes its arguments, as ``nan_to_num(a, copy=False)`` does."""
    if not all(map(_are_equal, before, after)):
        raise GraphBreak(OBJECT_OPERATION, f"{function!r} changes a numpy array")


def _are_equal(one: Any, other: Any) -> bool:
    return bool(one.shape == other.shape and one.tobytes() == other.tobytes())


def _where() -> Any:
    import numpy

    return numpy.where


def _permutation(form: tuple[Any, ...], other: tuple[Any, ...]) -> list[int] | None:
    """The order of dimensions that makes one form of the other."""
    left, order = list(range(len(other))), []
    for dimension in form:
        found = next((i for i in left if other[i] == dimension), None)
        if found is None:
            return None
        left.remove(found)
        order.append(found)
    return None if left else order


def _block(sample: Any, shown: Any, apart: int) -> list[int] | None:
    """Where in each dimension a part begins that has all strides of the whole; None for other parts."""
    if shown.strides != sample.strides or 0 in sample.shape or min(sample.strides, default=1) <= 0:
        return None
    starts = [0] * sample.ndim
    for dim in sorted(range(sample.ndim), key=lambda dim: -sample.strides[dim]):
        starts[dim], apart = divmod(apart, sample.strides[dim])
    fits = all(s + n <= size for s, n, size in zip(starts, shown.shape, sample.shape, strict=True))
    return starts if fits and apart == 0 else None


def _views_as(sample: Any, shown: Any) -> bool:
    try:
        viewed = torch.from_numpy(sample).view(shown.shape)
    except RuntimeError:
        return False
    return [n * sample.itemsize for n in viewed.stride()] == list(shown.strides)


__all__ = ["NumpyOperation"]
