"""The value that decompositions compute with: a tensor known by its spec, and by the call that makes it if recorded."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import torch
from torch._ops import OpOverload

from fx_interface.dialects import prims
from fx_interface.dialects.prims import PrimOp
from fx_interface.symbols import Expr, IntLike, ShapeEnv, product
from fx_interface.tensor_spec import TensorSpec, ValueSpec, contiguous_strides
from primtorch_decomps.shapes import Sizes

_ASSERT = torch.ops.aten._assert_async.msg

Operand: TypeAlias = Union["PrimTensor", float, Expr]
"""What arithmetic takes: a tensor, a Python number, or a size."""


class Call:
    """One recorded call. Arguments hold ``PrimTensor`` and ``Call`` for graph values and ``Expr`` for sizes."""

    __slots__ = ("args", "key", "kwargs", "meta", "spec", "target")

    def __init__(
        self,
        target: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        meta: Mapping[str, Any],
        spec: ValueSpec | PrimTensor,
        key: object = None,
    ) -> None:
        self.target = target
        self.args = args
        self.kwargs = kwargs
        self.meta = meta
        self.spec = spec
        self.key = key


class PrimTensor:
    """A tensor by its spec: ``sizes``, ``dtype``, ``device`` and strides (row-major unless given).

    ``call`` is the recorded call or placeholder that makes it, None in spec-only runs. Python's operators work on
    two tensors of one dtype, broadcasting their shapes, or on a tensor and a number; they are defined in
    ``primtorch_decomps.prims.operators``.
    """

    __slots__ = ("_strides", "call", "device", "dtype", "sizes")

    def __init__(
        self,
        sizes: Sizes,
        dtype: torch.dtype,
        device: torch.device,
        strides: Sizes | None = None,
        call: Call | None = None,
    ) -> None:
        self.sizes = sizes
        self.dtype = dtype
        self.device = device
        self._strides = strides
        self.call = call

    @property
    def strides(self) -> Sizes:
        """Strides in elements."""
        if self._strides is None:
            self._strides = contiguous_strides(self.sizes)
        return self._strides

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.sizes)

    @property
    def numel(self) -> IntLike:
        """The number of elements."""
        return product(self.sizes)

    @property
    def spec(self) -> TensorSpec:
        """The spec of this value."""
        return TensorSpec(self.sizes, self.strides, self.dtype, self.device)

    @classmethod
    def of(cls, spec: TensorSpec, call: Call | None = None) -> PrimTensor:
        """The tensor with a given spec."""
        return cls(spec.sizes, spec.dtype, spec.device, spec.strides, call)

    def __repr__(self) -> str:
        return f"PrimTensor({self.spec})"

    if TYPE_CHECKING:  # given by primtorch_decomps.prims.operators

        def __add__(self, other: Operand) -> PrimTensor: ...
        def __radd__(self, other: Operand) -> PrimTensor: ...
        def __sub__(self, other: Operand) -> PrimTensor: ...
        def __rsub__(self, other: Operand) -> PrimTensor: ...
        def __mul__(self, other: Operand) -> PrimTensor: ...
        def __rmul__(self, other: Operand) -> PrimTensor: ...
        def __truediv__(self, other: Operand) -> PrimTensor: ...
        def __rtruediv__(self, other: Operand) -> PrimTensor: ...
        def __and__(self, other: PrimTensor) -> PrimTensor: ...
        def __or__(self, other: PrimTensor) -> PrimTensor: ...
        def __neg__(self) -> PrimTensor: ...


class Trace:
    """One run of decompositions. ``recording`` collects calls, equal ones once; else only specs are computed.

    ``meta`` is attached to every call recorded from now on (the user's line and the operator being decomposed).
    """

    def __init__(self, env: ShapeEnv, *, recording: bool = False) -> None:
        self.env = env
        self.recording = recording
        self.calls: list[Call] = []
        self.meta: dict[str, Any] = {}
        self.operator_start = 0
        self.size_calls: dict[Expr, Call] = {}
        self._known: dict[object, PrimTensor | Call] = {}

    def emit(
        self,
        prim: PrimOp,
        args: tuple[Any, ...],
        sizes: Sizes,
        dtype: torch.dtype,
        device: torch.device,
        strides: Sizes | None = None,
    ) -> PrimTensor:
        """The result of a primitive of which the spec is known."""
        if not self.recording:
            return PrimTensor(sizes, dtype, device, strides)
        key = (prim.name, freeze(args))
        found = self._known.get(key)
        if found is not None:
            assert isinstance(found, PrimTensor)
            return found
        made = PrimTensor(sizes, dtype, device, strides)
        made.call = Call(prim, args, {}, self.meta, made, key)
        self.calls.append(made.call)
        self._known[key] = made
        return made

    def emit_library(
        self, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], spec: ValueSpec, *, pure: bool
    ) -> Any:
        """The result of a library call (or ``getitem``): a ``PrimTensor``, or a ``Call`` for several results."""
        key = (target, freeze(args), freeze(kwargs)) if pure else None
        found = self._known.get(key) if key is not None else None
        if found is not None:
            return found
        call = Call(target, args, kwargs, self.meta, spec, key)
        self.calls.append(call)
        made = PrimTensor.of(spec, call) if isinstance(spec, TensorSpec) else call
        if key is not None:
            self._known[key] = made
        return made

    def close(self) -> None:
        """Nothing is read any more. Calls and the tensors that they make refer to each other: parted, they go at once,
        where they would wait for Python's search for cycles."""
        for call in self.calls:
            call.spec = None

    def check(self, condition: PrimTensor, message: str) -> None:
        """Fail with ``message`` when the program runs and ``condition``, one bool, is false."""
        if self.recording:
            self.emit_library(_ASSERT, (condition, message), {}, None, pure=False)

    def settle(self, value: PrimTensor, sizes: Sizes, strides: Sizes) -> PrimTensor:
        """``value`` as an operator's result, which has these strides in eager.

        A call recorded for this operator takes them over; what was there before is seen anew where it has the same
        layout but for dimensions of size 1, and copied otherwise.
        """
        call = value.call
        if value.strides == strides or call is None:
            return value
        key = (
            call if call.key is None else call.key,
            strides,
        )  # inputs and impure calls have no key: each its own
        found = self._known.get(key)
        if isinstance(found, PrimTensor):
            return found
        if len(self.calls) > self.operator_start and self.calls[-1] is call:
            self._known.pop(call.key, None)
            value.sizes, value._strides = sizes, strides
        else:
            value = self._copied(value, sizes, strides)
        self._known[key] = value
        return value

    def _copied(self, value: PrimTensor, sizes: Sizes, strides: Sizes) -> PrimTensor:
        same_layout = all(
            a == b or (isinstance(n, int) and n <= 1)
            for n, a, b in zip(sizes, value.strides, strides, strict=True)
        )
        if not same_layout:
            return self.copied_anew(value, sizes, strides)
        made = PrimTensor(sizes, value.dtype, value.device, strides)
        made.call = Call(prims.reshape, (value, sizes), {}, self.meta, made)
        self.calls.append(made.call)
        return made

    def copied_anew(
        self, value: PrimTensor, sizes: Sizes | None = None, strides: Sizes | None = None
    ) -> PrimTensor:
        """A copy that is merged with no other one; in the value's own layout unless another is given."""
        made = PrimTensor(sizes or value.sizes, value.dtype, value.device, strides or value.strides)
        made.call = Call(prims.clone, (value,), {}, self.meta, made)
        self.calls.append(made.call)
        return made


class _Active(threading.local):
    trace: Trace | None = None


_ACTIVE = _Active()


def current_trace() -> Trace:
    """The trace that this thread's primitives go to."""
    trace = _ACTIVE.trace
    assert trace is not None, "primitives on PrimTensors need an active trace"
    return trace


class tracing:
    """Make ``trace`` the one that primitives go to, in this thread.

    A class, since entering a generator costs as much as many a rule.
    """

    __slots__ = ("_before", "_trace")

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __enter__(self) -> Trace:
        self._before = _ACTIVE.trace
        _ACTIVE.trace = self._trace
        return self._trace

    def __exit__(self, *exception: object) -> None:
        _ACTIVE.trace = self._before


_EXACT = frozenset(
    {
        *(int, str, type(None), Expr, PrimTensor, Call, TensorSpec, OpOverload),
        *(torch.dtype, torch.device, torch.layout, torch.memory_format),
    }
)


def freeze(value: Any) -> Any:
    """A hashable stand-in: equal stand-ins mean arguments that may be used for one another.

    Floats and bools carry their type, and floats their text, so that 1, 1.0, True, 0.0 and -0.0 differ.
    """
    kind = type(value)
    if kind in _EXACT:
        return value
    if kind is tuple or kind is list:
        return tuple([freeze(item) for item in value])
    if kind is float or kind is bool or kind is complex:
        return (kind, repr(value))
    if isinstance(value, Mapping):
        return tuple([(name, freeze(item)) for name, item in value.items()])
    return value
