"""How outcomes of adversaries' programs are compared, and the referee that is asked where they differ.

Two runs in float32 round differently, and a program may magnify that without bound: a difference beyond a tolerance
need not be a mistake. The referee runs the program, uncompiled, in float64, and some times more with each result of an
operator that float32 cannot hold moved by a rounding of float32. How far these runs, and eager's, are apart tells what
roundings do to each number:

    |compiled - float64| <= 3 * max(|eager - float64|, |moved - float64|, ...) + some roundings of the number

A compiled number that is farther off differs. NaN and infinities must be where eager has them. Results that float32
holds (a count, a sum of small integers) are not moved, nor are those that an operator has chosen among its arguments (a
maximum), so that ties stay ties.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fx_interface.conformance.outcomes import (
    CompareValues,
    Form,
    ObjectForm,
    Outcome,
    TensorForm,
    differences,
    rounding,
)
from fx_interface.conformance.outcomes.describing import tensors_in

FACTOR, ROUNDINGS, MOVED_RUNS = 3.0, 8.0, 8
_UNIT = torch.finfo(torch.float32).eps

RunAgain = Callable[[int], Sequence[Sequence[Outcome]]]
"""Runs the calls of a program, up to the one of a number, once more, uncompiled: the outcomes of each call."""


@dataclass(frozen=True, slots=True)
class Comparing:
    """How an adversary's outcomes are compared: what does not count, by backend, and how near values must be.

    "version of results", among what does not count, stands for versions in what ``after`` does, where a call's results
    are there before. ``gradients``: as ``tolerances``, for gradients alone, whose terms a compiled graph adds in an
    order of its own.
    ``reported``: parts of the messages of exceptions, and of warnings in the log, that say that something cannot be
    compiled; from there on a program is not compared. ``referee``: whether numbers that differ are shown to the
    referee; a program's tensors must be of the default dtype, and are made of literals.
    """

    ignored: Mapping[str, frozenset[str]]
    tolerances: Mapping[str, tuple[float, float]]
    reported: tuple[str, ...] = ()
    gradients: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    referee: bool = False

    @classmethod
    def exactly(cls) -> Comparing:
        """To the bit under ``eager`` and ``aot_eager``; ``inductor`` may round and count versions otherwise."""
        return cls(
            {"inductor": frozenset({"version"})},
            {"inductor": (1e-4, 1e-5)},
            gradients={"inductor": (1e-4, 1e-4)},  # of sums whose terms cancel
        )


@dataclass(frozen=True, slots=True)
class Judge:
    """Compares the outcomes of a program's calls under a backend, of which it knows what counts."""

    values: CompareValues | None
    gradients: CompareValues | None
    ignored: frozenset[str]
    referee: bool

    @classmethod
    def of(cls, comparing: Comparing, backend: str) -> Judge:
        """What ``comparing`` says of a backend."""
        values, gradients = (
            None if tolerance is None else rounding(*tolerance)
            for tolerance in (comparing.tolerances.get(backend), comparing.gradients.get(backend))
        )
        return cls(values, gradients, comparing.ignored.get(backend, frozenset()), comparing.referee)

    def differences(
        self, number: int, expected: Sequence[Outcome], actual: Sequence[Outcome], run_again: RunAgain
    ) -> list[str]:
        """Where a call's outcomes differ; numbers only if the referee agrees."""
        found = self._compared(number, expected, actual, self.values, self.gradients)
        if not found or not self.referee or self.values is None:
            return found
        opinion = _Opinion(expected, _referees_runs(run_again, number))
        values, gradients = (rule and opinion.refined(rule) for rule in (self.values, self.gradients))
        return self._compared(number, expected, actual, values, gradients)

    def _compared(
        self,
        number: int,
        expected: Sequence[Outcome],
        actual: Sequence[Outcome],
        values: CompareValues | None,
        gradients: CompareValues | None,
    ) -> list[str]:
        return [
            f"call {number}: {line}"
            for place, (before, after) in enumerate(zip(expected, actual, strict=False))
            for line in differences(before, after, values, self._ignored_at(place), gradients)
        ]

    def _ignored_at(self, place: int) -> frozenset[str]:
        """What does not count in the call (0), and in what is done with its results."""
        return self.ignored | {"version"} if place and "version of results" in self.ignored else self.ignored


class _Opinion:
    """What the referee's runs say of the tensors in eager's outcomes, by the identity of their contents."""

    def __init__(self, expected: Sequence[Outcome], runs: Sequence[Sequence[Outcome]]) -> None:
        self._said: dict[int, list[torch.Tensor]] = {}
        for run in runs:
            for one, other in zip(expected, run, strict=False):
                self._listen(ObjectForm("", None, one.forms), ObjectForm("", None, other.forms))

    def _listen(self, one: Form | None, other: Form | None) -> None:
        match one, other:
            case TensorForm(), TensorForm():
                self._said.setdefault(id(one.content), []).append(other.content)
            case ObjectForm(), ObjectForm():
                pass
            case _:
                return
        for name, part in one.parts.items():
            self._listen(part, other.parts.get(name))

    def refined(self, rule: CompareValues) -> CompareValues:
        """A comparison that asks for an opinion where ``rule`` sees a difference."""

        def compare(one: torch.Tensor, two: torch.Tensor) -> str | None:
            words = rule(one, two)
            said = self._said.get(id(one), [])
            if words is None or not said or any(run.shape != one.shape for run in said):
                return words
            return None if _as_near_as_eager(one.double(), two.double(), said) else words

        return compare


def _as_near_as_eager(eager: torch.Tensor, compiled: torch.Tensor, said: Sequence[torch.Tensor]) -> bool:
    """The rule at the top, element by element; ``said`` begins with the run whose results are not moved."""
    exact, *moved = (run.double() for run in said)
    apart = torch.stack([(run - exact).abs() for run in (eager, *moved)]).amax(0)
    allowed = FACTOR * apart + ROUNDINGS * _UNIT * exact.abs()
    same = (eager == compiled) | (eager.isnan() & compiled.isnan())
    finite = eager.isfinite() & compiled.isfinite()
    return bool((same | (finite & ((compiled - exact).abs() <= allowed))).all())


def _referees_runs(run_again: RunAgain, number: int) -> list[Sequence[Outcome]]:
    """The outcomes of call ``number`` in float64, first as it is and then moved."""
    runs = []
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        for seed in range(MOVED_RUNS + 1):
            with _Moving(seed) if seed else contextlib.nullcontext():
                calls = run_again(number)
            if len(calls) > number:
                runs.append(calls[number])
    finally:
        torch.set_default_dtype(default)
    return runs


class _Moving(TorchDispatchMode):
    """Moves what operators compute by a rounding of float32, up or down, where float32 cannot hold it."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = {number for tensor in tensors_in(args) for number in _numbers(tensor)}
        result = func(*args, **(kwargs or {}))
        returned = result if isinstance(result, (tuple, list)) else (result,)
        for tensor, how in zip(returned, func._schema.returns, strict=False):
            if isinstance(tensor, torch.Tensor) and (how.alias_info is None or how.alias_info.is_write):
                self._move(tensor, given)
        return result

    def _move(self, tensor: torch.Tensor, given: Container[float]) -> None:
        if not _has_numbers(tensor) or 0 in tensor.stride():
            return
        held = tensor.reshape(-1).float().double().tolist()
        numbers = [
            number
            if number == known or number in given
            else number * (1 + self._random.uniform(-_UNIT, _UNIT))
            for number, known in zip(_numbers(tensor), held, strict=True)
        ]
        tensor.copy_(torch.tensor(numbers, dtype=torch.float64).view(tensor.shape))


def _has_numbers(tensor: torch.Tensor) -> bool:
    """Whether the tensor has memory of numbers that roundings may have changed."""
    strided = tensor.layout == torch.strided and not tensor.is_meta and not tensor._is_zerotensor()
    return strided and tensor.dtype == torch.float64


def _numbers(tensor: torch.Tensor) -> list[float]:
    return tensor.reshape(-1).tolist() if _has_numbers(tensor) else []
