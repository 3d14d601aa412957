"""Checkpoints with a ``context_fn``: what a policy saves is not computed again, and the rest is."""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import fxstack

LIBRARY: Any = torch.library.Library("selective_checkpoints", "DEF")
LIBRARY.define("first(Tensor x) -> Tensor")
LIBRARY.define("second(Tensor x) -> Tensor")
OPS = torch.ops.selective_checkpoints
RUNS: defaultdict[str, int] = defaultdict(int)


def _declare(name: str) -> None:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        RUNS[name] += 1
        return x.sin()

    LIBRARY.impl(name, kernel, "CPU")
    LIBRARY.impl(name, torch.empty_like, "Meta")
    torch.library.register_autograd(
        f"selective_checkpoints::{name}",
        lambda ctx, g: g * ctx.saved_tensors[0].cos(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
        lib=LIBRARY,
    )


_declare("first")
_declare("second")


def block(x: torch.Tensor) -> torch.Tensor:
    y = OPS.first(x)
    z = OPS.second(y * y)
    return z * z


def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    if op is OPS.second.default:
        return CheckpointPolicy.MUST_SAVE
    return CheckpointPolicy.PREFER_RECOMPUTE


def every_second() -> Any:
    seen: defaultdict[Any, int] = defaultdict(int)

    def asked(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
        seen[op.namespace] += op.namespace == "selective_checkpoints"
        return op.namespace == "selective_checkpoints" and seen[op.namespace] % 2 == 0

    return create_selective_checkpoint_contexts(asked)


CONTEXTS = {
    "a policy": functools.partial(create_selective_checkpoint_contexts, policy),
    "a list": functools.partial(create_selective_checkpoint_contexts, [OPS.second.default]),
    "a function": lambda: create_selective_checkpoint_contexts(policy),
    "a policy with a state": every_second,
}


def run(program: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, dict[str, int]]:
    x = x.clone().requires_grad_()
    RUNS.clear()
    result = program(x)
    (gradient,) = torch.autograd.grad(result.sum(), x)
    return result.detach(), gradient, dict(RUNS)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", CONTEXTS)
def test_what_is_saved_is_computed_once(name: str, backend: str) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(block, x * 2, use_reentrant=False, context_fn=CONTEXTS[name]) + 1

    fast = fxstack.compile(program, backend=backend, fullgraph=True)
    for size in (3, 3, 5):
        x = torch.randn(size)
        expected, actual = run(program, x), run(fast, x)
        assert torch.equal(expected[0], actual[0])
        torch.testing.assert_close(expected[1], actual[1])
        assert actual[2] == expected[2] == {"first": 2, "second": 1}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_contexts_made_inside(backend: str) -> None:
    def program(x: torch.Tensor, names: list[str]) -> torch.Tensor:
        wanted = {getattr(OPS, name).default for name in names}

        def asked(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
            return op in wanted

        context = functools.partial(create_selective_checkpoint_contexts, asked)
        return checkpoint(block, x, use_reentrant=False, context_fn=context)

    fast = fxstack.compile(program, backend=backend, fullgraph=True)
    x = torch.randn(4)
    for names in (["first"], ["second"], ["first", "second"], []):
        expected = run(lambda x, names=names: program(x, names), x)
        actual = run(lambda x, names=names: fast(x, names), x)
        assert torch.equal(expected[0], actual[0])
        assert torch.equal(expected[1], actual[1])
        assert expected[2] == actual[2], names


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_an_exception_of_a_policy_reaches_the_program(backend: str) -> None:
    def refuses(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
        raise LookupError(f"no rule for {op}")

    context = functools.partial(create_selective_checkpoint_contexts, refuses)

    def program(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(torch.sin, x, use_reentrant=False, context_fn=context)

    fast = fxstack.compile(program, backend=backend)
    x = torch.randn(3, requires_grad=True)
    with pytest.raises(LookupError, match="no rule for aten"):
        program(x)
    with pytest.raises(LookupError, match="no rule for aten"):
        fast(x)
