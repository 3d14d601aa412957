"""Derivatives in forward direction: ``jvp`` (and with it ``jacfwd`` and ``hessian``) and ``linearize``."""

from __future__ import annotations

from types import FunctionType

from dynamo_capture.foundation.break_kinds import TRANSFORM
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.declared import handles_loaded
from dynamo_capture.semantics.random_numbers.drawing import outside_only
from dynamo_capture.semantics.regions.tracing import trace_body
from dynamo_capture.semantics.regions.transforms.body import TransformBody, open_transform
from dynamo_capture.semantics.regions.transforms.called_later import CalledLater
from dynamo_capture.semantics.regions.transforms.reverse import without_aux
from dynamo_capture.values import Const, TensorMeta, TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import form_of, leaves_of, mapped_leaves
from fx_interface.regions import pushed
from fx_interface.symbols import IntLike, Relation, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, is_differentiable


@handles_loaded("torch._functorch.eager_transforms", "_jvp_with_argnums")
def jvp(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    function, primals, tangents, *rest = args
    argnums = tx.force(rest[0] if rest else kwargs.get("argnums", Const(None)))
    if tx.truth(kwargs.get("strict", Const(False))):
        raise GraphBreak(TRANSFORM, "jvp() with strict=True, which looks at what each result depends on")
    has_aux = tx.truth(kwargs.get("has_aux", Const(False)))
    if not all(isinstance(tx.force(value), TupleValue) for value in (primals, tangents)):
        raise GraphBreak(TRANSFORM, "jvp() of what is no tuple of arguments, or of tangents")
    found = _push(tx, function, primals.unpack(tx), argnums, tangents, has_aux)
    return TupleValue(list(found))


def _push(
    tx: Context, function: Value, primals: list[Value], argnums: Value, tangents: Value, has_aux: bool
) -> tuple[Value, ...]:
    """The function's result, how it changes, and with ``has_aux`` what else it returns."""
    numbers = _numbers(tx, argnums, len(primals))
    changing: Value = TupleValue([primals[number] for number in numbers])
    if form_of(tx, changing)[1:] != form_of(tx, tangents)[1:]:
        raise GraphBreak(TRANSFORM, "the tangents of jvp() are not formed as what they belong to")
    leaves, changes = leaves_of(tx, changing, only=True), leaves_of(tx, tangents, only=True)
    body = TransformBody(tx.output, f"the differentiated function ({function.describe()})")
    body.own_rule = "jvp"

    def inside(leaf: TensorValue) -> TensorValue:
        if not is_differentiable(leaf.meta.spec.dtype):
            raise GraphBreak(TRANSFORM, f"a derivative with respect to {leaf.meta.spec} is asked for")
        if _may_share_elements(leaf.meta.spec, tx.env):
            raise GraphBreak(TRANSFORM, "a derivative with respect to a tensor whose elements share memory")
        requires_grad = leaf.meta.requires_grad
        return body.argument("primal", TensorMeta.of(leaf.meta.spec, requires_grad, not requires_grad))

    given = list(primals)
    for number in numbers:
        given[number] = mapped_leaves(tx, primals[number], inside)
    result = trace_body(
        tx, body, lambda: tx.force(function.call(tx, given, {})), pure=True, passed=[function, *primals]
    )
    result, aux = without_aux(tx, result) if has_aux else (result, TupleValue([]))
    results, more = leaves_of(tx, result, only=True), leaves_of(tx, aux, only=True)
    options = {"wrt": len(leaves), "results": len(results)}
    found = iter(open_transform(tx, pushed, body, [*leaves, *changes], [*results, *more], options))
    moved = mapped_leaves(tx, result, lambda _: next(found))
    value = mapped_leaves(tx, result, lambda _: next(found))
    return (value, moved, mapped_leaves(tx, aux, lambda _: next(found))) if has_aux else (value, moved)


def _may_share_elements(spec: TensorSpec, env: ShapeEnv) -> bool:
    """Whether elements may lie at one place in memory: torch copies the change of such a tensor into its layout, which
    it refuses, or where the last of them wins."""
    if spec.is_contiguous:
        return False
    behind: IntLike = 1
    axes = [
        axis for axis in zip(spec.strides, spec.sizes, strict=True) if env.decide(Relation("!=", axis[1], 1))
    ]
    for stride, size in sorted(axes, key=lambda axis: env.hint(axis[0])):
        if not env.decide(Relation("<=", behind, stride)):
            return True
        behind = behind + (size - 1) * stride
    return False


def _numbers(tx: Context, argnums: Value, count: int) -> list[int]:
    """The positions of the arguments that change; all of them by default."""
    numbers = tx.constant(argnums)
    if numbers is None:
        return list(range(count))
    chosen = [numbers] if isinstance(numbers, int) else list(numbers)
    if not chosen or any(not -count <= number < count for number in chosen):
        raise GraphBreak(TRANSFORM, f"argnums={numbers} of {count} arguments")
    return [number % count for number in chosen]


@handles_loaded("torch._functorch.eager_transforms", "linearize")
def linearize(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Torch computes what depends on the primals alone once, without a history: what autograd follows runs there."""
    function, *primals = args
    result = function.call(tx, primals, {})
    followed = [*leaves_of(tx, TupleValue(primals)), *leaves_of(tx, result)]
    if any(leaf.meta.requires_grad for leaf in followed):
        raise GraphBreak(TRANSFORM, "linearize() of a function that autograd follows")
    later = CalledLater(tx, "linearize", [function, *primals, *leaves_of(tx, result)])
    return TupleValue([result, _Pushforward(function, primals, later)])


class _Pushforward(Value):
    """What ``linearize`` returns to be called with changes of the arguments: traces the function once more."""

    __slots__ = ("function", "later", "primals")
    python_class = FunctionType

    def __init__(self, function: Value, primals: list[Value], later: CalledLater) -> None:
        self.function = function
        self.primals = primals
        self.later = later

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        self.later.check_unchanged(tx)
        dtypes = [
            [leaf.meta.spec.dtype for leaf in leaves_of(tx, TupleValue(list(given)))]
            for given in (self.primals, args)
        ]
        if dtypes[0] != dtypes[1]:
            raise GraphBreak(TRANSFORM, "what linearize() returned is called with tensors of other dtypes")

        def push() -> Value:
            return _push(tx, self.function, self.primals, Const(None), TupleValue(args), False)[1]

        return outside_only(tx, push, "the differentiated function")
