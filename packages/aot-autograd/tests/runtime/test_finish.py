"""The callable wraps the compiled graphs no more than it must."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import symbolic_trace

from aot_autograd import compile_joint, finish, trace_joint
from fx_interface.errors import StackError


def test_pure_inference_is_the_compiler_s_callable_itself(library: Any) -> None:
    made: list[Any] = []

    def compiler(graph: Any) -> Any:
        made.append(lambda *inputs: ())
        return made[-1]

    run = compile_joint(
        symbolic_trace(lambda x: x.sin()),
        [torch.ones(3)],
        operators=library,
        forward_compiler=lambda graph: pytest.fail("this is inference"),
        inference_compiler=compiler,
    )
    assert run is made[0]


def test_the_backward_has_its_own_compiler(library: Any, interpreter: Any) -> None:
    seen: list[str] = []

    def compiler(name: str) -> Any:
        return lambda graph: (seen.append(name), interpreter(graph))[1]

    compile_joint(
        symbolic_trace(lambda x: x.sin()),
        [torch.ones(3, requires_grad=True)],
        operators=library,
        forward_compiler=compiler("forward"),
        backward_compiler=compiler("backward"),
    )
    assert seen == ["forward", "backward"]


def test_without_a_fallback_overlap_is_an_error(library: Any, interpreter: Any) -> None:
    traced = trace_joint(
        symbolic_trace(lambda x, y: x.mul_(y)), [torch.ones(3), torch.ones(3)], operators=library
    )
    run = finish(traced.plan, interpreter(traced.forward))
    base = torch.ones(4)
    with pytest.raises(StackError, match="AOT302"):
        run(base[:3], base[1:])


def test_a_result_may_require_grad_without_a_gradient(compiled: Any) -> None:
    x = torch.randn(3, requires_grad=True)
    result = compiled(lambda x: x.norm(0))(x)
    assert result.requires_grad
    result.backward()
    assert x.grad is None or not x.grad.any()
    assert torch.autograd.grad(compiled(lambda x: x.norm(0))(x), x, allow_unused=True) == (None,)
