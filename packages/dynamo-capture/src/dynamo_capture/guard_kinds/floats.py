"""Guards on which side of a number a float lies, and on numbers that follow from others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any, ClassVar

import torch

from dynamo_capture.guard_kinds.fact_texts import fact_in_words
from dynamo_capture.sources.formulas import NUMBERS, SPACE
from dynamo_capture.sources.number_facts import COMPARISONS, Facts
from fx_guards import GuardRecord, guard_kind, lone_numbers
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import Source


@guard_kind
@dataclass(frozen=True, slots=True)
class FloatCompares(GuardRecord):
    """A float for which ``value symbol number`` is ``answer``."""

    kind: ClassVar[str] = "float_compares"
    symbol: str
    number: int | float
    answer: bool

    def holds(self, value: Any) -> bool:
        return type(value) is float and COMPARISONS[self.symbol](value, self.number) is self.answer

    def explain(self, value: Any) -> str:
        return f"expected x {self.symbol} {self.number!r} to be {self.answer}, got {value!r}"


@guard_kind
@dataclass(frozen=True, slots=True)
class FloatFacts(GuardRecord):
    """What follows from numbers and from the content of tensors of one element.

    The values are the first ``count`` sources'; ``programs`` are Python functions of them, each with the positions of
    its arguments, call by call. Such tensors must own their memory, and none of the other sources, tensors that the
    code writes to, may share it: else their content when the code gets there would not be the content now.
    """

    kind: ClassVar[str] = "float_facts"
    takes_tuple: ClassVar[bool] = True
    others: tuple[Source, ...]
    count: int
    programs: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]
    _functions: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        functions = [(_compiled(text), tuple(zip(*calls, strict=True))) for text, calls in self.programs]
        object.__setattr__(self, "_functions", functions)

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self.source, *self.others)

    def holds(self, value: Any) -> bool:
        with torch._C.DisableTorchFunction():  # reading is no operation of the program
            return self._holds(value)

    def _holds(self, value: Any) -> bool:
        read = value[: self.count]
        tensors = [v for v in read if type(v) not in NUMBERS]
        if not all(issubclass(cls, torch.Tensor) for cls in set(map(type, tensors))):
            return False
        found = lone_numbers(tensors, [v for v in value[self.count :] if isinstance(v, torch.Tensor)])
        if found is None:
            return False
        if len(found) < self.count:
            contents = iter(found)
            found = [v if type(v) in NUMBERS else next(contents) for v in read]
        return self._first_refusal(found) is None

    def _first_refusal(self, numbers: Sequence[int | float]) -> tuple[str, tuple[int | float, ...]] | None:
        for (function, columns), (text, _) in zip(self._functions, self.programs, strict=True):
            called = list(zip(*[[numbers[place] for place in column] for column in columns], strict=True))
            distinct = set(called)
            has_zero = any(0 in arguments for arguments in distinct)  # 0.0 and -0.0 are equal
            for arguments in called if has_zero else distinct:
                try:
                    if not function(*arguments):
                        return text, arguments
                except (ArithmeticError, RuntimeError, TypeError, ValueError):
                    return text, arguments
        return None

    def explain(self, value: Any) -> str:
        with torch._C.DisableTorchFunction():
            numbers = [v if type(v) in NUMBERS else v.item() for v in value[: self.count] if not _is_odd(v)]
        refusal = self._first_refusal(numbers) if len(numbers) == self.count else None
        if refusal is None:
            return "expected numbers and tensors of one element that share no memory"
        text, arguments = refusal
        calls = next(calls for known, calls in self.programs if known == text)
        places = next(call for call in calls if tuple(numbers[place] for place in call) == arguments)
        names = [self.sources[place].expression for place in places]
        read = ", ".join(f"{name} = {v!r}" for name, v in dict(zip(names, arguments, strict=True)).items())
        return f"expected {fact_in_words(text, names)}, got {read}"


def float_facts(facts: Facts, written: Iterable[Source]) -> FloatFacts:
    """The guard of a trace's facts; ``written``: tensors of one element that the code writes to."""
    read = list(facts.read)
    if all(formula.is_read_early for formula in facts.read.values()):
        written = ()
    others = [source for source in written if source not in facts.read]
    return FloatFacts(read[0], (*read[1:], *others), len(read), facts.programs())


def _is_odd(value: Any) -> bool:
    return type(value) not in NUMBERS and not (isinstance(value, torch.Tensor) and value.numel() == 1)


def _compiled(text: str) -> Callable[..., bool]:
    space = dict(SPACE)
    exec(compile(text, "<facts about numbers>", "exec"), space)  # made from the trace's own formulas
    made: Callable[..., bool] = space["holds"]
    return made
