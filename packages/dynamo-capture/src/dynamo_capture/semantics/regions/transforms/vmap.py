"""``vmap`` becomes a region whose sub-graph is the function of one slice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from dynamo_capture.foundation.break_kinds import OTHER_INTERPRETER, TRANSFORM
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.declared import handles_loaded
from dynamo_capture.semantics.regions.tracing import trace_body
from dynamo_capture.semantics.regions.transforms.body import TransformBody, open_transform
from dynamo_capture.semantics.regions.transforms.written import Arguments
from dynamo_capture.values import Const, DictValue, ListValue, TensorMeta, TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import leaves_of, mapped_leaves
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.regions import mapped
from fx_interface.tensor_spec import TensorSpec


@handles_loaded("torch._functorch.vmap", "vmap_impl")
def vmap(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    function, in_dims, out_dims, randomness, chunk_size, *given = args
    if not tx.tensors.disabled and tx.tensors.overriding(given):
        raise GraphBreak(TRANSFORM, "vmap() over a tensor of a class that is asked for __torch_function__")
    call = _Mapped(function, in_dims, out_dims, tx.constant(randomness), kwargs)
    size = tx.constant(chunk_size)
    return call.once(tx, given) if size is None else call.in_chunks(tx, given, size)


@dataclass(frozen=True, slots=True)
class _Mapped:
    """A function to be mapped, and how."""

    function: Value
    in_dims: Value
    out_dims: Value
    randomness: str
    kwargs: dict[str, Value]

    def in_chunks(self, tx: Context, given: list[Value], size: int) -> Value:
        """The function mapped over ``size`` slices after the other; the results put together."""
        lengths: list[int] = []

        def note(leaf: TensorValue, dim: int) -> Value:
            lengths.append(tx.index(leaf.call_method(tx, "size", [Const(dim)], {})))
            return leaf

        _sliced(tx, given, self.in_dims, note)
        if len(set(lengths)) != 1:
            raise GraphBreak(TRANSFORM, "vmap() over no argument, or over arguments of different sizes")
        found = []
        for start in range(0, lengths[0], size):
            span = Const(start), Const(min(size, lengths[0] - start))
            part = _sliced(
                tx,
                given,
                self.in_dims,
                lambda leaf, dim, span=span: leaf.call_method(tx, "narrow", [Const(dim), *span], {}),  # type: ignore[misc]
            )
            found.append(self.once(tx, part, is_part=True))
        dims = _per_leaf(tx, found[0], self.out_dims)
        if None in dims:
            raise GraphBreak(TRANSFORM, "vmap() in chunks of a result that is the same for all slices")
        parts = zip(*(leaves_of(tx, result, only=True) for result in found), strict=True)
        joined = iter(
            [
                tx.tensors.call_function(torch.cat, [ListValue(list(leaves)), Const(dim)], {})
                for leaves, dim in zip(parts, dims, strict=True)
            ]
        )
        return mapped_leaves(tx, found[0], lambda _: next(joined))

    def once(self, tx: Context, given: list[Value], is_part: bool = False) -> Value:
        """The function mapped over all slices."""
        function, passed = self.function, list(given)
        body = TransformBody(tx.output, f"the mapped function ({function.describe()})")
        body.own_rule, body.may_write, body.is_mapped = "vmap", True, True
        over: list[TensorValue] = []
        dims: list[int] = []

        def inside(leaf: TensorValue, dim: int) -> TensorValue:
            rank = len(leaf.meta.spec.sizes)
            if dim < 0 and tx.tensors.modes:
                raise GraphBreak(
                    OTHER_INTERPRETER, "vmap() over a dimension from the end in a TorchFunctionMode"
                )
            if not -rank <= dim < rank:
                raise GraphBreak(TRANSFORM, f"in_dims={dim} for {leaf.meta.spec}")
            over.append(leaf)
            dims.append(dim % rank)
            spec, position = leaf.meta.spec, dim % rank
            kept = [i for i in range(rank) if i != position]
            part = TensorSpec(
                tuple(spec.sizes[i] for i in kept),
                tuple(spec.strides[i] for i in kept),
                spec.dtype,
                spec.device,
            )
            return body.argument("slice", TensorMeta.of(part, g := leaf.meta.requires_grad, not g))

        given = _sliced(tx, given, self.in_dims, inside)
        if not over or len({leaf.meta.spec.sizes[dim] for leaf, dim in zip(over, dims, strict=True)}) != 1:
            raise GraphBreak(TRANSFORM, "vmap() over no argument, or over arguments of different sizes")
        body.asks_modes = not is_part and _ask_modes(tx, over, dims)
        result = trace_body(
            tx,
            body,
            lambda: tx.force(function.call(tx, given, self.kwargs)),
            pure=True,
            passed=[function, *passed],
        )
        if body.draws:
            self._check_draws(is_part)
        results = leaves_of(tx, result, only=True)
        wanted = _per_leaf(tx, result, self.out_dims)
        arguments = Arguments(body, over, dims)
        plain = [k for k, leaf in enumerate(results) if not arguments.is_one(leaf)]
        contents = arguments.written(results)
        options = {
            "in_dims": tuple(dims),
            "out_dims": (*(wanted[k] for k in plain), *(0 for _ in contents)),
            "randomness": self.randomness,
        }
        inner = [*(results[k] for k in plain), *contents]
        found = open_transform(tx, mapped, body, over, inner, options) if inner else []
        arguments.write(tx, found[len(plain) :])
        outer = dict(zip(plain, found, strict=False))
        made = [
            outer[k] if k in outer else arguments.outside(tx, leaf, wanted[k])
            for k, leaf in enumerate(results)
        ]
        return mapped_leaves(tx, result, lambda _: made.pop(0))

    def _check_draws(self, is_part: bool) -> None:
        """What a function that draws random numbers may not ask for."""
        if is_part and self.randomness == "same":
            raise GraphBreak(TRANSFORM, "vmap() in chunks of a function that draws the same for all slices")
        if self.randomness == "error":
            text = "vmap() of a function that draws random numbers, with randomness='error'"
            raise GraphBreak(TRANSFORM, text)


def _ask_modes(tx: Context, over: list[TensorValue], dims: list[int]) -> bool:
    """Look at the arguments as torch does, for modes of the program to see: their dimensions, and how many slices."""
    for leaf in over if tx.tensors.modes else ():
        for _ in range(2):
            leaf.call_method(tx, "dim", [], {})
    for leaf, dim in zip(over, dims, strict=True) if tx.tensors.modes else ():
        leaf.call_method(tx, "size", [Const(dim)], {})
    return True


def _sliced(
    tx: Context, given: list[Value], in_dims: Value, inside: Callable[[TensorValue, int], Value]
) -> list[Value]:
    """The arguments with a slice in place of each tensor that is mapped over."""
    dims = _broadcast(tx, TupleValue(given), in_dims)
    made = []
    for value, dim in zip(given, dims, strict=True):
        each = iter(_per_leaf(tx, value, dim))

        def change(leaf: TensorValue, each: Iterator[int | None] = each) -> Value:
            position = next(each)
            return leaf if position is None else inside(leaf, position)

        if not isinstance(dim, Const) or dim.value is not None:
            leaves_of(tx, value, only=True)
        made.append(mapped_leaves(tx, value, change))
    return made


def _broadcast(tx: Context, value: Value, dims: Value) -> list[Value]:
    """What ``dims`` says about each item of ``value``: one number for all, or a structure of the same form."""
    items = list(value.items) if isinstance(value, (TupleValue, ListValue)) else None
    if isinstance(value, DictValue):
        items = [item for _, item in value.all_entries(tx).values()]
    assert items is not None
    dims = tx.force(dims)
    if tx.is_constant(dims) and (tx.constant(dims) is None or isinstance(tx.constant(dims), int)):
        return [dims] * len(items)
    if isinstance(dims, DictValue):
        given = [item for _, item in dims.all_entries(tx).values()]
    else:
        given = dims.unpack(tx)
    if len(given) != len(items):
        raise GraphBreak(TRANSFORM, "the dimensions of vmap() are not formed as the arguments or results are")
    return [tx.force(item) for item in given]


def _per_leaf(tx: Context, value: Value, dims: Value) -> list[int | None]:
    """The dimension of each tensor of a structure."""
    value = tx.force(value)
    if isinstance(value, TensorValue):
        dim = tx.constant(dims)
        if dim is not None and not isinstance(dim, int):
            raise GraphBreak(
                TRANSFORM, f"{dim!r} is the dimension of a tensor that vmap() maps over or gives"
            )
        return [dim]
    if not isinstance(value, (TupleValue, ListValue, DictValue)):
        return []
    parts = (
        list(value.items)
        if not isinstance(value, DictValue)
        else [item for _, item in value.all_entries(tx).values()]
    )
    each = zip(parts, _broadcast(tx, value, dims), strict=True)
    return [dim for part, wanted in each for dim in _per_leaf(tx, part, wanted)]
