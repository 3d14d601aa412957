"""Matrix products on a GPU whose operands are padded, so that its matrix units are used.

Of 16-bit operands the library's kernels for matrix units read and write 16 bytes at once. A dimension along which an
operand or the result runs through memory must therefore be a multiple of eight elements: rows that merely start at such
multiples are not enough. A vocabulary of 50,257 costs eight times the product of 50,264.

    mm(x[4096, 768], w[768, 50257])  ->  slice(mm(x, pad(w)[768, 50264]))[4096, 50257]

On one H100 (torch 2.11, bfloat16), us without and with padding; w is a transposed parameter, g the result's gradient:

    x[4096, 768] w[768, 50257]   3360   450      x[4096, 1024] w[1024, 1001]   92   19
    g w.t()                      2510   409                                    72   18
    g.t() x                      2207   449                                    79   23
    x[4096, 333] w[333, 1024]      34    13      x[64, 768] w[768, 1001]       14    8

Float32 gains nothing (it uses no matrix units unless the user asks for less precision).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch._ops import OpOverload

from fx_interface.errors import UserLocation
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from inductor_codegen.lower.storage import Values, seen_through
from inductor_codegen.lower.values import Formula, Operand, Pad, Value
from inductor_codegen.lower.views import Layout, Permute, Sizes, Slice, is_one

aten = torch.ops.aten

FACTORS: dict[OpOverload, int] = {
    aten.mm.default: 0,
    aten.bmm.default: 0,
    aten.addmm.default: 1,
    aten.baddbmm.default: 1,
}
"""The products, and where the first factor stands among the arguments: behind what is added."""

UNIT = 8
"""Elements of 16 bits that are read and written at once."""
_SPEED = {1: 90e12, 2: 180e12, 4: 300e12, UNIT: 600e12}
"""Operations a second, by the largest power of two that divides all of the dimensions that count."""
_BANDWIDTH = 2.5e12
_LAUNCH = 4e-6
"""Bytes a second of a copy, and the seconds that one more kernel takes in any case."""
_GAIN = 2.0
"""By how much the product must gain more than the copies cost."""
_NOMINAL = 1024
"""What a dimension of unknown size counts as."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor of a product as it lies in memory: ``along`` is the dimension that runs through memory, from the end (-1
    or -2); ``computed``: it is not in memory yet, so that padding it costs nothing."""

    sizes: Sizes
    along: int
    dtype: torch.dtype
    device: torch.device
    computed: bool = False


@dataclass(frozen=True, slots=True)
class Padding:
    """The sizes that rows and columns of the result, and the dimension between the factors, are padded to."""

    rows: IntLike
    between: IntLike
    columns: IntLike


def padding(left: Factor, right: Factor) -> Padding | None:
    """What to pad of a product, None where nothing is to be gained."""
    if left.device.type != "cuda" or left.dtype not in (torch.float16, torch.bfloat16):
        return None
    rows, between, columns = left.sizes[-2], left.sizes[-1], right.sizes[-1]
    counted = {
        "rows": rows if left.along == -2 else UNIT,
        "between": between if left.along == -1 or right.along == -2 else UNIT,
        "columns": columns,
    }
    if any(not isinstance(size, int) or size == 0 for size in counted.values()):
        return None
    made = Padding(
        *(
            _rounded(size) if counted[name] is size else size
            for name, size in (("rows", rows), ("between", between), ("columns", columns))
        )
    )
    if made == Padding(rows, between, columns):
        return None
    slow = _SPEED[min(_power_of_two_in(size) for size in counted.values() if isinstance(size, int))]
    work = 2.0 * _count((*left.sizes, columns))
    gain = work / slow - work / _SPEED[UNIT]
    return made if gain > _GAIN * _cost(left, right, made) else None


def _cost(left: Factor, right: Factor, made: Padding) -> float:
    """Seconds that copies take: of factors that lie in memory unpadded, and of the result without its padding."""
    rows, between, columns = left.sizes[-2], left.sizes[-1], right.sizes[-1]
    copied: list[Sizes] = []
    if (made.rows, made.between) != (rows, between) and not left.computed:
        copied.append(left.sizes)
    if (made.between, made.columns) != (between, columns) and not right.computed:
        copied.append(right.sizes)
    if (made.rows, made.columns) != (rows, columns):
        copied.append((*left.sizes[:-1], columns))
    return sum(_LAUNCH + 2 * left.dtype.itemsize * _count(sizes) / _BANDWIDTH for sizes in copied)


def _count(sizes: Sequence[IntLike]) -> float:
    total = 1.0
    for size in sizes:
        total *= size if isinstance(size, int) else _NOMINAL
    return total


def _rounded(size: IntLike) -> IntLike:
    return -(-size // UNIT) * UNIT if isinstance(size, int) else size


def _power_of_two_in(size: int) -> int:
    return min(size & -size, UNIT)


@dataclass(frozen=True, slots=True)
class PaddedResult:
    """The sizes of a padded product, and the ``view`` of it that is the product."""

    operand_sizes: Sizes
    view: Slice


class PaddedProducts:
    """Pads the arguments of products, each operand once for all products that want it so."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._made: dict[tuple[Operand, Sizes], Operand] = {}

    def padded(
        self, op: OpOverload, args: Sequence[object], where: UserLocation | None
    ) -> tuple[list[object], PaddedResult] | None:
        """Other arguments for the product, and what its result is then; None if the call is to stay as it is."""
        first = FACTORS.get(op)
        if first is None or len(args) < first + 2:
            return None
        left, right = args[first], args[first + 1]
        if not isinstance(left, Operand) or not isinstance(right, Operand):
            return None
        found = padding(self._factor(left), self._factor(right))
        if found is None:
            return None
        batch, result = left.sizes[:-2], (*left.sizes[:-1], right.sizes[-1])
        changed = list(args)
        changed[first] = self._operand(left, (*batch, found.rows, found.between), where)
        changed[first + 1] = self._operand(right, (*batch, found.between, found.columns), where)
        sizes = (*batch, found.rows, found.columns)
        if first and isinstance(added := args[0], Operand):
            wanted = sizes[len(sizes) - len(added.sizes) :]
            kept = tuple(n if is_one(n) else m for n, m in zip(added.sizes, wanted, strict=True))
            changed[0] = self._operand(added, kept, where)
        nothing, steps = (0,) * len(sizes), (1,) * len(sizes)
        return changed, PaddedResult(sizes, Slice(nothing, steps, result))

    def _factor(self, operand: Operand) -> Factor:
        source = self._values.result.values[operand.source]
        layout = self._values.layout_of(operand)
        along = -2 if layout is not None and _runs_down(layout) else -1
        computed = source.formula is not None or layout is None
        return Factor(operand.sizes, along, operand.dtype, source.device, computed)

    def _operand(self, operand: Operand, sizes: Sizes, where: UserLocation | None) -> Operand:
        """The operand with zeros behind its elements, laid out as it is."""
        if sizes == operand.sizes:
            return operand
        turn = operand.views[-1] if operand.views else None
        if isinstance(turn, Permute):  # pad what is turned, so that both ways of looking at it share one copy
            before = _unturned(operand.sizes, turn), _unturned(sizes, turn)
            base = Operand(operand.source, operand.views[:-1], before[0], operand.dtype)
            return seen_through(self._operand(base, before[1], where), Permute(turn.dims, sizes))
        found = self._made.get((operand, sizes))
        if found is None:
            value = self._pad(operand, sizes, where)
            found = self._made[operand, sizes] = Operand(value.number, (), value.sizes, value.dtype)
        return found

    def _pad(self, operand: Operand, sizes: Sizes, where: UserLocation | None) -> Value:
        source = self._values.result.values[operand.source]
        formula: Formula = Pad(operand, (0,) * len(sizes), 0.0)
        layout = self._values.layout_of(operand)
        strides = contiguous_strides(sizes)
        if layout is not None and len(sizes) > 1 and _runs_down(layout):
            turned = contiguous_strides((*sizes[:-2], sizes[-1], sizes[-2]))
            strides = (*turned[:-2], turned[-1], turned[-2])
        spec = TensorSpec(sizes, strides, operand.dtype, source.device)
        return self._values.add_value(f"{source.name}_padded", spec, formula, where or source.where)


def _runs_down(layout: Layout) -> bool:
    """Whether a matrix runs through memory along its columns."""
    return is_one(layout.strides[-2]) and not is_one(layout.strides[-1])


def _unturned(sizes: Sizes, turn: Permute) -> Sizes:
    """The sizes below a permutation."""
    found: list[IntLike] = [0] * len(sizes)
    for axis, dim in enumerate(turn.dims):
        found[dim] = sizes[axis]
    return tuple(found)
