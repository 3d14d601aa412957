"""Pointwise operators compiled for a CPU give eager's results at the edges of each dtype, or differ as listed here.

Eager's own kernels may treat the last elements of a tensor otherwise than their vectors do: a result is right if eager
has it for this element in the tensor, alone, or in a row of such elements.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

import fxstack

sys.path.insert(0, str(Path(__file__).parent))
from pointwise_calls import Call, calls, edge_values, tensors_of

DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
)  # fmt: skip
UNITS = 16
"""Units in the last place by which results may differ."""
TOGETHER = 30
"""Calls in one compiled function."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Another result than eager's: what the operator was given, and the two results."""

    call: Call
    info: torch.finfo
    given: dict[str, float]
    eager: float
    compiled: float

    def __str__(self) -> str:
        return (
            f"{self.call.op}{self.call.args} of {self.given}: {self.eager} in eager, {self.compiled} compiled"
        )


def _nothing_left(seen: Difference) -> bool:
    """Exponentials: what is subnormal in eager is 0."""
    return abs(seen.eager - seen.compiled) <= 100 * torch.finfo(torch.float32).tiny


def _overflow(seen: Difference) -> bool:
    """Eager multiplies and adds in one instruction: what is between may be larger than the dtype holds."""
    numbers = [abs(a) for a in (*seen.given.values(), *seen.call.args) if not isinstance(a, str)]
    return not math.isfinite(seen.compiled) and max(numbers) >= seen.info.max / 8


def _tiny(seen: Difference) -> bool:
    """A function that is about linear near 0: eager has 0 for subnormal numbers."""
    return abs(seen.compiled) <= 2 * abs(seen.given["x"]) <= 2 * seen.info.tiny and seen.eager == 0


def _zeros(seen: Difference) -> bool:
    """The larger of two zeros: for 16-bit types eager chooses the other sign."""
    return seen.eager == seen.compiled == 0 and seen.info.bits == 16


def _cancelled(seen: Difference) -> bool:
    """Nothing is left of a difference but, in eager, its rounding."""
    return max(abs(seen.eager), abs(seen.compiled)) <= torch.finfo(torch.float32).eps


def _terms(seen: Difference) -> bool:
    """A sum of terms that nearly cancel: as exact as the terms are."""
    return abs(seen.eager - seen.compiled) <= UNITS * seen.info.eps * abs(seen.given["x"])


EXCEPTIONS: dict[str, Callable[[Difference], bool]] = {
    **dict.fromkeys(("exp", "logaddexp", "mish", "softplus", "log_sigmoid"), _nothing_left),
    **dict.fromkeys(("lerp", "rsub", "addcmul"), _overflow),
    **dict.fromkeys(("log1p", "erf"), _tiny),
    **dict.fromkeys(("fmax", "fmin"), _zeros),
    "logaddexp2": _cancelled,
    "gelu": _terms,
}
"""What may differ: ``docs/decisions/0066-edges-of-a-dtype.md`` says why."""


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")
def test_edges_are_as_in_eager(dtype: torch.dtype) -> None:
    tensors, found = tensors_of(dtype), calls(dtype)
    assert len(found) > 200
    differing = []
    for start in range(0, len(found), TOGETHER):
        some = found[start : start + TOGETHER]
        for call, result in zip(some, _compiled(some, tensors), strict=True):
            differing += _differences(call, tensors, result)
    assert not differing, "\n".join(differing)


def test_shorter_tensors_end_alike() -> None:
    """Each element once at the end of a tensor that fills no vector."""
    values = edge_values(torch.float32)
    found = [call for call in calls(torch.float32) if "y" not in call.args and "z" not in call.args]
    found = [call for call in found if call.name not in EXCEPTIONS][::3]
    for length in (1, 3, len(values)):
        tensors = dict.fromkeys("xyzw", values[-length:])
        for call, result in zip(found, _compiled(found, tensors), strict=True):
            assert not _differences(call, tensors, result)


def _compiled(some: list[Call], tensors: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """The results of one function that does all these calls."""

    def program(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
        given = {"x": x, "y": y, "z": z, "w": w}
        return [call.op(*[given[a] if isinstance(a, str) else a for a in call.args]) for call in some]

    fxstack.reset()
    options = {"on_internal_error": "raise"}
    made = fxstack.compile(program, backend="inductor", fullgraph=True, options=options)(**tensors)
    assert isinstance(made, list)
    return made


def _differences(call: Call, tensors: dict[str, torch.Tensor], result: torch.Tensor) -> list[str]:
    expected = call(tensors)
    assert (expected.dtype, expected.shape) == (result.dtype, result.shape), call
    found = []
    for place in (~_alike(expected, result)).nonzero().flatten().tolist():
        one = {name: tensor[place : place + 1] for name, tensor in tensors.items()}
        others = [call({name: tensor.repeat(count) for name, tensor in one.items()})[:1] for count in (1, 64)]
        if any(bool(_alike(other, result[place : place + 1])) for other in others):
            continue
        given = {name: one[name].item() for name in call.args if isinstance(name, str)}
        seen = Difference(call, _info(expected.dtype), given, expected[place].item(), result[place].item())
        allowed = EXCEPTIONS.get(call.name)
        if allowed is None or not allowed(seen):
            found.append(str(seen))
    return found[:5]


def _info(dtype: torch.dtype) -> torch.finfo:
    return torch.finfo(dtype if dtype.is_floating_point else torch.float32)


def _alike(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Where two results are equal, the sign of zeros included, up to rounding; a NaN is like any other."""
    if not one.is_floating_point():
        return one == other
    info = torch.finfo(one.dtype)
    same = (one == other) & (torch.signbit(one) == torch.signbit(other)) | (one.isnan() & other.isnan())
    units = one.double().abs().clamp(min=info.tiny) * info.eps * UNITS
    near = ((one.double() - other.double()).abs() <= units) & (one != 0) & (other != 0) & one.isfinite()
    return same | near
