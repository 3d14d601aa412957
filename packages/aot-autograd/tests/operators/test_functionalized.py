"""Custom operators that write to their arguments are called in a functional form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from aot_autograd import plan_from_data, plan_to_data
from aot_autograd.operators.functionalized import functional_form
from aot_autograd.pipeline import trace
from fx_interface.errors import CorruptArtifactError
from fx_interface.signature import InputDecl, InputKind
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of

LIBRARY = "aot_autograd_tests"
SCHEMAS = (
    "scale_(Tensor(a!) x, Tensor y, *, float k=2.0) -> ()",
    "collect(Tensor(a!)[] parts, Tensor x, Tensor(b!)? spare=None) -> Tensor",
    "keep(Tensor x, *, Tensor(a!)? into=None) -> Tensor",
)


def _scale(x: torch.Tensor, y: torch.Tensor, *, k: float = 2.0) -> None:
    x.mul_(k).add_(y)


def _collect(parts: list[torch.Tensor], x: torch.Tensor, spare: torch.Tensor | None = None) -> torch.Tensor:
    for part in parts:
        part.add_(x)
    if spare is not None:
        spare.zero_()
    return x * 2


def _keep(x: torch.Tensor, *, into: torch.Tensor | None = None) -> torch.Tensor:
    if into is not None:
        into.copy_(x)
    return x + 1


@pytest.fixture(scope="module", autouse=True)
def _operators() -> Iterator[Any]:
    library = torch.library.Library(LIBRARY, "DEF")  # type: ignore[no-untyped-call]
    for schema, function in zip(SCHEMAS, (_scale, _collect, _keep), strict=True):
        library.define(schema)  # type: ignore[no-untyped-call]
        library.impl(schema.partition("(")[0], function, "CPU")  # type: ignore[no-untyped-call]
    yield library
    library._destroy()  # type: ignore[no-untyped-call]


def _program(x: Any, y: Any) -> Any:
    operators = getattr(torch.ops, LIBRARY)
    made = x * 2
    operators.scale_(made[0], y[1], k=3.0)
    operators.scale_(y, made)
    first = operators.collect([made, y.t()], x, None)
    return made, first + operators.collect([], x, made[1])


def test_what_they_write_is_seen(check: Any) -> None:
    x, y = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    x, y = x[:, :3].contiguous(), y[:, :3].contiguous()
    check(_program, x, y)
    check(lambda x, y, w: (_program(x, y)[0] * w).sum(), x, y, x.clone().requires_grad_())


def test_what_is_written_may_be_left_out(check: Any) -> None:
    def program(x: Any, y: Any) -> Any:
        operators = getattr(torch.ops, LIBRARY)
        made = x * 2
        first = operators.collect([made], x)
        second = operators.collect([made], x, spare=y)
        return made, first + second + operators.keep(made) + operators.keep(first, into=y), y

    check(program, torch.ones(2, 2), torch.ones(2, 2))


def test_torchs_own_operators_have_none() -> None:
    assert functional_form(torch.ops.aten.add_.Tensor) is None


def test_a_stored_plan_makes_them_again(library: Any) -> None:
    inputs = [torch.ones(2, 2), torch.ones(2, 2)]
    declared = [InputDecl(f"x{i}", InputKind.USER, spec_of(t)) for i, t in enumerate(inputs)]

    def program(recorder: Any, given: Any) -> list[Any]:
        getattr(torch.ops, LIBRARY).scale_(*given)
        return []

    made = trace(program, declared, inputs, operators=library, env=ShapeEnv())
    assert made.plan.functional_forms == (f"{LIBRARY}::scale_.default",)
    stored = json.dumps(plan_to_data(made.plan))
    assert plan_from_data(json.loads(stored)) == made.plan
    with pytest.raises(CorruptArtifactError):
        plan_from_data(json.loads(stored.replace("scale_", "gone_")))
