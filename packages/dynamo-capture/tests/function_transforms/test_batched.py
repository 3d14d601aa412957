from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.func import vmap

from dynamo_capture import optimize

_SCALE = torch.tensor([1.0, -2.0, 0.5])


class _Seen:
    """A backend that keeps its graphs, and refuses wrapped tensors."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []
        self.runs = 0

    def __call__(self, module: Any, inputs: Any) -> Callable[..., Any]:
        self.graphs.append(module)

        def run(*given: Any) -> Any:
            tensors = [one for one in given if isinstance(one, torch.Tensor)]
            assert not any(map(torch._C._functorch.is_functorch_wrapped_tensor, tensors))
            self.runs += 1
            return module.forward(*given)

        return run


def _both(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return (x * _SCALE).sin() + y, x @ y, _SCALE * 2


@pytest.mark.parametrize(
    ("mapped", "shapes"),
    [
        (lambda f: vmap(f), ((4, 3), (4, 3))),
        (lambda f: vmap(f, in_dims=(1, None)), ((3, 4), (3,))),
        (lambda f: vmap(f, in_dims=(None, -1)), ((3,), (3, 4))),
        (lambda f: vmap(vmap(f)), ((2, 4, 3), (2, 4, 3))),
        (lambda f: vmap(vmap(f, in_dims=(1, None)), in_dims=(None, 1)), ((3, 5), (3, 2))),
        (lambda f: vmap(vmap(vmap(f), in_dims=(2, 0))), ((2, 3, 3, 5), (2, 5, 3, 3))),
    ],
)
def test_a_graph_of_all_slices(mapped: Any, shapes: Any) -> None:
    torch.manual_seed(0)
    x, y = map(torch.randn, shapes)
    backend = _Seen()
    compiled = optimize(backend, fullgraph=True)(_both)
    for count in (1, 2):
        for found, expected in zip(mapped(compiled)(x, y), mapped(_both)(x, y), strict=True):
            assert torch.equal(found, expected)
            assert found.stride() == expected.stride()
        assert backend.runs == count
    assert len(backend.graphs) == 1


def _written_in_turns(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    total, seen = torch.zeros_like(x), []
    for factor in range(3):
        total += x * factor
        seen.append(total.clone())
    total[1:] = 7
    return torch.stack(seen), total[1:]


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("randomness", ["same", "different"])
@pytest.mark.parametrize(
    "program",
    [
        lambda x: vmap(torch.sin)(x),
        lambda x: torch.func.grad(lambda x: (x * _SCALE).sin().sum())(x),
        lambda x: torch.func.grad(lambda x: _SCALE.sum())(x),
        lambda x: torch.func.grad_and_value(lambda x: (x.sin().sum(), x * 2), has_aux=True)(x),
        lambda x: torch.func.vjp(lambda x: (x.sin(), x @ _SCALE), x)[1]((x, x[0])),
        lambda x: torch.func.jvp(lambda x: (x * _SCALE).cos(), (x,), (x * 2,)),
        lambda x: torch.func.jacrev(lambda x: (x * _SCALE).cos())(x),
        lambda x: torch.func.hessian(lambda x: (x * x * _SCALE).sin().sum())(x),
        _written_in_turns,
        lambda x: (torch.rand_like(x) * x, torch.randn(3), torch.zeros(3) + 1),
        lambda x: vmap(lambda y: y + torch.randn(()), randomness="different")(x),
    ],
    ids=[
        "vmap", "grad", "grad of what does not depend", "grad_and_value", "vjp", "jvp", "jacrev", "hessian",
        "writes", "draws", "draws inside",
    ],
)  # fmt: skip
def test_transforms_writes_and_draws_in_a_slice(program: Any, randomness: str, twice: bool) -> None:
    def mapped(function: Any) -> Any:
        if twice:
            return vmap(vmap(function, randomness="different"), 1, randomness=randomness)
        return vmap(function, randomness=randomness)

    backend = _Seen()
    compiled = optimize(backend, fullgraph=True)(program)
    for count in (2, 4):
        x = torch.randn(3, count, 3) if twice else torch.randn(count, 3)
        kept = x.clone()
        found: list[Any] = []
        for function in (program, compiled):
            torch.manual_seed(count)
            results = mapped(function)(x)
            leaves = [*torch.utils._pytree.tree_leaves(results), torch.rand(2)]
            found.append([(leaf.tolist(), leaf.stride()) for leaf in leaves])
        assert found[0] == found[1]
        assert torch.equal(x, kept)
    assert backend.runs == 2


@pytest.mark.parametrize("randomness", ["same", "different", "error"])
@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("draw", [lambda: torch.rand(3), lambda: torch.randperm(4)], ids=["rand", "randperm"])
def test_draws_that_no_slice_is_part_of(draw: Any, count: int, randomness: str) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return draw()

    found: list[Any] = []
    for function in (program, optimize(_Seen(), fullgraph=True)(program)):
        torch.manual_seed(0)
        try:
            found.append(vmap(function, randomness=randomness)(torch.ones(count, 3)).tolist())
        except RuntimeError as error:
            found.append(str(error))
        found[-1] = found[-1], torch.rand(2).tolist()
    assert found[0] == found[1]


def test_gradients_of_all_slices() -> None:
    backend = _Seen()
    compiled = optimize(backend, fullgraph=True)(lambda x: (x * _SCALE).sin().sum())
    x = torch.randn(4, 3, requires_grad=True)
    vmap(compiled)(x).sum().backward()
    torch.testing.assert_close(x.grad, (x * _SCALE).cos() * _SCALE, rtol=0, atol=0)
    assert backend.runs == 1


def test_other_numbers_of_slices_have_one_more_graph() -> None:
    backend = _Seen()
    compiled = optimize(backend, fullgraph=True)(lambda x: x * _SCALE)
    for count in range(2, 7):
        x = torch.randn(count, 3)
        assert torch.equal(vmap(compiled)(x), x * _SCALE)
    assert len(backend.graphs) == 2


def test_what_raises_is_worded_by_torch_and_runs_again() -> None:
    def program(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x.index_select(0, i) + torch.linalg.cholesky(x[:1, None] * 1.0)[0]

    backend = _Seen()
    compiled = optimize(backend, fullgraph=True)(program)
    good, bad = torch.ones(2, 3), -torch.ones(2, 3)
    i = torch.tensor([0, 2])
    for x in (good, bad, good):
        words: list[Any] = []
        for function in (program, compiled):
            try:
                words.append(vmap(function, in_dims=(0, None))(x, i).tolist())
            except RuntimeError as error:
                words.append(str(error))
        assert words[0] == words[1]
    assert backend.runs == 3


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.add_(1),
        lambda x: torch.zeros(3).add_(x),
        lambda x: (torch.empty(3).normal_(), x),
        lambda x: torch.linalg.cholesky(x[:1, None].abs() + torch.rand(())),
    ],
    ids=["write", "write to what is no slice", "draw into a tensor", "draw, and fail perhaps"],
)
def test_what_runs_as_operators(program: Any) -> None:
    backend = _Seen()
    compiled = optimize(backend, fullgraph=True)(program)
    found: list[Any] = []
    for function in (program, compiled):
        torch.manual_seed(0)
        try:
            found.append(str(vmap(function, randomness="different")(torch.ones(2, 3))))
        except RuntimeError as error:
            found.append(str(error))
    assert found[0] == found[1]
    assert not backend.graphs


def test_what_cannot_be_compiled_is_told(caplog: pytest.LogCaptureFixture) -> None:
    def failing(graph_module: torch.fx.GraphModule, example_inputs: Any) -> Any:
        raise ValueError("no kernels for this")

    x = torch.randn(3, 4)
    mapped = torch.func.vmap(optimize(failing)(lambda x: torch.sin(x)))
    for _ in range(2):
        assert torch.equal(mapped(x), torch.sin(x))
    assert caplog.text.count("a graph inside of vmap is not compiled") == 1
    assert "no kernels for this" in caplog.text
