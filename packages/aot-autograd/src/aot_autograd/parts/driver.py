"""Running a program in parts: each step takes some values, and others take its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a value lies while the program runs."""

    number: int


@dataclass(frozen=True, slots=True)
class Step:
    """``run`` is called with ``arguments`` (slots, or constants) and returns a value for each of ``results``; None for
    one that nobody needs. ``last``: slots that no later step reads."""

    run: Callable[..., Sequence[Any]]
    arguments: tuple[Any, ...]
    results: tuple[Slot | None, ...]
    last: tuple[Slot, ...] = ()


@dataclass(frozen=True, slots=True)
class Driver:
    """The program: its inputs take the first slots; ``outputs`` are slots or constants."""

    size: int
    steps: tuple[Step, ...]
    outputs: tuple[Any, ...]

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """The program's results. What no later step needs is let go."""
        values: list[Any] = [*inputs, *[None] * (self.size - len(inputs))]
        for step in self.steps:
            found = step.run(*[_value(values, argument) for argument in step.arguments])
            for slot, value in zip(step.results, found, strict=True):
                if slot is not None:
                    values[slot.number] = value
            del found
            for slot in step.last:
                values[slot.number] = None
        return tuple(_value(values, output) for output in self.outputs)


def _value(values: list[Any], argument: Any) -> Any:
    return values[argument.number] if type(argument) is Slot else argument


def with_last_uses(steps: Sequence[Step], outputs: Sequence[Any]) -> tuple[Step, ...]:
    """The steps, each told which slots it is the last to read (or to fill in vain)."""
    needed = {output for output in outputs if isinstance(output, Slot)}
    made = []
    for step in reversed(steps):
        touched = {slot for slot in (*step.arguments, *step.results) if isinstance(slot, Slot)}
        last = tuple(sorted(touched - needed, key=lambda slot: slot.number))
        needed |= touched
        made.append(Step(step.run, step.arguments, step.results, last))
    return tuple(reversed(made))
