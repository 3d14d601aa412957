"""Choices that only data can make: ``max(x, y)`` and ``min(x, y)`` of tensors with one element.

    best = max(x, y); z = best * 2      ->      c = y > x; z = where(c, y, x) * 2

What is chosen is an object: only operations that read it, and give memory of their own, may compute with a copy of its
content. What writes to it, shows its memory or asks which object it is ends the graph, and the next one begins with the
object itself. What autograd follows is computed for each candidate (``for_each``), since the gradient goes to the one
that is chosen, and to it alone; where it is not one of a few pure operations, that ends the graph, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from dynamo_capture.foundation.break_kinds import CONTENT_DECIDES
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.values import Const, TensorValue, TupleValue, Value, one_tensor
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import items_of, mapped_leaves
from dynamo_capture.values.tensors.chosen import ChosenValue
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES
from fx_interface.tensor_spec import TensorSpec

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
_ARITHMETIC = ("add", "sub", "mul", "truediv", "div")
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
_ANSWERS = frozenset(
    form.format(name) for name in ("lt", "le", "gt", "ge", "eq", "ne") for form in ("{}", "__{}__")
)
"""Operations whose results have no history."""
_PURE = frozenset(
    {
        *("add", "sub", "mul", "truediv", "div", "pow", "neg", "abs", "exp", "log", "sqrt", "square", "tanh"),
        *("sigmoid", "relu", "clamp", "mean", "sum", "__radd__", "__rsub__", "__rmul__", "__rtruediv__"),
    }
)
"""Operations that change nothing and give memory of their own."""
_FILLING = frozenset({"copy_", *(f"{name}_" for name in _ARITHMETIC), *(f"i{name}" for name in _ARITHMETIC)})
"""Operations that write to their first operand, element by element."""
_MOST_CANDIDATES = 8
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


def for_each(
    tx: Context, name: str, values: list[Value], run: Callable[[list[Value]], Value]
) -> Value | None:
    """An operation that autograd follows on each object of which data choose one of its arguments; None where it is
    not so, or not to be done."""
    chosen = next((value for value in values if isinstance(value, ChosenValue)), None)
    if chosen is None or name not in _PURE or not torch.is_grad_enabled():
        return None
    others = [value for value in values if value is not chosen]
    candidates = list(chosen.candidates())
    if len(candidates) > _MOST_CANDIDATES or has_choice(tx, others) or not any(map(_is_followed, candidates)):
        return None
    if not all(isinstance(value, TensorValue) for value in candidates):
        return None

    def over(one: Value) -> Value:
        if isinstance(one, ChosenValue):
            return ChosenValue(one.condition, over(one.yes), over(one.no))
        return run([one if value is chosen else value for value in values])

    return over(chosen)


def _is_followed(value: Value) -> bool:
    return isinstance(value, TensorValue) and value.meta.requires_grad


def or_number(
    tx: Context, made: Value, operands: Sequence[Value], of_numbers: Callable[[list[Value]], Value]
) -> Value:
    """``made``, computed of what data choose and of numbers; what Python makes of numbers where they choose those."""
    if any(isinstance(operand, TensorValue) for operand in operands):
        return made
    answers = [_is_tensor(tx, operand) for operand in operands]
    if True in answers:
        return made
    numbers = [_numbers(operand) for operand in operands]
    try:
        number = _of_each(of_numbers, [], [one for one in numbers if one is not None])
    except UserRaise:
        raise GraphBreak(CONTENT_DECIDES, "an operation on a number raises: data choose it") from None
    conditions = [answer for answer in answers if isinstance(answer, TensorValue)]
    either = conditions[0]
    for condition in conditions[1:]:
        either = one_tensor(tx.tensors.call_function(torch.logical_or, [either, condition], {}))
    return ChosenValue(either, made, number)


def _numbers(value: Value) -> Value | None:
    """The number that a value is where it is no tensor; None where it is always one."""
    if not isinstance(value, ChosenValue):
        return None if isinstance(value, TensorValue) else value
    yes, no = _numbers(value.yes), _numbers(value.no)
    if yes is None or no is None:
        return no if yes is None else yes
    return ChosenValue(value.condition, yes, no)


def _of_each(run: Callable[[list[Value]], Value], known: list[Value], numbers: Sequence[Value]) -> Value:
    """What ``run`` gives for numbers of which data choose some."""
    if not numbers:
        return run(known)
    first, *others = numbers
    if not isinstance(first, ChosenValue):
        return _of_each(run, [*known, first], others)
    if sum(1 for _ in first.candidates()) > _MOST_CANDIDATES:
        raise first.unknown("an operation on numbers")
    yes, no = (_of_each(run, known, [side, *others]) for side in (first.yes, first.no))
    return ChosenValue(first.condition, yes, no)


def _is_tensor(tx: Context, value: Value) -> bool | TensorValue:
    """Whether a value is a tensor, or the tensor that answers that."""
    if not isinstance(value, ChosenValue):
        return isinstance(value, TensorValue)
    yes, no = _is_tensor(tx, value.yes), _is_tensor(tx, value.no)
    if isinstance(yes, bool) and isinstance(no, bool):
        return yes if yes is no else _truth(tx, value.condition, negated=no)
    sides = [side if isinstance(side, TensorValue) else Const(side) for side in (yes, no)]
    condition = _truth(tx, value.condition)
    return one_tensor(tx.tensors.call_function(torch.where, [condition, *sides], {}))


def _truth(tx: Context, condition: TensorValue, negated: bool = False) -> TensorValue:
    """The truth of a tensor with one element, without dimensions."""
    found: Value = condition
    if condition.meta.spec.dtype is not torch.bool or negated:
        compare = torch.eq if negated else torch.ne
        found = tx.tensors.call_function(compare, [condition, Const(0)], {})
    if condition.meta.spec.sizes:
        found = found.call_method(tx, "reshape", [TupleValue([])], {})
    return one_tensor(found)


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
        made.append(content(tx, value, name, others, is_owner=value is values[0]))
        return made[-1]

    return [change(value) for value in values], made


def check_result(tx: Context, made: Sequence[TensorValue], result: Value) -> None:
    """A graph break where a result shows the memory of what stands for a chosen tensor."""

    def check(tensor: TensorValue) -> Value:
        if any(tensor.memory is one.memory for one in made):
            raise GraphBreak(CONTENT_DECIDES, "a view is taken: data choose of which object")
        return tensor

    mapped_leaves(tx, result, check)


def of_each(tx: Context, name: str, values: list[Value], run: Callable[[list[Value]], Value]) -> Value | None:
    """What an operation gives that autograd does not follow, of each object of which data choose one of its arguments,
    and of those what is chosen; None where one tensor stands for all (``content``), or it is not so."""
    chosen = next((value for value in values if isinstance(value, ChosenValue)), None)
    if (
        chosen is None
        or name not in _PURE | _ANSWERS
        or has_choice(tx, [v for v in values if v is not chosen])
    ):
        return None
    candidates = list(chosen.candidates())
    others = [one for value in values for one in items_of(tx, value) if isinstance(one, TensorValue)]
    if len(candidates) > _MOST_CANDIDATES or not all(map(_is_operand, candidates)):
        return None
    is_followed = (
        torch.is_grad_enabled() and name not in _ANSWERS and any(map(_is_followed, [*candidates, *others]))
    )
    if is_followed or tx.tensors.modes or _one_stands_for_all(candidates, name, others, is_owner=False):
        return None

    def over(one: Value) -> TensorValue:
        if not isinstance(one, ChosenValue):
            return one_tensor(run([one if value is chosen else value for value in values]))
        sides = [over(one.yes), over(one.no)]
        is_known = sides[0].meta.spec.dtype.is_floating_point or name in _ANSWERS
        if sides[0].meta != sides[1].meta or sides[0].meta.cls is not torch.Tensor or not is_known:
            raise chosen.unknown("an operation on tensors of different forms")
        made = one_tensor(tx.tensors.call_function(torch.where, [_truth(tx, one.condition), *sides], {}))
        if made.meta != sides[0].meta:
            raise chosen.unknown("an operation on tensors in an unusual order")
        return made

    try:
        return over(chosen)
    except UserRaise:
        raise chosen.unknown("an operation that raises") from None


def _is_operand(value: Value) -> bool:
    """Whether it is a plain tensor, or a known number."""
    if type(value) is TensorValue:
        return value.meta.cls in PLAIN_CLASSES
    return isinstance(value, Const) and not value.is_open and type(value.value) in (int, float)


def content(
    tx: Context,
    chosen: ChosenValue,
    name: str = "",
    others: Sequence[TensorValue] = (),
    is_owner: bool = True,
) -> TensorValue:
    """A tensor equal to the chosen one at this point, for the operation ``name`` with ``others``. ``is_owner``: it may
    be what the operation writes to."""
    candidates = list(chosen.candidates())
    tensors = [value for value in candidates if isinstance(value, TensorValue)]
    numbers = [value for value in candidates if isinstance(value, Const) and not value.is_open]
    if not tensors or len(tensors) + len(numbers) < len(candidates):
        raise chosen.unknown("an operation")
    for tensor in tensors:
        if type(tensor) is not TensorValue or tensor.meta.cls not in PLAIN_CLASSES or tx.tensors.modes:
            raise chosen.unknown("an operation on a tensor of a class, or beside a mode")
        if tensor.meta.requires_grad and torch.is_grad_enabled() and name not in _ANSWERS:
            raise chosen.unknown("an operation that autograd follows")
    if not _one_stands_for_all(tensors, name, others, is_owner):
        raise chosen.unknown("an operation on tensors of different forms")
    if not _one_stands_for_all(candidates, name, others, is_owner):
        raise chosen.unknown("an operation on a tensor or a number")
    first = tensors[0].meta.spec
    found = _joined(tx, chosen, first)
    assert isinstance(found, TensorValue)
    if found.meta.spec != first and (is_owner or name not in _FILLING):
        raise chosen.unknown("an operation on tensors in an unusual order")
    return found


def _one_stands_for_all(
    candidates: Sequence[Value], name: str, others: Sequence[TensorValue], is_owner: bool
) -> bool:
    """Whether an operation with ``others`` computes with a tensor as with each of these that it is equal to."""
    tensors = [value for value in candidates if isinstance(value, TensorValue)]
    if not tensors:
        return False
    specs = [tensor.meta.spec for tensor in tensors]
    fills = not is_owner and _fills(name, specs, others)
    if any(spec != specs[0] for spec in specs) and not fills:
        return False
    numbers = [value.as_constant() for value in candidates if not isinstance(value, TensorValue)]
    return all(_is_as_a_tensor(number, specs, name, others, fills) for number in numbers)


def _fills(name: str, specs: Sequence[TensorSpec], others: Sequence[TensorValue]) -> bool:
    """Whether an operation writes one number to each element of the first of the others, all of one dtype: which of
    these forms the number has does not count."""
    if name not in _FILLING or not others:
        return False
    written = others[0].meta.spec
    found = [(spec.dtype, spec.device) for spec in (*specs, *(other.meta.spec for other in others))]
    are_numbers = all(size == 1 for spec in specs for size in spec.sizes)
    return len(set(found)) == 1 and are_numbers and all(spec.rank <= written.rank for spec in specs)


def _is_as_a_tensor(
    number: object, specs: Sequence[TensorSpec], name: str, others: Sequence[TensorValue], fills: bool
) -> bool:
    """Whether an operation computes with a number as with a tensor of these forms that holds it."""
    spec = specs[0]
    if spec.dtype not in _EXACT or spec.device.type != "cpu" or name not in _BESIDE_NUMBERS:
        return False
    if any(one.sizes for one in specs) and not fills:
        return False
    operands = (*specs, *(other.meta.spec for other in others))
    if any(one.dtype != spec.dtype or one.device != spec.device for one in operands):
        return False
    if type(number) is int:
        return abs(number) < 1 << _EXACT[spec.dtype]
    return type(number) is float


def _joined(tx: Context, value: Value, spec: TensorSpec) -> Value:
    """What ``torch.where`` makes of the candidates: a tensor of this form, or a number."""
    if not isinstance(value, ChosenValue):
        return value
    sides = [_joined(tx, side, spec) for side in (value.yes, value.no)]
    condition = _truth(tx, value.condition)
    if all(isinstance(side, Const) for side in sides):
        options: dict[str, Value] = {"dtype": Const(spec.dtype), "device": Const(spec.device)}
        sides[0] = tx.tensors.call_function(torch.full, [Const(()), sides[0]], options)
    return tx.tensors.call_function(torch.where, [condition, *sides], {})
