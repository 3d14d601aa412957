"""Evaluation: the formulas of a group's values, written down as scalars at symbolic loop points
(define-by-run).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch

from fx_interface.symbols import IntLike, ShapeEnv
from inductor_codegen.ir.index import Index, Loaded, LoopVar, as_index, at_least, flatten
from inductor_codegen.ir.kernel import Accumulate
from inductor_codegen.ir.scalar import Apply, Constant, Guard, Scalar, ScalarBuilder, Total
from inductor_codegen.ir.traverse import postorder
from inductor_codegen.lower.values import (
    Argument,
    Cat,
    Depthwise,
    Fill,
    Gather,
    Iota,
    Lowered,
    Number,
    Operand,
    Pad,
    Pointwise,
    Reduction,
    RuntimeFloat,
    Value,
)
from inductor_codegen.schedule.kernels.points import Point
from inductor_codegen.schedule.kernels.positions import folded, place_in
from inductor_codegen.schedule.kernels.windows import Tap, tap_of_loop, taps


class Evaluator:
    """Writes values as scalars. Values in ``computed`` are expanded, all others are loaded from their
    buffers.
    """

    def __init__(self, lowered: Lowered, env: ShapeEnv, builder: ScalarBuilder, computed: set[int]) -> None:
        self._lowered = lowered
        self._env = env
        self._make = builder
        self._computed = computed
        self._memo: dict[tuple[int, Point], Scalar] = {}
        self._totals: dict[int, Scalar] = {}
        self.accumulations: list[Accumulate] = []
        self.tap_loop: LoopVar | None = None
        """The loop over the rows of a window, where these are not written out."""

    def known(self, number: int, point: Point, scalar: Scalar) -> None:
        """Take ``scalar`` for the element of a value at ``point``."""
        self._memo[number, point] = scalar

    def value(self, number: int, point: Point) -> Scalar:
        """The element of a value at ``point``, one index for each of its dimensions."""
        key = (number, point)
        found = self._memo.get(key) or self._totals.get(number)
        if found is None:
            value = self._lowered.values[number]
            if number in self._computed:
                found = self._formula(value, point)
            else:
                found = self._make.load(value.name, value.layout.address(point), value.dtype)
            self._memo[key] = found
        return found

    def reduction(self, value: Value, full: Point) -> Scalar:
        """The total of a reduction of this group, whose operand is read at ``full``.

        From then on ``value`` gives it for any index: the group has it only where all its readers stand on
        its own row.
        """
        formula = value.formula
        assert isinstance(formula, Reduction)
        kind = formula.kind
        position = None
        if kind in ("argmax", "argmin"):
            dims = formula.dims
            position = flatten([full[dim] for dim in dims], [formula.operand.sizes[dim] for dim in dims])
        scalar = self._operand(formula.operand, full)
        if kind in ("any", "all"):
            scalar = self._make.convert(scalar, torch.bool)
        accumulator = len(self.accumulations)
        self.accumulations.append(Accumulate(accumulator, kind, scalar, value.dtype, position))
        total = self._make.total(accumulator, value.dtype)
        self._totals[value.number] = total
        return total

    def _operand(self, operand: Operand, point: Point) -> Scalar:
        for view in reversed(operand.views):
            point = view.map(point, self._env)
        return self.value(operand.source, point)

    def _argument(self, arg: Argument, point: Point, dtype: torch.dtype) -> Scalar:
        match arg:
            case Operand():
                return self._make.convert(self._operand(arg, point), dtype)
            case Number(value):
                if isinstance(value, bool | int | float):
                    return self._make.constant(value, dtype)
                return self._make.convert(self._make.index_value(Index(value), torch.int64), dtype)
            case RuntimeFloat(name):
                return self._make.float_value(name, dtype)

    def _formula(self, value: Value, point: Point) -> Scalar:
        match value.formula:
            case Pointwise(op, args, compute):
                return self._pointwise(value, op, args, compute, point)
            case Fill(number):
                return self._argument(number, point, value.dtype)
            case Iota(start, step):
                return self._make.index_value(point[0] * step + start, value.dtype)
            case Pad() as pad:
                return self._pad(pad, value, point)
            case Cat() as cat:
                return self._cat(cat, value, point)
            case Gather() as gather:
                return self._gather(gather, point)
            case Depthwise() as depthwise:
                return self._depthwise(depthwise, value, point)
        raise AssertionError(f"value {value.name} is read where its reduction does not stand")

    def _pointwise(
        self, value: Value, op: str, args: tuple[Argument, ...], compute: torch.dtype, point: Point
    ) -> Scalar:
        make = self._make
        if op == "where":
            condition = self._argument(args[0], point, torch.bool)
            branches = (self._argument(arg, point, compute) for arg in args[1:])
            return make.apply(op, (condition, *branches), value.dtype)
        scalars = tuple(self._argument(arg, point, compute) for arg in args)
        if op in ("clone", "convert_dtype"):
            return scalars[0]
        if op == "div" and self._is_share(*scalars):
            return make.apply(
                "mul", (scalars[0], make.apply("reciprocal", (scalars[1],), value.dtype)), value.dtype
            )
        if op == "pow" and isinstance(args[1], Operand):
            root = self._root_of_pow(*scalars)
            if root is not None:
                return root
        found = folded(op, scalars, make, self._env)
        return make.apply(op, scalars, value.dtype) if found is None or found.dtype != value.dtype else found

    def _root_of_pow(self, base: Scalar, exponent: Scalar) -> Scalar | None:
        """The exponent is a tensor that holds nothing but 0.5 or -0.5. Of such a number torch makes a square root, but
        a power of -0.0 or of the negative infinity is another."""
        if not isinstance(exponent, Constant) or abs(exponent.value) != 0.5:
            return None
        make, dtype = self._make, base.dtype
        positive = make.apply("add", (make.apply("sqrt", (base,), dtype), make.constant(0.0, dtype)), dtype)
        infinite = make.apply("isinf", (base,), torch.bool)
        root = make.apply("where", (infinite, make.constant(math.inf, dtype), positive), dtype)
        return root if exponent.value > 0 else make.apply("reciprocal", (root,), dtype)

    def _is_share(self, part: Scalar, total: Scalar) -> bool:
        """Whether this is a softmax's last step, exp(x) / sum(exp(x)): one reciprocal a row serves as well.

        The total is zero or no smaller than the least normal number, so its reciprocal is finite.
        """
        if not isinstance(total, Total) or not isinstance(part, Apply) or part.op != "exp":
            return False
        summed = self.accumulations[total.accumulator]
        return summed.kind == "sum" and summed.value is part and part.dtype == torch.float32

    def _pad(self, pad: Pad, value: Value, point: Point) -> Scalar:
        guards: list[Guard] = []
        inside: list[Index] = []
        for index, low, have, total in zip(point, pad.low, pad.operand.sizes, value.sizes, strict=True):
            moved = index - Index(low)
            if have != total:
                before = None if isinstance(low, int) and low == 0 else 0
                after = None if low + have == total else have
                guards.append(Guard(moved, before, after))
            inside.append(moved)
        body = self._operand(pad.operand, tuple(inside))
        return self._make.guarded(tuple(guards), body, self._make.constant(pad.value, value.dtype))

    def _cat(self, cat: Cat, value: Value, point: Point) -> Scalar:
        """The part that the point lies in; where no part has elements, a sum over them has no points either."""
        parts = [
            (operand, start)
            for operand, start in zip(cat.operands, cat.starts, strict=True)
            if not any(isinstance(size, int) and size == 0 for size in operand.sizes)
        ]
        return self._one_of(parts, cat.dim, point) if parts else self._make.constant(0, value.dtype)

    def _one_of(self, parts: Sequence[tuple[Operand, IntLike]], dim: int, point: Point) -> Scalar:
        """The part that the point lies in, found by halving: as many tests as their number has digits."""
        operand, start = parts[0]
        if len(parts) == 1:
            moved = point[dim] - Index(start)
            return self._operand(operand, (*point[:dim], moved, *point[dim + 1 :]))
        half = (len(parts) + 1) // 2
        before, after = (self._one_of(some, dim, point) for some in (parts[:half], parts[half:]))
        return self._make.guarded((Guard(point[dim], None, parts[half][1]),), before, after)

    def _depthwise(self, sums: Depthwise, value: Value, point: Point) -> Scalar:
        make, single = self._make, torch.float32
        image, channel, h, w = point
        (vertical, horizontal), (_, _, height, width) = sums.windows, sums.image.sizes
        columns = taps(w, horizontal, width, self._env, transposed=sums.transposed)
        if self.tap_loop is None:
            rows = taps(h, vertical, height, self._env, transposed=sums.transposed)
        else:
            loop = self.tap_loop
            index, guards = tap_of_loop(h, loop, vertical, height, self._env, transposed=sums.transposed)
            rows = [(as_index(loop), index, guards)]
        total: Scalar | None = None
        for row, column in itertools.product(rows, columns):
            weight = self._operand(sums.weight, (channel, Index(0), row[0], column[0]))
            factors = (self._tapped(sums.image, (image, channel), row, column), weight)
            term = make.apply("mul", tuple(make.convert(factor, single) for factor in factors), single)
            total = term if total is None else make.apply("add", (total, term), single)
        total = make.constant(0, single) if total is None else total
        if self.tap_loop is not None:
            self.accumulations.append(Accumulate(len(self.accumulations), "sum", total, single))
            total = make.total(len(self.accumulations) - 1, single)
        if sums.bias is not None:
            bias = make.convert(self._operand(sums.bias, (channel,)), single)
            total = make.apply("add", (total, bias), single)
        return make.convert(total, value.dtype)

    def _tapped(self, image: Operand, point: Point, row: Tap, column: Tap) -> Scalar:
        (_, y, above), (_, x, beside) = row, column
        element = self._operand(image, (*point, y, x))
        return self._make.guarded((*above, *beside), element, self._make.constant(0, image.dtype))

    def _gather(self, gather: Gather, point: Point) -> Scalar:
        where = tuple(point[dim] for dim in gather.index_dims)
        target: list[Index] = []
        checks: list[Scalar] = []
        filled: list[Guard] = []
        for index, rest, size in zip(gather.indices, gather.rest, gather.operand.sizes, strict=True):
            if index is None:
                assert rest is not None
                target.append(point[rest])
                continue
            chosen = self._make.convert(self._operand(index, where), torch.int64)
            place = place_in(chosen, size, self._env, gather.wraps)
            if place is not None:
                target.append(place)
                continue
            extent = self._make.index_value(Index(size), torch.int64)
            check = "wrap_index" if gather.wraps else "check_index"
            checked = self._make.apply(check, (chosen, extent), torch.int64)
            checks.append(checked)
            if not at_least(self._env, size, 1):  # an index that is out of range becomes 0, which may be, too
                filled.append(Guard(Index(size), 1, None))
            target.append(as_index(Loaded(checked)))
        found = self._operand(gather.operand, tuple(target))
        inside = frozenset(postorder([found])) if checks and not filled else frozenset()
        if filled:
            nothing = self._make.constant(0, found.dtype)
            is_empty = any(guard.index.const == 0 and not guard.index.terms for guard in filled)
            found = nothing if is_empty else self._make.guarded(tuple(filled), found, nothing)
        return self._with_checks(found, [check for check in checks if check not in inside])

    def _with_checks(self, found: Scalar, checks: list[Scalar]) -> Scalar:
        """``found``, computed where all ``checks`` are: a fill, or what is expanded, is read without its index."""
        guards = tuple(Guard(as_index(Loaded(check)), 0, None) for check in checks)
        other = self._make.constant(0, found.dtype)
        return self._make.guarded(
            guards, found, self._make.constant(1, found.dtype) if other is found else other
        )
