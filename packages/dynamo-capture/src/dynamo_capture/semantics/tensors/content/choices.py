"""Choices that only data can make: ``max(x, y)`` and ``min(x, y)`` of tensors with one element.

    best = max(x, y); z = best * 2      ->      c = y > x; z = where(c, y, x) * 2

What is chosen is an object: only operations that read it, and give memory of their own, may compute with a copy of its
content. What writes to it, shows its memory or asks which object it is ends the graph, and the next one begins with the
object itself; so does what autograd follows, since the gradient goes to the one that is chosen, and to it alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from dynamo_capture.foundation.break_kinds import CONTENT_DECIDES
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values import Const, TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import items_of, mapped_leaves
from dynamo_capture.values.tensors.chosen import ChosenValue
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES

ATTRIBUTES = frozenset(
    {"shape", "dtype", "device", "ndim", "itemsize", "nbytes", "layout", "is_cuda", "is_cpu"}
)
"""Attributes of tensors that equal forms have in common."""
FACTS = frozenset(
    {
        "size", "dim", "ndimension", "numel", "nelement", "element_size", "is_floating_point", "is_complex", "item",
        "tolist", "__len__", "__bool__", "__int__", "__float__", "__index__",
    }
)  # fmt: skip
"""Methods that an operation's rules do not know as such, and that leave the tensor as it is."""
_BESIDE_NUMBERS = frozenset(
    f"{form}{name}{end}"
    for form, name, end in (
        *(("", name, end) for name in ("add", "sub", "mul", "truediv", "div") for end in ("", "_")),
        *(("i", name, "") for name in ("add", "sub", "mul", "truediv")),
        *(
            ("__", f"{way}{name}", "__")
            for name in ("add", "sub", "mul", "truediv")
            for way in ("", "r", "i")
        ),
        *(("", name, "") for name in ("lt", "le", "gt", "ge")),
    )
)
"""Operations that compute with a number as with a tensor without dimensions that holds it."""
_EXACT = {torch.float32: 24, torch.float64: 53}
"""The dtypes in which kernels compute as they store, and the bits of their significand."""


def is_open(value: Value) -> bool:
    """Whether it is a plain tensor of one element, of which the trace does not know the content."""
    if not isinstance(value, TensorValue) or value.content is not None or value.meta.cls is not torch.Tensor:
        return False
    return all(isinstance(size, int) and size == 1 for size in value.meta.spec.sizes)


def choose(tx: Context, condition: Value, yes: Value, no: Value) -> Value | None:
    """``yes if condition else no``; None where the condition's content decides in another way, or can be known."""
    if not isinstance(condition, TensorValue) or not is_open(condition) or tx.tensors.modes:
        return None
    if tx.output.is_transformed or tx.output.may_be_recorded or tx.tensors.followed.of(condition) is not None:
        return None
    if yes is no:
        return yes
    tx.tensors.chooses = True
    return ChosenValue(condition, yes, no)


def has_choice(tx: Context, values: Sequence[Value]) -> bool:
    """Whether a torch function that is called with these is called with a chosen object."""
    return any(isinstance(item, ChosenValue) for value in values for item in items_of(tx, value))


def with_contents(tx: Context, name: str, values: list[Value]) -> tuple[list[Value], list[TensorValue]]:
    """The arguments of the operation ``name``, with tensors in the place of chosen ones; these tensors."""
    if name == "set_":
        raise GraphBreak(CONTENT_DECIDES, "a tensor is set to another one: data choose to which")
    made: list[TensorValue] = []
    others = [one for value in values for one in items_of(tx, value) if isinstance(one, TensorValue)]

    def change(value: Value) -> Value:
        value = tx.force(value)
        if not isinstance(value, ChosenValue):
            return value if isinstance(value, TensorValue) else value.mapped(tx, change)
        made.append(content(tx, value, name, others))
        return made[-1]

    return [change(value) for value in values], made


def check_result(tx: Context, made: Sequence[TensorValue], result: Value) -> None:
    """A graph break where a result shows the memory of what stands for a chosen tensor."""

    def check(tensor: TensorValue) -> Value:
        if any(tensor.memory is one.memory for one in made):
            raise GraphBreak(CONTENT_DECIDES, "a view is taken: data choose of which object")
        return tensor

    mapped_leaves(tx, result, check)


def content(
    tx: Context, chosen: ChosenValue, name: str = "", others: Sequence[TensorValue] = ()
) -> TensorValue:
    """A tensor equal to the chosen one at this point, for the operation ``name`` with ``others``."""
    candidates = list(chosen.candidates())
    tensors = [value for value in candidates if isinstance(value, TensorValue)]
    numbers = [value for value in candidates if isinstance(value, Const) and not value.is_open]
    if not tensors or len(tensors) + len(numbers) < len(candidates):
        raise chosen.unknown("an operation")
    first = tensors[0].meta.spec
    for tensor in tensors:
        if type(tensor) is not TensorValue or tensor.meta.cls not in PLAIN_CLASSES or tx.tensors.modes:
            raise chosen.unknown("an operation on a tensor of a class, or beside a mode")
        if tensor.meta.spec != first:
            raise chosen.unknown("an operation on tensors of different forms")
        if tensor.meta.requires_grad and torch.is_grad_enabled():
            raise chosen.unknown("an operation that autograd follows")
    if numbers and not all(
        _is_as_a_tensor(number.value, tensors[0], name, [*tensors, *others]) for number in numbers
    ):
        raise chosen.unknown("an operation on a tensor or a number")
    found = _joined(tx, chosen)
    assert isinstance(found, TensorValue)
    if found.meta.spec != first:
        raise chosen.unknown("an operation on tensors in an unusual order")
    return found


def _is_as_a_tensor(number: object, tensor: TensorValue, name: str, others: Sequence[TensorValue]) -> bool:
    """Whether an operation computes with a number as with ``tensor``, which has no dimensions, if that held it."""
    spec = tensor.meta.spec
    if spec.sizes or spec.dtype not in _EXACT or spec.device.type != "cpu" or name not in _BESIDE_NUMBERS:
        return False
    if any(other.meta.spec.dtype != spec.dtype or other.meta.spec.device != spec.device for other in others):
        return False
    if type(number) is int:
        return abs(number) < 1 << _EXACT[spec.dtype]
    return type(number) is float


def _joined(tx: Context, value: Value) -> Value:
    """What ``torch.where`` makes of the candidates."""
    if not isinstance(value, ChosenValue):
        return value
    sides = [_joined(tx, side) for side in (value.yes, value.no)]
    condition: Value = value.condition
    if value.condition.meta.spec.dtype is not torch.bool:
        condition = tx.tensors.call_function(torch.ne, [condition, Const(0)], {})
    if value.condition.meta.spec.sizes:
        condition = condition.call_method(tx, "reshape", [TupleValue([])], {})
    if all(isinstance(side, Const) for side in sides):
        raise value.unknown("an operation on numbers")
    return tx.tensors.call_function(torch.where, [condition, *sides], {})
