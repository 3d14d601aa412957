"""Functions of TorchScript are run by their operators where tensors are traced."""

import pytest
import torch

from fx_interface.torch_internals.torchscript import run_scripted, without_fusion

_SEEN: list[bool] = []


@torch.jit.ignore
def _note(x: torch.Tensor) -> torch.Tensor:
    _SEEN.append(torch._C._get_graph_executor_optimize())
    return x


@torch.jit.script
def _inner(x: torch.Tensor) -> torch.Tensor:
    return (_note(x) * 2.0).sigmoid() + 1.0


@torch.jit.script
def _scripted(x: torch.Tensor, scale: float = 3.0, shift: int = 1) -> torch.Tensor:
    return _inner(x) * scale + shift


def test_what_was_optimized_before_is_not_run() -> None:
    x = torch.randn(8)
    for _ in range(4):
        expected = run_scripted(_scripted, x)
    plans = len(_scripted.get_debug_state().execution_plans)
    assert plans
    assert all(_SEEN)
    ran = str(torch.jit.last_executed_optimized_graph())
    assert "aten::sigmoid" in ran
    _SEEN.clear()
    with without_fusion():
        assert torch.equal(run_scripted(_scripted, x), expected)
    assert _SEEN == [False]
    assert "prim::profile" not in str(torch.jit.last_executed_optimized_graph())
    assert torch._C._get_graph_executor_optimize()


def test_arguments_and_defaults() -> None:
    x = torch.randn(8)
    with without_fusion():
        for args, kwargs in (((x,), {}), ((x, 2.0), {}), ((x,), {"shift": 5}), ((), {"x": x, "scale": 0.5})):
            assert torch.equal(run_scripted(_scripted, *args, **kwargs), _scripted(*args, **kwargs))
        with pytest.raises(RuntimeError, match="missing value for argument"):
            run_scripted(_scripted)
        with pytest.raises(RuntimeError, match=r"[Uu]nknown keyword"):
            run_scripted(_scripted, x, other=1)
