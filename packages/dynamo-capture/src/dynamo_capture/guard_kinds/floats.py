"""Guards on which side of a number a float lies, and on numbers that follow from others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, ClassVar

import torch

from dynamo_capture.guard_kinds.fact_texts import fact_in_words
from dynamo_capture.sources.formulas import NUMBERS, SPACE
from dynamo_capture.sources.number_facts import COMPARISONS, Facts
from fx_guards import GuardRecord, guard_kind
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
        contents = _contents(tensors)
        if contents is None:
            return False
        written = [v for v in value[self.count :] if isinstance(v, torch.Tensor)]
        addresses = set(map(torch.Tensor.data_ptr, tensors))
        addresses.update(map(torch.Tensor.data_ptr, written))
        if len(addresses) < len(tensors) + len(written):
            return False
        return self._first_refusal([v if type(v) in NUMBERS else next(contents) for v in read]) is None

    def _first_refusal(self, numbers: list[int | float]) -> tuple[str, tuple[int | float, ...]] | None:
        for (function, columns), (text, _) in zip(self._functions, self.programs, strict=True):
            called = list(zip(*[[numbers[place] for place in column] for column in columns], strict=True))
            has_zero = any(0 in arguments for arguments in called)  # 0.0 and -0.0 are equal
            distinct = called if has_zero else set(called)
            for arguments in distinct:
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


def _contents(tensors: Sequence[torch.Tensor]) -> Iterator[int | float] | None:
    """The contents of tensors of one element; None if one has more, or is a part of other memory.

    Optimizers have a counter a parameter, so each fact is asked of all at once, without a loop in Python.
    """
    sizes = map(torch.UntypedStorage.nbytes, map(torch.Tensor.untyped_storage, tensors))
    if set(map(torch.Tensor.numel, tensors)) - {1} or list(sizes) != list(
        map(torch.Tensor.element_size, tensors)
    ):
        return None
    return map(torch.Tensor.item, tensors)


def _is_odd(value: Any) -> bool:
    return type(value) not in NUMBERS and not (isinstance(value, torch.Tensor) and value.numel() == 1)


def _compiled(text: str) -> Callable[..., bool]:
    space = dict(SPACE)
    exec(compile(text, "<facts about numbers>", "exec"), space)  # made from the trace's own formulas
    made: Callable[..., bool] = space["holds"]
    return made
