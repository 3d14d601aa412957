"""``torch.func``: ``grad``, ``grad_and_value``, ``vjp`` and ``vmap`` become regions whose sub-graph is the function.

The functions of ``torch.func`` are traced into up to the ones handled here, which are found by name in modules that
the program has loaded: nothing is imported for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

import torch

from dynamo_capture.errors import GraphBreak
from dynamo_capture.output import is_differentiable, with_grad
from dynamo_capture.regions.body import Body
from dynamo_capture.regions.declared import handles_loaded
from dynamo_capture.regions.structures import leaves_of, mapped_leaves
from dynamo_capture.regions.tracing import call_region, trace_body
from dynamo_capture.values import Const, DictValue, ListValue, TensorMeta, TensorValue, TupleValue, Value
from fx_interface.regions import gradient, mapped
from fx_interface.tensor_spec import SPEC_KEY, SymSpec, TensorSpec

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace


class _TransformBody(Body):
    """A sub-graph that may not write to its parameters: they stand for tensors of the outside."""

    def write(self, written: Sequence[TensorValue]) -> None:
        super().write(written)
        if any(tensor.memory.node in self.parameters for tensor in written):
            raise GraphBreak("CAP242", f"{self.what} writes to its argument")

    def argument(self, name: str, meta: TensorMeta) -> TensorValue:
        """A parameter as a value."""
        return TensorValue(self.parameter(name, with_grad(meta.spec, meta.requires_grad)), meta)


@handles_loaded("torch._functorch.eager_transforms", "grad_impl")
def grad(tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    found, value = _grad_and_value(tx, args).unpack(tx)
    return TupleValue([found, value.unpack(tx)[1]]) if tx.truth(args[2]) else found


@handles_loaded("torch._functorch.eager_transforms", "grad_and_value_impl")
def grad_and_value(tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return _grad_and_value(tx, args)


def _grad_and_value(tx: Trace, args: list[Value]) -> Value:
    function, argnums, has_aux, given, keywords = args
    call = _Differentiated(tx, function, given.unpack(tx), argnums, dict(_keywords(tx, keywords)))
    result = call.run()
    aux: list[Value] = []
    if tx.truth(has_aux):
        if not isinstance(result, TupleValue) or len(result.items) != 2:
            raise GraphBreak("CAP246", "a function with has_aux=True does not return a pair")
        result, more = (tx.force(item) for item in result.items)
        aux = [more]
    if not isinstance(result, TensorValue) or result.meta.spec.sizes:
        raise GraphBreak(
            "CAP246", f"the gradient of {result.describe()} is asked for, which is no scalar tensor"
        )
    gradients, results = call.differentiate(
        [], [result, *(leaf for more in aux for leaf in leaves_of(tx, more, only=True))]
    )
    value: Value = results.pop(0)
    if aux:
        value = TupleValue([value, mapped_leaves(tx, aux[0], lambda _: results.pop(0))])
    return TupleValue([gradients, value])


class _Differentiated:
    """A function about to be differentiated with respect to some of its arguments."""

    def __init__(
        self, tx: Trace, function: Value, given: list[Value], argnums: Value, kwargs: dict[str, Value]
    ) -> None:
        self._tx = tx
        self._function = function
        self._given = [tx.force(value) for value in given]
        self._kwargs = kwargs
        numbers = tx.constant(argnums)
        self._numbers = [numbers] if isinstance(numbers, int) else list(numbers)
        self._is_single = isinstance(numbers, int)
        if any(not -len(given) <= number < len(given) for number in self._numbers) or not self._numbers:
            raise GraphBreak("CAP246", f"argnums={numbers} of {len(given)} arguments")
        self.body = _TransformBody(tx.output, f"the differentiated function ({function.describe()})")
        self.leaves = [
            leaf for number in self._numbers for leaf in leaves_of(tx, self._given[number], only=True)
        ]
        for leaf in self.leaves:
            if not is_differentiable(leaf.meta.spec.dtype):
                raise GraphBreak("CAP246", f"a gradient with respect to {leaf.meta.spec} is asked for")

    def run(self) -> Value:
        """What the function returns inside of the sub-graph."""
        tx, given = self._tx, list(self._given)

        def inside(leaf: TensorValue) -> TensorValue:
            return self.body.argument("primal", TensorMeta.of(leaf.meta.spec, True, True))

        for number in self._numbers:
            given[number] = mapped_leaves(tx, given[number], inside)

        def call() -> Value:
            with torch.enable_grad():
                return tx.force(self._function.call(tx, given, self._kwargs))

        return trace_body(
            tx, self.body, call, pure=True, passed=[self._function, *self._given, *self._kwargs.values()]
        )

    def differentiate(
        self, seeds: list[TensorValue], results: list[TensorValue]
    ) -> tuple[Value, list[TensorValue]]:
        """The gradients, formed as the arguments are, and the results as values of the outside."""
        options = {"wrt": len(self.leaves), **({"seeds": len(seeds)} if seeds else {})}
        found = _open(self._tx, gradient, self.body, [*self.leaves, *seeds], results, options)
        gradients = iter(found[: len(self.leaves)])
        formed = [
            mapped_leaves(self._tx, self._given[number], lambda _: next(gradients))
            for number in self._numbers
        ]
        return formed[0] if self._is_single else TupleValue(formed), found[len(self.leaves) :]


@handles_loaded("torch._functorch.eager_transforms", "_vjp_with_argnums")
def vjp(tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    function, *primals = args
    argnums = kwargs.get("argnums", Const(None))
    is_all = tx.is_constant(argnums) and tx.constant(argnums) is None
    if tx.truth(kwargs.get("has_aux", Const(False))):
        raise GraphBreak("CAP246", "vjp() of a function with has_aux=True")
    numbers = Const(tuple(range(len(primals)))) if is_all else argnums
    return TupleValue([function.call(tx, primals, {}), _Pullback(function, primals, numbers)])


class _Pullback(Value):
    """What ``vjp`` returns to be called with the gradients of the results: traces the function once more."""

    __slots__ = ("argnums", "function", "primals", "source")

    def __init__(self, function: Value, primals: list[Value], argnums: Value) -> None:
        self.function = function
        self.primals = primals
        self.argnums = argnums
        self.source = None

    def python_type(self) -> type:
        return FunctionType

    def call(self, tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
        call = _Differentiated(tx, self.function, self.primals, self.argnums, {})
        result = call.run()
        seeds = leaves_of(tx, args[0] if len(args) == 1 else TupleValue(args), only=True)
        leaves = leaves_of(tx, result, only=True)
        if [s.meta.spec.sizes for s in seeds] != [leaf.meta.spec.sizes for leaf in leaves]:
            raise GraphBreak("CAP246", "the gradients that are pulled back are not formed as the results are")
        if call.body.draws:
            raise GraphBreak("CAP246", "vjp() of a function that draws random numbers")
        return call.differentiate(seeds, leaves)[0]


@handles_loaded("torch._functorch.eager_transforms", "_jvp_with_argnums")
def jvp(tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise GraphBreak("CAP246", "derivatives in forward direction (jvp, jacfwd, hessian)")


@handles_loaded("torch._functorch.vmap", "vmap_impl")
def vmap(tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    function, in_dims, out_dims, randomness, chunk_size, *given = args
    if tx.constant(chunk_size) is not None:
        raise GraphBreak("CAP246", "vmap() in chunks")
    body = _TransformBody(tx.output, f"the mapped function ({function.describe()})")
    over: list[TensorValue] = []
    dims: list[int] = []

    def inside(leaf: TensorValue, dim: int) -> TensorValue:
        rank = len(leaf.meta.spec.sizes)
        if not -rank <= dim < rank:
            raise GraphBreak("CAP246", f"in_dims={dim} for {leaf.meta.spec}")
        over.append(leaf)
        dims.append(dim % rank)
        spec, position = leaf.meta.spec, dim % rank
        kept = [i for i in range(rank) if i != position]
        part = TensorSpec(
            tuple(spec.sizes[i] for i in kept), tuple(spec.strides[i] for i in kept), spec.dtype, spec.device
        )
        return body.argument("slice", TensorMeta.of(part, leaf.meta.requires_grad, False))

    given = _sliced(tx, given, in_dims, inside)
    if not over or len({leaf.meta.spec.sizes[dim] for leaf, dim in zip(over, dims, strict=True)}) != 1:
        raise GraphBreak("CAP246", "vmap() over no argument, or over arguments of different sizes")
    result = trace_body(
        tx, body, lambda: tx.force(function.call(tx, given, kwargs)), pure=True, passed=[function, *args[5:]]
    )
    mode = tx.constant(randomness)
    if body.draws and mode == "error":
        raise GraphBreak("CAP246", "vmap() of a function that draws random numbers, with randomness='error'")
    results = leaves_of(tx, result, only=True)
    wanted = _per_leaf(tx, result, out_dims)
    options = {"in_dims": tuple(dims), "out_dims": tuple(wanted), "randomness": mode}
    found = _open(tx, mapped, body, over, results, options)
    return mapped_leaves(tx, result, lambda _: found.pop(0))


def _sliced(
    tx: Trace, given: list[Value], in_dims: Value, inside: Callable[[TensorValue, int], TensorValue]
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


def _broadcast(tx: Trace, value: Value, dims: Value) -> list[Value]:
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
        raise GraphBreak("CAP246", "the dimensions of vmap() are not formed as the arguments or results are")
    return [tx.force(item) for item in given]


def _per_leaf(tx: Trace, value: Value, dims: Value) -> list[int | None]:
    """The dimension of each tensor of a structure."""
    value = tx.force(value)
    if isinstance(value, TensorValue):
        return [tx.constant(dims)]
    if not isinstance(value, (TupleValue, ListValue, DictValue)):
        return []
    parts = (
        list(value.items)
        if not isinstance(value, DictValue)
        else [item for _, item in value.all_entries(tx).values()]
    )
    each = zip(parts, _broadcast(tx, value, dims), strict=True)
    return [dim for part, wanted in each for dim in _per_leaf(tx, part, wanted)]


def _open(
    tx: Trace,
    target: Callable[..., Any],
    body: Body,
    leading: list[TensorValue],
    results: list[TensorValue],
    options: dict[str, Any],
) -> list[Any]:
    """Close the sub-graph and put the call into the graph; its results are learnt by running it on specs."""
    body.close([body.use(value.node) for value in results])
    tensors = [*leading]
    fakes: dict[int, Any] = {}
    args = [tx.tensors.fake(value, fakes) for value in leading]
    for node in body.lifted:
        spec = node.meta.get(SPEC_KEY)
        if isinstance(spec, SymSpec):
            args.append(tx.inference.sizes.to_torch(spec.expr))
            continue
        if not isinstance(spec, TensorSpec):
            raise GraphBreak("CAP246", f"{body.what} uses {node.name}, which is no tensor")
        bare = TensorSpec(spec.sizes, spec.strides, spec.dtype, spec.device)
        tensors.append(TensorValue(node, TensorMeta.of(bare, spec.requires_grad, not spec.requires_grad)))
        args.append(tx.tensors.fake(tensors[-1], fakes))
    try:
        found = tx.inference.run(target, [body.finished(), *args], options)
    except Exception as error:  # whatever a batching rule or a derivative formula says
        raise GraphBreak("CAP246", f"{body.what} cannot be transformed: {error}") from None
    described = tx.tensors.describe_result(tuple(found), [fakes[id(t)] for t in tensors], [False])
    spec = tx.tensors.spec_tree(described, tensors)
    nodes = [*(tx.output.use(value.node) for value in leading), *body.lifted]
    node = call_region(tx.output, target, [body], nodes, options, spec, tx.where())
    body.end()
    return list(tx.tensors.result_of(node, described, tensors).unpack(tx))


def _keywords(tx: Trace, keywords: Value) -> Iterator[tuple[str, Value]]:
    assert isinstance(keywords, DictValue)
    for name, item in keywords.all_entries(tx).values():
        yield tx.constant(name), tx.force(item)
