"""Reverse derivatives: ``grad``, ``grad_and_value`` and ``vjp`` become regions whose sub-graph is the function.

The functions of ``torch.func`` are traced into up to the ones handled here, which are found by name in modules that
the program has loaded: nothing is imported for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType

import torch

from dynamo_capture.foundation.break_kinds import TRANSFORM
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.declared import handles_loaded
from dynamo_capture.semantics.modes.settings import read
from dynamo_capture.semantics.random_numbers.drawing import outside_only
from dynamo_capture.semantics.regions.tracing import trace_body
from dynamo_capture.semantics.regions.transforms.body import TransformBody, open_transform
from dynamo_capture.semantics.regions.transforms.called_later import CalledLater
from dynamo_capture.values import Const, DictValue, TensorMeta, TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import form_of, leaves_of, mapped_leaves
from fx_interface.regions import gradient
from fx_interface.tensor_spec import is_differentiable
from fx_interface.torch_internals.torch_state import saved_tensors_are_watched


@handles_loaded("torch._functorch.eager_transforms", "grad_impl")
def grad(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    found, value = _grad_and_value(tx, args).unpack(tx)
    return TupleValue([found, value.unpack(tx)[1]]) if tx.truth(args[2]) else found


@handles_loaded("torch._functorch.eager_transforms", "grad_and_value_impl")
def grad_and_value(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return _grad_and_value(tx, args)


def _check_not_watched(tx: Context) -> None:
    """Torch refuses these where the program has hooks on saved tensors."""
    if read(tx, saved_tensors_are_watched):
        raise GraphBreak(TRANSFORM, "a function is differentiated where there are hooks on saved tensors")


def _grad_and_value(tx: Context, args: list[Value]) -> Value:
    _check_not_watched(tx)
    function, argnums, has_aux, given, keywords = args
    call = _Differentiated(tx, function, given.unpack(tx), argnums, dict(_keywords(tx, keywords)))
    result = call.run()
    aux: list[Value] = []
    if tx.truth(has_aux):
        result, more = without_aux(tx, result)
        aux = [more]
    if not isinstance(result, TensorValue) or result.meta.spec.sizes:
        raise GraphBreak(
            TRANSFORM, f"the gradient of {result.describe()} is asked for, which is no scalar tensor"
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
        self, tx: Context, function: Value, given: list[Value], argnums: Value, kwargs: dict[str, Value]
    ) -> None:
        self._tx = tx
        self._function = function
        self._given = [tx.force(value) for value in given]
        self._kwargs = kwargs
        numbers = tx.constant(argnums)
        self._numbers = list(numbers) if isinstance(numbers, (tuple, list)) else [numbers]
        self._is_single = isinstance(numbers, int)
        if not all(isinstance(number, int) for number in self._numbers):
            raise GraphBreak(TRANSFORM, f"argnums={numbers!r}")
        if any(not -len(given) <= number < len(given) for number in self._numbers) or not self._numbers:
            raise GraphBreak(TRANSFORM, f"argnums={numbers} of {len(given)} arguments")
        self.body = TransformBody(tx.output, f"the differentiated function ({function.describe()})")
        self.leaves = [
            leaf for number in self._numbers for leaf in leaves_of(tx, self._given[number], only=True)
        ]
        for leaf in self.leaves:
            if not is_differentiable(leaf.meta.spec.dtype):
                raise GraphBreak(TRANSFORM, f"a gradient with respect to {leaf.meta.spec} is asked for")

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
        found = open_transform(self._tx, gradient, self.body, [*self.leaves, *seeds], results, options)
        gradients = iter(found[: len(self.leaves)])
        formed = [
            mapped_leaves(self._tx, self._given[number], lambda _: next(gradients))
            for number in self._numbers
        ]
        return formed[0] if self._is_single else TupleValue(formed), found[len(self.leaves) :]


@handles_loaded("torch._functorch.eager_transforms", "_vjp_with_argnums")
def vjp(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    _check_not_watched(tx)
    if torch.is_inference_mode_enabled():
        raise GraphBreak(TRANSFORM, "vjp() is called in inference mode, which torch leaves for its function")
    function, *primals = args
    argnums = kwargs.get("argnums", Const(None))
    is_all = tx.is_constant(argnums) and tx.constant(argnums) is None
    numbers = Const(tuple(range(len(primals)))) if is_all else argnums
    has_aux = tx.truth(kwargs.get("has_aux", Const(False)))
    result, more = tx.force(function.call(tx, primals, {})), []
    if has_aux:
        result, aux = without_aux(tx, result)
        leaves_of(tx, aux, only=True)
        more = [aux]
    leaves = leaves_of(tx, result, only=True)
    if not leaves:
        raise GraphBreak(TRANSFORM, "vjp() of a function that returns no tensor")
    if not all(is_differentiable(leaf.meta.spec.dtype) for leaf in leaves):
        raise GraphBreak(TRANSFORM, "vjp() of a function that returns integers")
    later = CalledLater(tx, "vjp", [function, *primals, *leaves])
    return TupleValue([result, _Pullback(function, primals, numbers, has_aux, later), *more])


def without_aux(tx: Context, result: Value) -> tuple[Value, Value]:
    """The result and what else a function with ``has_aux`` returns."""
    result = tx.force(result)
    if not isinstance(result, TupleValue) or len(result.items) != 2:
        raise GraphBreak(TRANSFORM, "a function with has_aux=True does not return a pair")
    return tx.force(result.items[0]), tx.force(result.items[1])


class _Pullback(Value):
    """What ``vjp`` returns to be called with the gradients of the results: traces the function once more."""

    __slots__ = ("argnums", "function", "has_aux", "later", "primals")
    python_class = FunctionType

    def __init__(
        self, function: Value, primals: list[Value], argnums: Value, has_aux: bool, later: CalledLater
    ) -> None:
        self.has_aux = has_aux
        self.function = function
        self.primals = primals
        self.argnums = argnums
        self.later = later

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        self.later.check_unchanged(tx)
        call = _Differentiated(tx, self.function, self.primals, self.argnums, {})
        result = outside_only(tx, call.run, call.body.what)
        if self.has_aux:
            result, _ = without_aux(tx, result)
        if len(args) != 1 or kwargs:
            raise GraphBreak(
                TRANSFORM, "what vjp() returns is called with more than the gradients to pull back"
            )
        seeds, leaves = leaves_of(tx, args[0], only=True), leaves_of(tx, result, only=True)
        if form_of(tx, args[0]) != form_of(tx, result) or [s.meta.spec.sizes for s in seeds] != [
            leaf.meta.spec.sizes for leaf in leaves
        ]:
            raise GraphBreak(
                TRANSFORM, "the gradients that are pulled back are not formed as the results are"
            )
        if call.body.draws:
            raise GraphBreak(TRANSFORM, "vjp() of a function that draws random numbers")
        return call.differentiate(seeds, leaves)[0]


def _keywords(tx: Context, keywords: Value) -> Iterator[tuple[str, Value]]:
    assert isinstance(keywords, DictValue)
    for name, item in keywords.all_entries(tx).values():
        yield tx.constant(name), tx.force(item)
