"""Arrays of numpy: computed for real where their numbers are known, as tensors where they are not.

Numbers that are known stay numbers: ``np.prod(x.shape)`` and ``np.arange(4) * np.pi`` run while tracing. What comes
from a tensor stays in the graph: ``np.sqrt(t.numpy())`` is ``torch.sqrt(t)`` seen as an array, for floats of the same
dtype, where both compute the same. Everything else numpy computes, as an operation of the graph (``numpy_calls``).
Views and writes are those of the tensor; what torch might do otherwise breaks the graph.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.break_kinds import (
    CONTENT_DECIDES,
    NOT_IN_PYTHON,
    OBJECT_OPERATION,
    UNKNOWN_ARGUMENT,
)
from dynamo_capture.foundation.errors import GraphBreak, NotConstant, UserRaise
from dynamo_capture.runtime.calls.numpy_calls import parts_of, shown_by
from dynamo_capture.semantics.calls.arrays.alike import FLOATS, alike, seen
from dynamo_capture.semantics.calls.arrays.array_indices import is_basic, is_fixed, is_mask, takes_one
from dynamo_capture.semantics.calls.arrays.array_tables import (
    CALLED,
    CHANGING,
    MOST_ROWS,
    PLAIN,
    asks_for_memory,
    facts_of_form,
    makers_alike,
    shown_parts,
)
from dynamo_capture.semantics.calls.arrays.numpy_calls import NumpyOperation, check_unchanged
from dynamo_capture.semantics.calls.signatures import METHOD_KINDS
from dynamo_capture.semantics.given_warnings import NoWarnings
from dynamo_capture.semantics.registry import handles
from dynamo_capture.semantics.tensors.methods import method
from dynamo_capture.semantics.tensors.torchs_members import overrides
from dynamo_capture.values import Const, ListValue, TensorValue, TupleValue, Value, is_none, size_value
from dynamo_capture.values.base import Context, IteratorValue
from dynamo_capture.values.iteration.array_iterator import ArrayIterator
from dynamo_capture.values.tensors.array import ArrayValue

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _unasked(method: Callable[Concatenate[Arrays, _P], _R]) -> Callable[Concatenate[Arrays, _P], _R]:
    """What is computed on the memory of arrays is no operation of the program, of which a mode would be asked."""

    @functools.wraps(method)
    def run(self: Arrays, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        modes = self._tx.tensors.modes
        with modes.without(len(modes.active)):
            return method(self, *args, **kwargs)

    return run


class Arrays:
    """The arrays of one trace."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx

    @_unasked
    def call_function(self, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A call of a pure function or operator with arrays among its arguments, or numbers."""
        if "out" in kwargs:
            raise GraphBreak(OBJECT_OPERATION, "numpy writes into an array")
        if any(issubclass(value.python_type(), CALLED) for value in (*args, *kwargs.values())):
            raise GraphBreak(NOT_IN_PYTHON, f"{function!r} calls a function of the program")
        args = _seen_as_arrays(function, args)
        fact = facts_of_form().get(function) if len(args) == 1 and not kwargs else None
        if fact is not None and isinstance(args[0], ArrayValue):
            return self.get_attr(args[0], fact)
        if not any(map(_holds_unknown, (*args, *kwargs.values()))) and function not in asks_for_memory():
            return self._computed(function, args, kwargs)
        return self._of_graph(function, args, kwargs)

    def _of_graph(self, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """The result as an operation of the graph: torch's, or numpy's own."""
        found = alike(self._tx, function, args, kwargs)
        return found if found is not None else NumpyOperation(self._tx, function).result(args, kwargs)

    def _computed(self, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tx = self._tx
        try:
            real = [tx.calls.python_object(value) for value in args]
            named = {name: tx.calls.python_object(value) for name, value in kwargs.items()}
        except NotConstant:
            return self._of_graph(function, args, kwargs)
        arrays: list[Any] = [given for given in real if isinstance(given, numpy_types.ARRAYS)]
        before = [array.copy() for array in arrays]
        result = self._folded(lambda: function(*real, **named))
        check_unchanged(function, before, arrays)
        for given, value in zip(real, args, strict=True):
            if given is result and isinstance(result, numpy_types.ARRAYS):
                return value
        if any(shown_by(part, arrays) is not None for part in parts_of(result)):
            for value in args:
                if isinstance(value, ArrayValue):
                    value.as_tensor(tx)
            return NumpyOperation(tx, function).result(args, kwargs)
        return tx.calls.from_python(result)

    def binary(self, symbol: str, function: Any, lhs: Value, rhs: Value) -> Value:
        """``lhs symbol rhs``."""
        if symbol.endswith("=") and symbol not in ("==", "!=", "<=", ">="):
            if isinstance(lhs, ArrayValue) and not lhs.is_number:
                return self._in_place(function, lhs, rhs)
            if isinstance(lhs, (ArrayValue, Const)) and function in PLAIN:  # a number, which does not change
                return self.call_function(PLAIN[function], [lhs, rhs], {})
            raise GraphBreak(OBJECT_OPERATION, f"{symbol} of {lhs.describe()} and {rhs.describe()}")
        return self.call_function(function, [lhs, rhs], {})

    @_unasked
    def _in_place(self, function: Any, owner: ArrayValue, operand: Value) -> Value:
        """``owner += operand``: what ``owner + operand`` gives is written, where numpy would write it."""
        tx, operand = self._tx, self._tx.force(operand)
        if owner.is_known and (
            tx.is_constant(operand) or (isinstance(operand, ArrayValue) and operand.is_known)
        ):
            self._check_is_alone()
            other = tx.calls.python_object(operand)
            changed = owner.content.copy()
            self._folded(lambda: function(changed, other))
            owner.content[...] = changed
            return owner
        made = self.call_function(PLAIN[function], [owner, operand], {})
        if not isinstance(made, ArrayValue):
            raise GraphBreak(OBJECT_OPERATION, "a numpy array is changed in place")
        one, other = owner.as_tensor(tx).meta.spec, made.as_tensor(tx).meta.spec
        import numpy

        kinds = (_numpy_dtype(other.dtype), _numpy_dtype(one.dtype))
        if one.sizes != other.sizes or not numpy.can_cast(*kinds, "same_kind") or owner.is_read_only:
            raise GraphBreak(OBJECT_OPERATION, "a numpy array is changed in place")
        _memory(tx, owner).call_method(tx, "copy_", [made.as_tensor(tx)], {})
        return owner

    def _folded(self, compute: Callable[[], Any]) -> Any:
        """What numpy computes of known numbers; where it warns, or has no number to give, it is asked in each call."""
        import numpy

        def run() -> Any:
            try:
                with NoWarnings(), numpy.errstate(divide="raise", over="raise", invalid="raise"):
                    return compute()
            except FloatingPointError as error:
                raise GraphBreak(OBJECT_OPERATION, f"numpy warns: {error}") from None

        return self._tx.fold(run)

    def _check_is_alone(self) -> None:
        """A region may run again, what is changed in it at once would be changed once."""
        if self._tx.effects.watching:
            raise GraphBreak(
                OBJECT_OPERATION, "a numpy array is changed in a function that runs as a part of the graph"
            )

    @_unasked
    def get_attr(self, owner: ArrayValue, name: str) -> Value:
        """``array.name``."""
        tx = self._tx
        if owner.is_known:
            found = getattr(owner.content, name, None)
            if name in ("shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides"):
                return tx.known(found)
        elif name in ("shape", "ndim", "size"):
            tensor = owner.as_tensor(tx)
            if name == "shape":
                return TupleValue(list(tensor.get_attr(tx, "shape").unpack(tx)))
            return tensor.get_attr(tx, name) if name == "ndim" else tensor.call_method(tx, "numel", [], {})
        elif name in ("dtype", "itemsize"):
            dtype = _numpy_dtype(owner.as_tensor(tx).meta.spec.dtype)
            return Const(dtype if name == "dtype" else dtype.itemsize)
        elif name == "nbytes":
            return owner.as_tensor(tx).get_attr(tx, "nbytes")
        elif name == "strides":
            itemsize = Const(owner.as_tensor(tx).meta.spec.dtype.itemsize)
            strides = map(size_value, owner.as_tensor(tx).meta.spec.strides)
            return TupleValue([tx.operators.binary("*", stride, itemsize) for stride in strides])
        if (
            name in ("real", "imag")
            and owner.as_tensor(tx).meta.spec.dtype.is_complex
            and not owner.is_number
        ):
            return ArrayValue(tensor=_tensor(owner.as_tensor(tx).get_attr(tx, name)))
        shown = shown_parts().get(name)
        if shown is not None:
            return self.call_function(shown, [owner], {})
        return tx.attributes.of_builtin_object(owner, name)

    @_unasked
    def call_method(self, owner: ArrayValue, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """``array.name(...)``."""
        method = getattr(owner.python_type(), name, None)
        if owner.is_known and callable(method) and name not in CHANGING:
            return self._computed(method, [owner, *args], kwargs)
        if name in ("tolist", "item") and not args and not kwargs:
            return owner.as_tensor(self._tx).call_method(self._tx, name, [], {})
        if name in ("copy", "astype") and not kwargs:
            tensor = owner.as_tensor(self._tx)
            if name == "copy" and not args:
                copied = tensor.call_method(self._tx, "clone", [], {})
                return ArrayValue(tensor=_tensor(copied), is_number=owner.is_number)
            dtype = _float_dtype(self._tx.constant(args[0]) if len(args) == 1 else None)
            if dtype is not None and tensor.meta.spec.dtype in FLOATS:
                cast = tensor.call_method(self._tx, "to", [Const(dtype)], {"copy": Const(True)})
                return ArrayValue(tensor=_tensor(cast), is_number=owner.is_number)
        if not isinstance(method, METHOD_KINDS) or name in CHANGING or "out" in kwargs:
            raise GraphBreak(OBJECT_OPERATION, f"the method {name!r} of a numpy array")
        return NumpyOperation(self._tx, method).result([owner, *args], kwargs)

    @_unasked
    def get_item(self, owner: ArrayValue, key: Value) -> Value:
        """``array[key]``."""
        tx = self._tx
        if owner.is_known and is_basic(tx, key) and is_fixed(tx, key):
            return self._known_part(owner, key)
        if owner.is_known and not is_basic(tx, key, numbers=False):
            return self._computed(operator.getitem, [owner, key], {})
        tensor = owner.as_tensor(tx)
        is_number = is_basic(tx, key) and takes_one(tx, key, len(tensor.meta.spec.sizes))
        if not is_basic(tx, key):
            return NumpyOperation(tx, operator.getitem).result([owner, key], {})
        try:
            part = _tensor(tensor.get_item(tx, key))
        except UserRaise:
            raise GraphBreak(OBJECT_OPERATION, "an index does not fit a numpy array") from None
        if is_number:
            return seen(part.call_method(tx, "clone", [], {}))
        found = ArrayValue(tensor=part)
        found.is_read_only = owner.is_read_only
        return found

    def _known_part(self, owner: ArrayValue, key: Value) -> Value:
        """``array[1:]`` of known numbers, which stay known."""
        index = self._tx.calls.python_object(key)
        found = self._folded(lambda: owner.content[index])
        if not isinstance(found, numpy_types.ARRAYS):
            return Const(found)
        return owner.part(key, found)

    @_unasked
    def iterate(self, owner: ArrayValue, is_reversed: bool = False) -> IteratorValue:
        """``iter(array)`` or ``reversed(array)``, of a few rows."""
        shape = self.get_attr(owner, "shape").unpack(self._tx)
        length = self._tx.index(shape[0]) if shape else 0
        if not shape or length > MOST_ROWS:
            raise owner.unsupported("iterating")
        return ArrayIterator(owner, length, is_reversed)

    @_unasked
    def set_item(self, owner: ArrayValue, key: Value, value: Value) -> None:
        """``array[key] = value``."""
        tx, value = self._tx, self._tx.force(value)
        if (
            owner.is_known
            and not isinstance(value, ArrayValue)
            and tx.is_constant(value)
            and is_basic(tx, key)
        ):
            self._check_is_alone()
            place, constant = tx.calls.python_object(key), tx.constant(value)
            self._folded(lambda: operator.setitem(owner.content, place, constant))
            return
        tensor = owner.as_tensor(tx)
        written = self._written(tensor, value)
        if written is None or owner.is_read_only or not (is_basic(tx, key) or is_mask(tx, key)):
            raise GraphBreak(OBJECT_OPERATION, "an item of a numpy array is set")
        try:
            _memory(tx, owner).set_item(tx, key, written)
        except UserRaise:
            raise GraphBreak(OBJECT_OPERATION, "an index or a value does not fit a numpy array") from None

    def _written(self, tensor: TensorValue, value: Value) -> Value | None:
        """What torch writes where numpy writes ``value``; None where they might differ."""
        kind = _numpy_dtype(tensor.meta.spec.dtype).kind
        if isinstance(value, ArrayValue):
            made = value.as_tensor(self._tx)
            return made if _numpy_dtype(made.meta.spec.dtype).kind != "c" or kind == "c" else None
        plain = value.value if isinstance(value, Const) else None
        is_small = type(plain) is int and kind in "ifc" and -128 <= plain < 128
        return value if type(plain) is bool or is_small or (type(plain) is float and kind in "fc") else None


def _holds_unknown(value: Value) -> bool:
    """Whether it is an array, or a list with one, whose numbers are not known: what is beside it is not asked for."""
    if isinstance(value, (ListValue, TupleValue)):
        return any(map(_holds_unknown, value.items))
    return isinstance(value, ArrayValue) and not value.is_known


def _seen_as_arrays(function: Any, args: list[Value]) -> list[Value]:
    """The arguments; of a function that only asks a tensor for its form, the tensor as an array."""
    first = args[0] if args and function in makers_alike() else None
    if type(first) is not TensorValue:
        return args
    meta = first.meta
    if meta.requires_grad or meta.cls is not torch.Tensor or meta.spec.device.type != "cpu":
        raise GraphBreak(OBJECT_OPERATION, f"{function!r} of a tensor that numpy does not take as it is")
    return [ArrayValue(tensor=first), *args[1:]]


def _memory(tx: Context, array: ArrayValue) -> TensorValue:
    """What is written to: a tensor in the same memory, since numpy counts no writes to the program's tensors."""
    return _tensor(tx.tensors.get_attr(array.as_tensor(tx), "data"))


def _tensor(value: Value) -> TensorValue:
    assert isinstance(value, TensorValue)
    return value


def _numpy_dtype(dtype: torch.dtype) -> Any:
    return torch.empty(0, dtype=dtype).numpy().dtype


def _float_dtype(wanted: Any) -> torch.dtype | None:
    """float32 or float64, if that is what a numpy dtype, class or name means."""
    import numpy

    try:
        name = numpy.dtype(wanted).name
    except TypeError:
        return None
    return {"float32": torch.float32, "float64": torch.float64}.get(name) if wanted is not None else None


@handles(torch.from_numpy, least=1)
def from_numpy(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if not isinstance(args[0], ArrayValue) or args[0].is_number:
        raise GraphBreak(UNKNOWN_ARGUMENT, f"torch.from_numpy() of {args[0].describe()}")
    return args[0].as_tensor(tx).call_method(tx, "detach", [], {})


def tensor_of(tx: Context, function: Any, value: Value, kwargs: dict[str, Value]) -> Value | None:
    """``torch.tensor``, ``as_tensor`` or ``asarray`` of an array or a number of numpy; None for anything else."""
    if isinstance(value, Const) and isinstance(value.value, numpy_types.SCALARS):
        dtype = Const(torch.as_tensor(value.value).dtype)
        return tx.tensors.call_function(
            function, [Const(numpy_types.number(value.value))], {"dtype": dtype, **kwargs}
        )
    if not isinstance(value, ArrayValue):
        return None
    if not kwargs.keys() <= {"dtype", "device"}:
        raise GraphBreak(
            UNKNOWN_ARGUMENT, f"torch.{function.__name__}() of a numpy array with {', '.join(kwargs)}"
        )
    made = value.as_tensor(tx).call_method(tx, "detach", [], {})
    copies = {"copy": Const(True)} if function is torch.tensor else {}
    given = {name: option for name, option in kwargs.items() if not is_none(option)}
    return (
        made.call_method(tx, "to", [], {**given, **copies})
        if given
        else (made.call_method(tx, "clone", [], {}) if copies else made)
    )


@method("numpy")
def _numpy(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A tensor seen as an array: it shares its memory."""
    given = args[0] if args else kwargs.get("force", Const(False))
    if len(args) + len(kwargs) > 1 or not kwargs.keys() <= {"force"} or owner.meta.spec.device.type != "cpu":
        raise GraphBreak(CONTENT_DECIDES, "`numpy()` copies the tensor")
    if overrides(owner.meta.cls):
        raise GraphBreak(
            OBJECT_OPERATION, f"`numpy()` of a {owner.meta.cls.__name__}, which would be asked again"
        )
    if owner.meta.requires_grad and (tx.truth(given) or not torch.is_grad_enabled()):
        return ArrayValue(tensor=_tensor(owner.call_method(tx, "detach", [], {})))
    if owner.meta.requires_grad:
        text = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        raise tx.raises(RuntimeError, text)
    tx.fold(lambda: torch.empty(0, dtype=owner.meta.spec.dtype).numpy())
    return ArrayValue(tensor=owner)
