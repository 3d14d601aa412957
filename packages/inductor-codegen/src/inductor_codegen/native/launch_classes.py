"""The classes of launches that a program can reach, read off the ranges of its sizes before it runs.

    rows = 96 * s0, s0 in [2, 64]     rows in [192, 6144]: 8 to 13 bits
    sizes = (s0,)                     a multiple of 16 or not: two classes for each number of bits, where both can be

A kernel is compiled for a class: how many bits the numbers of its rows and points have, and whether all of its sizes
are multiples of 16. Boxes of sizes are halved until all of a box is in one class, which is exact where a launch depends
on one size. Where it depends on several, a box ends at powers of two of each, and all classes that it may reach count:
a class too many costs compiling, and one too few would be a launch without a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from fx_interface.symbols import Expr, IntLike, Range, RelationOp, ShapeEnv, Symbol, evaluate, substitute
from fx_interface.symbols.ranges import bounds
from inductor_codegen.codegen.triton.launch.kernels import SIZES_ALIGNED, KernelRecord
from inductor_codegen.errors import unsupported
from inductor_codegen.ir.gpu.blocks import point_loops, row_loops
from inductor_codegen.ir.kernel import Kernel, SizeParameter, extent_product
from inductor_codegen.ir.program import Program, RunKernel

MOST_WORK = 1 << 40
"""Points that one launch has at most, and what counts as the bound of a size that has none."""
MOST_COMPILED = 2048
"""Forms of kernels, for one architecture, that a graph may have: some minutes of compiling."""
MOST_LAUNCHES = 1 << 14
"""Rows of the table."""
_EXACT_BOXES, _MOST_BOXES = 1 << 12, 1 << 16
"""Boxes of one launch from which on they end at powers of two, and those that are looked at: some seconds."""
_ALIGNMENT = 16

Box: TypeAlias = Mapping[Symbol, tuple[int, int]]
"""Sizes from their lowest to their highest."""


class LaunchClass(NamedTuple):
    """A launch of kernel ``number``: bits of its rows and points, and whether its sizes are multiples of 16."""

    number: int
    rows: int
    points: int
    traits: int


class Work(NamedTuple):
    """What a step launches, over the program's sizes: a kernel by its number, its rows, points and size arguments."""

    number: int
    rows: IntLike
    points: IntLike
    sizes: tuple[IntLike, ...]


def launch_classes(
    program: Program, kernels: Sequence[Kernel], records: Sequence[KernelRecord], env: ShapeEnv
) -> list[LaunchClass]:
    """The launches of ``kernels`` that the program can make with sizes in their ranges, sorted by kernel, rows and
    points, those that take most for granted first.

    UnsupportedProgramError IND109 where they need too many forms of kernels, with the bound that makes them few enough.
    """
    works = list(dict.fromkeys(works_of(program, kernels)))
    found = _reached(works, env, MOST_WORK)
    if found is None or not _are_few(found, records):
        raise _too_many(works, records, env)
    return sorted(found, key=lambda one: (one.number, one.rows, one.points, -one.traits))


def works_of(program: Program, kernels: Sequence[Kernel]) -> Iterator[Work]:
    """What the program's steps launch of ``kernels``."""
    numbers = {kernel.name: number for number, kernel in enumerate(kernels)}
    for step in program.steps:
        if isinstance(step, RunKernel) and step.kernel in numbers:
            number = numbers[step.kernel]
            kernel = kernels[number]
            rows, points = (extent_product(loops(kernel)) for loops in (row_loops, point_loops))
            yield Work(number, _of_call(rows, kernel, step), _of_call(points, kernel, step), step.sizes)


def _of_call(value: IntLike, kernel: Kernel, step: RunKernel) -> IntLike:
    """``value``, over the kernel's own sizes, with those of the call."""
    if not isinstance(value, Expr):
        return value
    names = [parameter.name for parameter in kernel.parameters if isinstance(parameter, SizeParameter)]
    given = dict(zip(names, step.sizes, strict=True))
    return substitute(value, {symbol: given[symbol.name] for symbol in value.symbols})


def _reached(works: Sequence[Work], env: ShapeEnv, most: int) -> set[LaunchClass] | None:
    """The classes of all launches, with sizes of at most ``most``; None where they are too many to be told."""
    found: set[LaunchClass] = set()
    for work in works:
        classes = _Classes(work, env)
        if not classes.look(classes.whole(most)):
            return None
        found |= classes.found
    return found


class _Classes:
    """The classes that one launch reaches."""

    def __init__(self, work: Work, env: ShapeEnv) -> None:
        self.found: set[LaunchClass] = set()
        self._work, self._env, self._boxes = work, env, 0
        values = (work.rows, work.points, *work.sizes)
        symbols = {atom for value in values if isinstance(value, Expr) for atom in value.symbols}
        self._symbols = sorted(symbols, key=lambda atom: atom.name)
        relations = [guard.relation for guard in env.guards if guard.relation.symbols <= symbols]
        self._facts = [(relation.op, relation.lhs - relation.rhs) for relation in relations]

    def whole(self, most: int) -> Box:
        """All sizes that there can be."""
        spans = {atom: self._env.bounds(Expr((((atom,), 1),))) for atom in self._symbols}
        return {
            atom: (max(0, span.low or 0), most if span.high is None else min(most, span.high))
            for atom, span in spans.items()
        }

    def look(self, whole: Box) -> bool:
        """Collect the classes of a box; False where it falls into too many."""
        waiting = [whole]
        while waiting:
            box = waiting.pop()
            self._boxes += 1
            if self._boxes > _MOST_BOXES:
                return False
            waiting += self._halves(box)
        return True

    def _halves(self, box: Box) -> tuple[Box, ...]:
        """The halves of a box that may be in several classes; none for one that was seen to."""
        if any(low > high for low, high in box.values()) or not self._can_be(box):
            return ()
        rows, points = self._span(self._work.rows, box), self._span(self._work.points, box)
        if rows[1] <= 0 or max(rows[0], 1) * max(points[0], 1) > MOST_WORK:
            return ()
        row_bits, point_bits = _bits_within(max(rows[0], 1), rows[1]), _bits_within(*points)
        if len(row_bits) > 1 or len(point_bits) > 1:
            atom = self._widest(box)
            if atom is not None:
                low, high = box[atom]
                middle = _middle(low, high)
                return {**box, atom: (low, middle)}, {**box, atom: (middle + 1, high)}
        traits = self._traits(box)
        number = self._work.number
        self.found |= {LaunchClass(number, r, p, t) for r in row_bits for p in point_bits for t in traits}
        return ()

    def _widest(self, box: Box) -> Symbol | None:
        """The size to halve; None where the box is as small as boxes get."""
        alone = len(box) == 1 and self._boxes < _EXACT_BOXES
        wide = [atom for atom, (low, high) in box.items() if low < high and (alone or bits(low) < bits(high))]
        return max(wide, key=lambda atom: bits(box[atom][1]) - bits(box[atom][0]), default=None)

    def _span(self, value: IntLike, box: Box) -> tuple[int, int]:
        """Between which bounds a number that is not negative lies."""
        if all(low == high for low, high in box.values()):
            exact = max(0, evaluate(value, {atom: low for atom, (low, _) in box.items()}))
            return exact, exact
        span = bounds(value, lambda atom: Range(*box[atom]))
        return max(0, span.low or 0), MOST_WORK if span.high is None else max(0, span.high)

    def _can_be(self, box: Box) -> bool:
        """Whether the relations that the program relies on leave anything of a box."""
        for op, difference in self._facts:
            span = bounds(difference, lambda atom: Range(*box[atom]))
            if _surely_fails(op, span):
                return False
        return True

    def _traits(self, box: Box) -> set[int]:
        answers = [self._is_aligned(size, box) for size in self._work.sizes]
        if False in answers:
            return {0}
        return {SIZES_ALIGNED} if None not in answers else {0, SIZES_ALIGNED}

    def _is_aligned(self, size: IntLike, box: Box) -> bool | None:
        """Whether a size is a multiple of 16; None where it may be one or not."""
        rest = 0
        for monomial, coefficient in size.terms if isinstance(size, Expr) else (((), size),):
            if not monomial:
                rest = coefficient % _ALIGNMENT
            elif coefficient % _ALIGNMENT:
                low, high = self._span(size, box)
                if low == high:
                    return low % _ALIGNMENT == 0
                return None if high // _ALIGNMENT * _ALIGNMENT >= low else False
        return rest == 0


def _surely_fails(op: RelationOp, difference: Range) -> bool:
    above = difference.low is not None and difference.low > 0
    below = difference.high is not None and difference.high < 0
    match op:
        case "==":
            return above or below
        case "!=":
            return difference.low == 0 == difference.high
        case "<":
            return difference.low is not None and difference.low >= 0
    return above


def _middle(low: int, high: int) -> int:
    """The largest power of two between them, or the number in the middle."""
    power = 1 << (high - 1).bit_length() - 1
    return power if low <= power < high else (low + high) // 2


def bits(count: int) -> int:
    """The bits of a number of rows or points: those of the least power of two that is not below ``count``."""
    return max(count - 1, 0).bit_length()


def _bits_within(low: int, high: int) -> range:
    return range(bits(low), bits(high) + 1)


def _are_few(found: set[LaunchClass], records: Sequence[KernelRecord]) -> bool:
    """Whether compiling for these classes takes no more than it may."""
    forms = set()
    for one in found:
        _, _, functions = records[one.number].functions(one.rows, one.points)
        forms |= {(of.name, to.rows, to.points, to.warps, to.stages, one.traits) for of, to in functions}
    return 2 * len(forms) <= MOST_COMPILED and 2 * len(found) <= MOST_LAUNCHES


def _too_many(works: Sequence[Work], records: Sequence[KernelRecord], env: ShapeEnv) -> Exception:
    symbols = sorted(
        {atom for work in works for size in work.sizes if isinstance(size, Expr) for atom in size.symbols},
        key=lambda atom: atom.name,
    )
    lowest = max(env.bounds(Expr((((atom,), 1),))).low or 0 for atom in symbols)
    most = MOST_WORK
    while most > lowest:
        most //= 2
        found = _reached(works, env, most)
        if found is not None and _are_few(found, records):
            break
    named = ", ".join(_ranged(atom, env) for atom in symbols)
    return unsupported(
        "IND109",
        f"kernels for a GPU would be compiled ahead of time in too many forms, because sizes vary widely ({named})",
        None,
        f"bound them: sizes of at most {most} need few enough (max={most} of each Dim)"
        if most > lowest
        else "leave some of them out of dynamic_shapes, or make an entry point for each size",
    )


def _ranged(atom: Symbol, env: ShapeEnv) -> str:
    info = env.symbols.get(atom)
    name = atom.name if info is None or info.source is None else str(info.source)
    span = env.bounds(Expr((((atom,), 1),)))
    return f"{name} from {span.low or 0} to {'any' if span.high is None else span.high}"
