"""Arrays of numpy: computed for real where their numbers are known, as tensors where they are not.

Numbers that are known stay numbers: ``np.prod(x.shape)`` and ``np.arange(4) * np.pi`` run while tracing. What comes
from a tensor stays in the graph: ``np.sqrt(t.numpy())`` is ``torch.sqrt(t)`` seen as an array, for floats of the same
dtype, where both compute the same. What could share memory with another array, or change one, breaks the graph.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.errors import GraphBreak, NotConstant
from dynamo_capture.semantics.registry import handles
from dynamo_capture.semantics.tensors.methods import method
from dynamo_capture.values import Const, TensorValue, TupleValue, Value, is_none
from dynamo_capture.values.tensors.array import ArrayValue

if TYPE_CHECKING:
    from dynamo_capture.values.base import Context

_FLOATS = (torch.float32, torch.float64)
_SAME_NAMES = (
    "sqrt", "exp", "exp2", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "tanh", "sinh", "cosh",
    "arcsin", "arccos", "arctan", "floor", "ceil", "trunc", "square", "negative", "isnan", "isfinite", "isinf",
    "reciprocal", "rad2deg", "deg2rad", "absolute",
)  # fmt: skip
_OPERATOR_NAMES = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
_OPERATORS: dict[Callable[..., Any], Callable[..., Any]] = {
    f: f
    for f in (
        operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.le, operator.gt,
        operator.ge, operator.eq, operator.ne, operator.neg,
    )
}  # fmt: skip


def _functions() -> dict[Any, Any]:
    """Functions of numpy and those of torch that compute the same for floats of one dtype."""
    if not numpy_types.INSTALLED:
        return {}
    import numpy

    unary = {getattr(numpy, name): getattr(torch, name) for name in _SAME_NAMES}
    return unary | {getattr(numpy, name): function for name, function in _OPERATOR_NAMES.items()}


_SAME: dict[Any, Any] = {**_functions(), **_OPERATORS}


class Arrays:
    """The arrays of one trace."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx

    def call_function(self, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A call of a pure function or operator with arrays among its arguments, or numbers."""
        if "out" in kwargs:
            raise GraphBreak("CAP210", "numpy writes into an array")
        if any(issubclass(value.python_type(), types.FunctionType) for value in args):
            raise GraphBreak("CAP230", f"{function!r} calls a function of the program")
        arrays = [value for value in (*args, *kwargs.values()) if isinstance(value, ArrayValue)]
        if all(value.is_known for value in arrays):
            return self._computed(function, args, kwargs)
        same = _SAME.get(function)
        if same is None or kwargs:
            raise GraphBreak("CAP210", f"{function!r} of a numpy array whose numbers are not known")
        operands = [self._operand(value) for value in args]
        dtypes = {value.meta.spec.dtype for value in operands if isinstance(value, TensorValue)}
        if len(dtypes) > 1 or not dtypes <= set(_FLOATS):
            raise GraphBreak(
                "CAP210", f"{function!r} of numpy arrays of the dtypes {sorted(map(str, dtypes))}"
            )
        return self._of_tensor(self._tx.tensors.call_function(same, operands, {}))

    def _of_tensor(self, found: Value) -> Value:
        if not isinstance(found, TensorValue) or not found.meta.spec.sizes:
            raise GraphBreak("CAP210", "a number computed by numpy is not known while tracing")
        return ArrayValue(tensor=found)

    def _operand(self, value: Value) -> Value:
        value = self._tx.force(value)
        if isinstance(value, ArrayValue):
            tensor = value.as_tensor(self._tx)
            if not tensor.meta.spec.sizes:
                raise GraphBreak("CAP210", "a numpy array without dimensions is computed with")
            return tensor
        if isinstance(value, Const) and type(value.value) in (int, float):
            return value
        raise GraphBreak("CAP210", f"a numpy array is computed with {value.describe()}")

    def _computed(self, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tx = self._tx
        try:
            real = [tx.calls.python_object(value) for value in args]
            named = {name: tx.calls.python_object(value) for name, value in kwargs.items()}
        except NotConstant:
            raise GraphBreak("CAP230", f"{function!r} is called with a value that is not known") from None
        return self._made(tx.fold(lambda: function(*real, **named)), real, args)

    def _made(self, result: Any, real: list[Any], args: list[Value]) -> Value:
        """What a function gave for ``real``: one of these, a number, or an array with memory of its own."""
        tx = self._tx
        if not isinstance(result, numpy_types.ARRAYS):
            return tx.calls.from_python(result)
        for given, value in zip(real, args, strict=True):
            if given is result:
                return value
        import numpy

        if any(isinstance(given, numpy.ndarray) and numpy.may_share_memory(given, result) for given in real):
            raise GraphBreak("CAP210", "a view of a numpy array is made")
        return ArrayValue(content=result)

    def binary(self, symbol: str, function: Any, lhs: Value, rhs: Value) -> Value:
        """``lhs symbol rhs``."""
        if symbol.endswith("=") and symbol not in ("==", "!=", "<=", ">="):
            raise GraphBreak("CAP210", "a numpy array is changed in place")
        return self.call_function(function, [lhs, rhs], {})

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
        elif name == "dtype":
            return Const(_numpy_dtype(owner.as_tensor(tx).meta.spec.dtype))
        return tx.attributes.of_builtin_object(owner, name)

    def call_method(self, owner: ArrayValue, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """``array.name(...)``."""
        method = getattr(owner.python_type(), name, None)
        if owner.is_known and callable(method) and name not in _CHANGING:
            return self._computed(method, [owner, *args], kwargs)
        if name in ("copy", "astype") and not kwargs:
            tensor = owner.as_tensor(self._tx)
            if name == "copy" and not args:
                return ArrayValue(tensor=_tensor(tensor.call_method(self._tx, "clone", [], {})))
            dtype = _float_dtype(self._tx.constant(args[0]) if len(args) == 1 else None)
            if dtype is not None and tensor.meta.spec.dtype in _FLOATS:
                cast = tensor.call_method(self._tx, "to", [Const(dtype)], {"copy": Const(True)})
                return ArrayValue(tensor=_tensor(cast))
        raise GraphBreak("CAP210", f"the method {name!r} of a numpy array")

    def get_item(self, owner: ArrayValue, key: Value) -> Value:
        """``array[key]``."""
        if not owner.is_known:
            raise GraphBreak("CAP210", "an item of a numpy array is read")
        return self._computed(operator.getitem, [owner, key], {})


_CHANGING = frozenset(
    {
        "sort",
        "fill",
        "put",
        "resize",
        "partition",
        "itemset",
        "setflags",
        "setfield",
        "tofile",
        "dump",
        "byteswap",
    }
    | {
        f"__i{name}__"
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
    }
    | {"__setitem__", "__delitem__", "__setstate__"}
)


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


@handles(torch.from_numpy)
def from_numpy(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if not isinstance(args[0], ArrayValue):
        raise GraphBreak("CAP207", f"torch.from_numpy() of {args[0].describe()}")
    return args[0].as_tensor(tx).call_method(tx, "detach", [], {})


def tensor_of(tx: Context, function: Any, value: Value, kwargs: dict[str, Value]) -> Value | None:
    """``torch.tensor``, ``as_tensor`` or ``asarray`` of an array or a number of numpy; None for anything else."""
    if isinstance(value, Const) and isinstance(value.value, numpy_types.SCALARS):
        dtype = Const(torch.as_tensor(value.value).dtype)
        return tx.tensors.call_function(
            function, [Const(numpy_types.plain(value.value))], {"dtype": dtype, **kwargs}
        )
    if not isinstance(value, ArrayValue):
        return None
    if not kwargs.keys() <= {"dtype", "device"}:
        raise GraphBreak("CAP207", f"torch.{function.__name__}() of a numpy array with {', '.join(kwargs)}")
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
    if args or kwargs or owner.meta.spec.device.type != "cpu":
        raise GraphBreak("CAP201", "`numpy()` copies the tensor")
    if owner.meta.requires_grad:
        text = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        raise tx.raises(RuntimeError, text)
    tx.fold(lambda: torch.empty(0, dtype=owner.meta.spec.dtype).numpy())
    return ArrayValue(tensor=owner)
