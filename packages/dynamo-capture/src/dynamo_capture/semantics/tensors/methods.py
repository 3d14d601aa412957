"""Tensor methods that need no torch: what the metadata answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import (
    AUTOGRAD_STATE,
    CONTENT_DECIDES,
    DESCRIPTOR,
    NOT_IN_PYTHON,
    TENSOR_MEMORY,
    UNKNOWN_ARGUMENT,
)
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.runtime import made_tensors
from dynamo_capture.semantics.numbers import floats
from dynamo_capture.semantics.tensors.arguments import positions
from dynamo_capture.semantics.tensors.content import data_numbers
from dynamo_capture.semantics.tensors.content.places import storage_offset
from dynamo_capture.semantics.tensors.results.views import base_of
from dynamo_capture.sources.sources import AnswerSource
from dynamo_capture.tables import declaring
from dynamo_capture.values import (
    FALSE,
    NONE,
    TRUE,
    Const,
    TensorMeta,
    TensorValue,
    TupleValue,
    Value,
    size_value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.array import ArrayValue
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES
from fx_interface.tensor_spec import SPEC_KEY, is_differentiable, with_grad

Method = Callable[["Context", TensorValue, list[Value], dict[str, Value]], "Value | None"]
METHODS: dict[str, Method] = {}
"""Tensor methods that need no torch: what the metadata answers."""


def method(*names: str) -> Callable[[Method], Method]:
    """Declare how a tensor method is traced; returning None leaves it to torch."""
    return declaring(METHODS, *names)


@method("size")
def _size(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    sizes = owner.meta.spec.sizes
    if not args and not kwargs:
        return TupleValue([size_value(n) for n in sizes], torch.Size)
    dim = args[0].known_as(int) if args else kwargs["dim"].known_as(int) if "dim" in kwargs else None
    return size_value(sizes[dim]) if dim is not None and -len(sizes) <= dim < len(sizes) else None


@method("new")
def _new(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """``x.new(y.size())`` has that size; of another sequence it has the content, of an array its memory if it can. A
    graph knows no ``torch.Size``."""
    given = args[0] if len(args) == 1 else kwargs.get("size", NONE)
    if isinstance(given, ArrayValue) and args and not kwargs and not given.is_number:
        if owner.meta.cls not in PLAIN_CLASSES or tx.tensors.modes.active:
            return None
        spec = owner.meta.spec
        return Const(torch.as_tensor).call(
            tx, [given], {"dtype": Const(spec.dtype), "device": Const(spec.device)}
        )
    if given.python_type() is not torch.Size:
        return None
    options = {name: value for name, value in kwargs.items() if name != "size"}
    return owner.call_method(tx, "new_empty", [given], options)


@method("type")
def _type(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """``x.type(torch.LongTensor)`` is ``x.type("torch.LongTensor")``, which the code of a graph can say."""
    given = args[0] if args else kwargs.get("dtype")
    known: Any = given.value if isinstance(given, Const) else None
    if known is torch.Tensor:
        kind = torch.empty(0).type()
    elif type(known) is _TENSOR_TYPE:
        kind = f"{known.__module__}.{known.__name__}"
    else:
        return None
    if tx.tensors.modes.active:
        raise GraphBreak(
            UNKNOWN_ARGUMENT, "a mode is shown a class of tensors, which a graph has by its name"
        )
    rest = {name: value for name, value in kwargs.items() if name != "dtype"}
    return owner.call_method(tx, "type", [Const(kind), *args[1:]], rest)


_TENSOR_TYPE: Any = type(torch.FloatTensor)


@method("dim", "ndimension")
def _dim(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return None if args or kwargs else Const(len(owner.meta.spec.sizes))


@method("dense_dim")
def _dense_dim(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return Const(len(owner.meta.spec.sizes))


@method("sparse_dim")
def _sparse_dim(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return Const(0)


@method("is_inference")
def _is_inference(
    tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    return None if args or kwargs else Const(owner.meta.is_inference)


for _name, _use in (
    ("__setattr__", TensorValue.set_attr), ("__delattr__", TensorValue.del_attr),
    ("__getattribute__", TensorValue.get_attr),
):  # fmt: skip

    def _by_name(
        tx: Context,
        owner: TensorValue,
        args: list[Value],
        kwargs: dict[str, Value],
        use: Callable[..., Value | None] = _use,
    ) -> Value | None:
        name = tx.constant(args[0]) if args else None
        if owner.meta.cls not in (torch.Tensor, torch.nn.Parameter) or not isinstance(name, str) or kwargs:
            raise GraphBreak(DESCRIPTOR, f"an attribute of {owner.describe()} is named in a call")
        return use(owner, tx, name, *args[1:]) or NONE

    method(_name)(_by_name)


for _name in ("_is_view", "is_shared", "is_pinned"):

    def _of_memory(
        tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value], name: str = _name
    ) -> Value | None:
        """Of an existing tensor: what stands for it while it is traced knows nothing of its memory."""
        if name == "_is_view" and owner.root is not owner:
            return TRUE
        if name == "_is_view" and owner.refuses_writes is not False:
            raise GraphBreak(TENSOR_MEMORY, "whether the result of a custom function is a view")
        return None if args or kwargs else _answer(tx, owner, name)

    method(_name)(_of_memory)


@method("__dlpack_device__")
def _device_for_others(
    tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """Another one for pinned memory, which the graph makes only with an accelerator."""
    known = _answer(tx, owner, "__dlpack_device__")
    if known is None and owner.meta.spec.device.type == "cpu" and not torch.accelerator.is_available():
        return Const(torch.empty(0, device="cpu").__dlpack_device__())
    return known


@method("storage_offset")
def _storage_offset(
    tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    known = None if args or kwargs else storage_offset(tx, owner)
    if known is None:
        raise GraphBreak(TENSOR_MEMORY, "the place of a tensor in memory is asked for")
    return size_value(known)


@method("untyped_storage")
def _untyped_storage(
    tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    memory = owner.memory
    if args or kwargs or tx.levels or memory.real is None or memory.source is None or memory.is_replaced:
        raise GraphBreak(TENSOR_MEMORY, "the storage of a tensor is asked for")
    source = AnswerSource(memory.source, "untyped_storage")
    return tx.force(tx.wrap(source.step(memory.real), source))


def _answer(tx: Context, owner: TensorValue, name: str) -> Value | None:
    """What the method of an existing tensor gives, guarded; None for others."""
    if owner.real is None or owner.source is None:
        return None
    source = AnswerSource(owner.source, name)
    return tx.wrap(source.step(owner.real), source)


@method("requires_grad_")
def _requires_grad(
    tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """Whether autograd follows an existing tensor is set before the graph runs, which must not have used it."""
    given = args[0] if args else kwargs.get("requires_grad", TRUE)
    if (
        owner.root is not owner
        and isinstance(given, Const)
        and bool(given.value) is not owner.meta.requires_grad
    ):
        raise GraphBreak(
            AUTOGRAD_STATE, "autograd is told to follow a view, and nothing else that shows its memory"
        )
    if owner.real is None or owner.source is None or not isinstance(given, Const):
        return None
    meta, wanted = owner.meta, bool(given.value)
    if meta.is_inference or (meta.requires_grad and meta.is_leaf and base_of(tx, owner) is not None):
        raise GraphBreak(AUTOGRAD_STATE, "autograd is told to follow a view, or a tensor of inference mode")
    if meta.requires_grad is wanted:
        return owner
    declared = next((item for item in tx.output.inputs if item.node is owner.node), None)
    if declared is None or owner.node.users or not meta.is_leaf or not is_differentiable(meta.spec.dtype):
        raise GraphBreak(AUTOGRAD_STATE, "`requires_grad` of a tensor changes after the graph has used it")
    declared.followed = wanted
    declared.spec = owner.node.meta[SPEC_KEY] = with_grad(meta.spec, wanted)
    declared.example = declared.example.detach().requires_grad_(wanted)
    tx.tensors.becomes(owner, TensorMeta.of(meta.spec, wanted, True, meta.cls, meta.is_inference))
    tx.effects.deferred(made_tensors.follow, [owner, Const(wanted)], {})
    return owner


@method("detach_")
def _detach_in_place(
    tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """Torch refuses it for views, which it does not know in a graph."""
    if owner.root is not owner or (owner.real is not None and owner.real._is_view()):
        raise GraphBreak(AUTOGRAD_STATE, "a view is to be detached in place")
    return None


@method("fill_diagonal_")
def _fill_diagonal(
    tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """Of a matrix: torch names the diagonal by strides, as integers, which symbolic sizes are not."""
    if len(args) != 1 or kwargs or len(owner.meta.spec.sizes) != 2:
        return None
    tx.tensors.call_method(owner, "diagonal", [], {}).call_method(tx, "fill_", args, {})
    return owner


@method("as_subclass")
def _as_subclass(
    tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    cls = tx.constant(args[0]) if len(args) == 1 else None
    if not (isinstance(cls, type) and issubclass(cls, torch.Tensor)):
        raise GraphBreak(NOT_IN_PYTHON, f"{owner.describe()}.as_subclass gets no class of tensors")
    made: Value = tx.tensors.as_class(owner, cls)
    return made


@method("__len__")
def _len(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return None if args or kwargs else Const(owner.length(tx))


@method("__hash__")
def _hash(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return None if args or kwargs else Const(hash).call(tx, [owner], {})


@method("__iter__")
def _iter(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return None if args or kwargs else owner.iterate(tx)


@method("__float__")
def _float(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    number = _item(tx, owner, args, kwargs)
    if number is None or owner.meta.spec.dtype.is_floating_point:
        return number
    return tx.calls.call_known(Const(float), [number], {})


@method("item")
def _item(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    number: Value | None = None if args or kwargs else floats.of_tensor(tx, owner)
    if number is None and not (args or kwargs):
        number = data_numbers.take_out(tx, owner)
        if number is None and owner.meta.spec.dtype is torch.bool and owner.content is None:
            number = data_numbers.truth_of(tx, owner)
    if number is None:
        raise GraphBreak(CONTENT_DECIDES, "`item()` reads the tensor's content")
    return number


@method("tolist")
def _tolist(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    numbers = None
    if not (args or kwargs):
        numbers = data_numbers.take_out(tx, owner)
    if numbers is None:
        tx.tensors.state.asked.append(owner.node)
        raise GraphBreak(CONTENT_DECIDES, "`tolist()` reads the tensor's content")
    return numbers


@method("__int__", "__index__")
def _int(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    why = "the content of a tensor decides what Python does"
    dtype = owner.meta.spec.dtype
    if not is_differentiable(dtype):
        return tx.tensors.number(owner, why)
    raise GraphBreak(CONTENT_DECIDES, why)


@method("__bool__", "__contains__", "is_nonzero")
def _content(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    raise GraphBreak(CONTENT_DECIDES, "the content of a tensor decides what Python does")


@method("equal")
def _equal(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return data_numbers.are_equal(tx, owner, args[0]) if len(args) == 1 and not kwargs else None


@method("allclose")
def _allclose(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return data_numbers.are_close(tx, [owner, *args], kwargs)


@method("narrow")
def _narrow(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return positions.narrow(tx, [owner, *args], kwargs)


@method("tensor_split")
def _tensor_split(
    tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    return positions.tensor_split(tx, [owner, *args], kwargs)


@method("cov")
def _cov(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return tx.calls.from_python(torch.cov).call(tx, [owner, *args], kwargs)


@method("corrcoef")
def _corrcoef(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return tx.calls.from_python(torch.corrcoef).call(tx, [owner, *args], kwargs)


@method("__setitem__")
def _setitem(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    owner.set_item(tx, args[0], args[1])
    return NONE


@method("__getitem__")
def _getitem(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return owner.get_item(tx, args[0])


@method("is_set_to")
def _is_set_to(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """Whether two tensors show the same memory in the same way: known of one and itself, and of memory of their own."""
    other = tx.force(args[0]) if len(args) == 1 and not kwargs else None
    if not isinstance(other, TensorValue):
        return None
    if other is owner:
        return TRUE
    one, two = owner.memory, other.memory
    apart = one is not two and (one.source is None or two.source is None)
    return FALSE if apart else None
