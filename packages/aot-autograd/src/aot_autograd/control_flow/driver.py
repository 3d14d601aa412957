"""Running a program in parts: each step takes some values, and others take its results.

The program becomes a Python function in straight line:

    def program(v0, v1):
        v2, _ = run0(v0, v1)
        v1 = None
        v3, = run1(v2)
        v2 = None
        return (v3,)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a value lies while the program runs."""

    number: int

    def __str__(self) -> str:
        return f"v{self.number}"


@dataclass(frozen=True, slots=True)
class Step:
    """``run`` is called with ``arguments`` (slots, or constants) and returns a value for each of ``results``; None for
    one that nobody needs."""

    run: Callable[..., Sequence[Any]]
    arguments: tuple[Any, ...]
    results: tuple[Slot | None, ...]


def driver(inputs: int, steps: Sequence[Step], outputs: Sequence[Any]) -> Callable[..., Sequence[Any]]:
    """The program: its inputs take the first slots; ``outputs`` are slots or constants. What no later step needs is let
    go."""
    given = tuple(Slot(number) for number in range(inputs))
    if len(steps) == 1 and (steps[0].arguments, steps[0].results) == (given, tuple(outputs)):
        return steps[0].run
    space: dict[str, Any] = {
        "__name__": __name__
    }  # so that capture knows the function for a part of the stack

    def name(value: Any) -> str:
        if isinstance(value, Slot):
            return str(value)
        space[f"c{len(space)}"] = value
        return f"c{len(space) - 1}"

    lines = []
    for step, last in zip(steps, _last_uses(steps, outputs), strict=True):
        results = "".join(f"{'_' if slot is None else slot}, " for slot in step.results)
        called = f"{name(step.run)}({', '.join(map(name, step.arguments))})"
        lines.append(f"{results}= {called}" if results else called)
        lines += [f"{slot} = None" for slot in last]
    lines.append(f"return ({''.join(f'{name(output)}, ' for output in outputs)})")
    text = "\n    ".join([f"def program({', '.join(map(str, given))}):", *lines])
    exec(text, space)  # made of slots and names of this module alone
    made: Callable[..., Sequence[Any]] = space["program"]
    return made


def _last_uses(steps: Sequence[Step], outputs: Sequence[Any]) -> list[list[Slot]]:
    """For each step the slots that it is the last to read, or to fill in vain."""
    needed = {output for output in outputs if isinstance(output, Slot)}
    found = []
    for step in reversed(steps):
        touched = {slot for slot in (*step.arguments, *step.results) if isinstance(slot, Slot)}
        found.append(sorted(touched - needed, key=lambda slot: slot.number))
        needed |= touched
    return found[::-1]
