"""Sparse tensors in coordinate layout, as the trace sees them: made, read, and asked.

The graph has the tensor of their places and that of what is stored there, which are plain tensors. An operation is what
it means for those, and whatever else is asked for ends the graph; behind it the sparse tensors are made again of their
parts, with the history that what is stored has.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional as F

from dynamo_capture.foundation.break_kinds import UNUSUAL_TENSOR
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.polyfills import sparse as formulas
from dynamo_capture.semantics.registry import Handler, handles
from dynamo_capture.semantics.tensor_subclasses.wrappers import tensors_in
from dynamo_capture.semantics.tensors.operations import Operation
from dynamo_capture.sources.sources import AnswerSource, TensorAttributeSource
from dynamo_capture.values import (
    FALSE,
    NONE,
    TRUE,
    Const,
    TensorValue,
    TupleValue,
    Value,
    boolean,
    is_none,
    one_tensor,
    size_value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.sparse import SparseValue
from fx_interface.source import ItemSource, Source
from fx_interface.symbols import IntLike, Relation

_PRODUCTS = frozenset({"_sparse_mm", "mm", "matmul", "spmm", "mv"})
_SCALED: dict[str, Any] = {"mul": operator.mul, "truediv": operator.truediv, "div": operator.truediv}
_BY_FORM = frozenset(
    {"shape", "dtype", "device", "ndim", "requires_grad", "is_leaf", "itemsize"}
    | {"is_cuda", "is_cpu", "is_meta", "is_quantized", "is_nested"}
)
_QUESTIONS = frozenset(
    {"size", "dim", "ndimension", "numel", "is_floating_point", "is_complex", "element_size", "get_device"}
)
_DTYPES = (torch.float32, torch.float64)


def existing(tx: Context, real: torch.Tensor, source: Source) -> SparseValue | None:
    """An existing sparse tensor that autograd does not follow; None for others."""
    if real.layout is not torch.sparse_coo or type(real) is not torch.Tensor or real.requires_grad:
        return None
    if tx.levels or real.is_inference():
        return None
    tx.guards.type_is(source, torch.Tensor)
    for asked in (TensorAttributeSource(source, "layout"), AnswerSource(source, "is_coalesced")):
        tx.guards.equals(asked, asked.step(real))
    for asked in (TensorAttributeSource(source, "requires_grad"), AnswerSource(source, "sparse_dim")):
        tx.guards.equals(asked, asked.step(real))
    shape = TensorAttributeSource(source, "shape")
    sizes = [tx.force(tx.wrap(size, ItemSource(shape, dim))) for dim, size in enumerate(real.shape)]
    parts = []
    for name in ("_indices", "_values"):
        inner = AnswerSource(source, name)
        parts.append(tx.force(tx.wrap(inner.step(real), inner)))
    places, stored = parts
    if type(places) is not TensorValue or type(stored) is not TensorValue:
        return None
    return SparseValue(places, stored, _numbers(tx, sizes), real.is_coalesced(), source, real)


def _numbers(tx: Context, sizes: Sequence[Value]) -> list[IntLike]:
    return [tx.index(size) if size.expr is None else size.expr for size in sizes]


@handles(torch.sparse_coo_tensor)
def make(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """``torch.sparse_coo_tensor(indices, values, size)``; None for other arguments, and for tensors that do not fit."""
    given = {**dict(zip(("indices", "values", "size"), args, strict=False)), **kwargs}
    given = {name: value for name, value in given.items() if not is_none(tx.force(value))}
    flag = given.pop("is_coalesced", FALSE)
    if given.keys() != {"indices", "values", "size"} or tx.levels or tx.tensors.modes:
        return None
    if torch._C._check_sparse_tensor_invariants():  # the places are to be checked
        return None
    places, stored = tx.force(given["indices"]), tx.force(given["values"])
    if type(places) is not TensorValue or type(stored) is not TensorValue:
        return None
    if any(one.meta.cls not in (torch.Tensor, torch.nn.Parameter) for one in (places, stored)):
        return None
    sizes = _numbers(tx, tx.force(given["size"]).unpack(tx))
    form, held = places.meta.spec, stored.meta.spec
    if form.rank != 2 or form.dtype is not torch.int64 or form.device != held.device or not held.rank:
        return None
    sparse = form.sizes[0]
    if not isinstance(sparse, int) or not sparse or sparse + held.rank - 1 != len(sizes):
        return None
    pairs = [(form.sizes[1], held.sizes[0]), *zip(held.sizes[1:], sizes[sparse:], strict=True)]
    if not all(tx.decide(Relation("==", one, other)) for one, other in pairs):
        return None
    if not torch.is_grad_enabled() and stored.meta.requires_grad:
        stored = one_tensor(stored.call_method(tx, "detach", [], {}))
    return SparseValue(places, stored, sizes, _is_short(tx, places) or bool(tx.constant(flag)))


def _with_sparse_gradient(place: int) -> Handler:
    def embed(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> None:
        """Note that the weight may get a sparse gradient, which not every backend can hand on."""
        given = dict(enumerate(args)) | kwargs
        is_sparse = given.get(place, given.get("sparse", FALSE))
        tables = [one for one in map(tx.force, args[:2]) if isinstance(one, TensorValue)]
        trained = torch.is_grad_enabled() and any(table.meta.requires_grad for table in tables)
        if not trained or not tx.truth(is_sparse):
            return
        if tx.policy.leaves_apart:
            raise GraphBreak(UNUSUAL_TENSOR, "the gradient of a table is a sparse tensor")
        tx.output.makes_leaf = True

    return embed


for _function, _place in (
    (F.embedding, 6),
    (F.embedding_bag, 7),
    (torch.embedding, 4),
    (torch.embedding_bag, 5),
):
    handles(_function)(_with_sparse_gradient(_place))


def method(
    tx: Context, owner: TensorValue, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """``sparse.name(...)``, and ``to_sparse()`` of a plain tensor."""
    if name == "to_sparse" and type(owner) is TensorValue and not args and not kwargs:
        return _sparse(tx, owner)
    if not isinstance(owner, SparseValue) or name in _QUESTIONS:
        return None
    asked = _ASKED.get(name)
    if asked is not None and not args and not kwargs:
        return asked(tx, owner)
    if name == "transpose" and not kwargs and {tx.constant(arg) % 2 for arg in args} == {0, 1}:
        return _transposed(tx, owner)
    found = _computed(tx, name, [owner, *args], kwargs)
    if found is None:
        raise GraphBreak(UNUSUAL_TENSOR, f"{name}() of a sparse tensor")
    return found


def attribute(tx: Context, owner: TensorValue, name: str) -> Value | None:
    """``sparse.name``."""
    if not isinstance(owner, SparseValue) or name in _BY_FORM:
        return None
    match name:
        case "layout":
            return Const(torch.sparse_coo)
        case "is_sparse":
            return TRUE
        case "is_sparse_csr" | "is_mkldnn":
            return FALSE
        case "T":
            return _transposed(tx, owner)
    if not callable(getattr(torch.Tensor, name, None)):
        raise GraphBreak(UNUSUAL_TENSOR, f"{name} of a sparse tensor")
    return None


def set_attribute(tx: Context, owner: TensorValue, name: str, value: Value) -> bool:
    """``sparse.name = value`` ends the graph."""
    if isinstance(owner, SparseValue):
        raise GraphBreak(UNUSUAL_TENSOR, f"the attribute {name!r} of a sparse tensor is set")
    return False


def by_parts(tx: Context, call: Operation) -> Value | None:
    """What an operation with sparse tensors means for their parts."""
    found = any(isinstance(one, SparseValue) for one in tensors_in(tx, [*call.args, *call.kwargs.values()]))
    if not found:
        return None
    made = _computed(tx, call.name, call.args, call.kwargs)
    if made is None:
        raise GraphBreak(UNUSUAL_TENSOR, f"{call.name} of a sparse tensor")
    return made


@handles(torch.sparse.sum)
def total(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The sum of all that is stored, or of a matrix along a dimension: a sparse vector. None for other sums."""
    owner = tx.force(args[0]) if len(args) in (1, 2) and kwargs.keys() <= {"dim"} else NONE
    if not isinstance(owner, SparseValue):
        return None
    dim = tx.force(kwargs["dim"] if "dim" in kwargs else args[1] if len(args) > 1 else NONE)
    if is_none(dim):
        return owner.stored.call_method(tx, "sum", [], {})
    sizes, known = owner.meta.spec.sizes, dim.known_as(int)
    if known is None or len(sizes) != 2 or owner.stored.meta.spec.rank != 1 or not -2 <= known < 2:
        return None
    kept = 1 - known % 2
    places = one_tensor(owner.places.call_method(tx, "narrow", [Const(0), Const(kept), Const(1)], {}))
    return _coalesced(tx, SparseValue(places, owner.stored, (sizes[kept],), _is_short(tx, places)))


def _computed(tx: Context, name: str, args: Sequence[Value], kwargs: dict[str, Value]) -> Value | None:
    """What an operation on sparse tensors gives, by its name in torch; None for those that are left to torch."""
    values = [tx.force(arg) for arg in args]
    if kwargs or not values:
        return None
    owner, *others = values
    if name in _ASKED and isinstance(owner, SparseValue) and not others:
        return _ASKED[name](tx, owner)
    if len(others) != 1:
        return None
    other = others[0]
    if name == "add":
        return _added(tx, owner, other)
    if name in _PRODUCTS and isinstance(owner, SparseValue) and type(other) is TensorValue:
        return _product(tx, owner, other)
    if name == "mul" and isinstance(other, SparseValue):
        owner, other = other, owner
    return (
        _scaled(tx, _SCALED[name], owner, other)
        if name in _SCALED and isinstance(owner, SparseValue)
        else None
    )


def _product(tx: Context, owner: SparseValue, other: TensorValue) -> Value | None:
    """Of a matrix and a matrix, or a vector, of one dtype."""
    mine, theirs = owner.meta.spec, other.meta.spec
    if mine.rank != 2 or theirs.rank not in (1, 2) or owner.stored.meta.spec.rank != 1:
        return None
    if mine.dtype is not theirs.dtype or mine.dtype not in _DTYPES or mine.device != theirs.device:
        return None
    if torch.is_autocast_enabled(mine.device.type):
        return None
    if not tx.decide(Relation("==", mine.sizes[1], theirs.sizes[0])):
        return None
    given = [owner.places, owner.stored, size_value(mine.sizes[0]), other]
    return tx.inliner.call_function(Const(formulas.product), given, {})


def _scaled(tx: Context, function: Any, owner: SparseValue, factor: Value) -> Value | None:
    """``sparse * 2``; what is stored has the dtype that torch gives it."""
    if factor.known_as(int, float) is None:
        return None
    made = one_tensor(tx.tensors.call_function(function, [owner.stored, factor], {}))
    return SparseValue(owner.places, made, owner.meta.spec.sizes, owner.is_coalesced)


def _added(tx: Context, one: Value, other: Value) -> Value | None:
    """The sum of two sparse tensors of a form; of two that are coalesced torch gives one that is."""
    if not isinstance(one, SparseValue) or not isinstance(other, SparseValue):
        return None
    mine, theirs = one.meta.spec, other.meta.spec
    if mine.dtype is not theirs.dtype or mine.dtype not in _DTYPES or mine.device != theirs.device:
        return None
    if mine.rank != theirs.rank or one.stored.meta.spec.rank != other.stored.meta.spec.rank:
        return None
    pairs = zip(mine.sizes, theirs.sizes, strict=True)
    if not all(tx.decide(Relation("==", size, beside)) for size, beside in pairs):
        return None
    places, stored = (
        one_tensor(tx.tensors.call_function(torch.cat, [TupleValue(list(parts)), Const(dim)], {}))
        for parts, dim in (((one.places, other.places), 1), ((one.stored, other.stored), 0))
    )
    joined = SparseValue(places, stored, mine.sizes, _is_short(tx, places))
    return _coalesced(tx, joined) if one.is_coalesced and other.is_coalesced else joined


def _is_short(tx: Context, places: TensorValue) -> bool:
    """Whether so little is stored that torch takes it for coalesced."""
    return tx.decide(Relation("<=", places.meta.spec.sizes[1], 1))


def _dense(tx: Context, owner: SparseValue) -> Value | None:
    if owner.meta.spec.dtype not in _DTYPES:
        return None
    given = [owner.places, owner.stored, _shape(owner)]
    return tx.inliner.call_function(Const(formulas.dense), given, {})


def _sparse(tx: Context, owner: TensorValue) -> Value | None:
    spec, is_plain = owner.meta.spec, owner.meta.cls in (torch.Tensor, torch.nn.Parameter)
    if not is_plain or spec.dtype not in _DTYPES or not spec.rank or tx.levels or tx.tensors.modes:
        return None
    if not tx.inference.follows_data:
        return None
    places, stored = tx.inliner.call_function(Const(formulas.stored), [owner], {}).unpack(tx)
    return SparseValue(one_tensor(places), one_tensor(stored), spec.sizes, True)


def _shape(owner: SparseValue) -> TupleValue:
    return TupleValue([size_value(size) for size in owner.meta.spec.sizes])


def _coalesced(tx: Context, owner: SparseValue) -> Value | None:
    if owner.is_coalesced:
        return owner
    if owner.meta.spec.dtype not in _DTYPES:
        return None
    given = [owner.places, owner.stored, _shape(owner)]
    places, stored = tx.inliner.call_function(Const(formulas.coalesced), given, {}).unpack(tx)
    return SparseValue(one_tensor(places), one_tensor(stored), owner.meta.spec.sizes, True)


def _transposed(tx: Context, owner: SparseValue) -> Value | None:
    sizes = owner.meta.spec.sizes
    if len(sizes) != 2 or owner.stored.meta.spec.rank != 1:
        raise GraphBreak(UNUSUAL_TENSOR, "dimensions of a sparse tensor are exchanged")
    places = one_tensor(owner.places.call_method(tx, "flip", [Const(0)], {}))
    return SparseValue(places, owner.stored, sizes[::-1], False)


def _negated(tx: Context, owner: SparseValue) -> Value:
    made = one_tensor(tx.tensors.call_function(operator.neg, [owner.stored], {}))
    return SparseValue(owner.places, made, owner.meta.spec.sizes, owner.is_coalesced)


def _detached(tx: Context, owner: SparseValue) -> Value:
    made = one_tensor(owner.stored.call_method(tx, "detach", [], {}))
    return SparseValue(owner.places, made, owner.meta.spec.sizes, owner.is_coalesced)


def _of_each(function: Any) -> Callable[[Context, SparseValue], Value | None]:
    """A function that keeps zeros, of a coalesced tensor: others torch coalesces first. It has few derivatives."""

    def compute(tx: Context, owner: SparseValue) -> Value | None:
        if not owner.is_coalesced or owner.meta.requires_grad or owner.meta.spec.dtype not in _DTYPES:
            return None
        made = one_tensor(tx.tensors.call_function(function, [owner.stored], {}))
        return SparseValue(owner.places, made, owner.meta.spec.sizes, True)

    return compute


def _part(name: str, of_coalesced: bool) -> Callable[[Context, SparseValue], Value | None]:
    def read(tx: Context, owner: SparseValue) -> Value | None:
        part: TensorValue = getattr(owner, name)
        if not of_coalesced:
            return part.call_method(tx, "detach", [], {})
        return (
            tx.tensors.call_function(torch.ops.aten.alias.default, [part], {}) if owner.is_coalesced else None
        )

    return read


_ASKED: dict[str, Callable[[Context, SparseValue], Value | None]] = {
    "to_dense": _dense,
    "coalesce": _coalesced,
    "t": _transposed,
    "neg": _negated,
    "detach": _detached,
    **{name: _of_each(getattr(torch, name)) for name in ("abs", "relu", "sqrt", "sin", "tanh")},
    "sum": lambda tx, owner: owner.stored.call_method(tx, "sum", [], {}),
    "indices": _part("places", True),
    "values": _part("stored", True),
    "_indices": _part("places", False),
    "_values": _part("stored", False),
    "_nnz": lambda tx, owner: size_value(owner.places.meta.spec.sizes[1]),
    "is_coalesced": lambda tx, owner: boolean(owner.is_coalesced),
    "sparse_dim": lambda tx, owner: size_value(owner.places.meta.spec.sizes[0]),
    "dense_dim": lambda tx, owner: Const(owner.stored.meta.spec.rank - 1),
}
"""Operations without arguments."""
