"""What is kept when cheap values are computed again, and under a budget."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from aot_autograd import aot_function, aot_module
from aot_autograd.partition.min_cut import min_cut
from aot_autograd.partition.save_everything import save_everything
from aot_autograd.recording.record import Recorder
from aot_autograd.recording.values import Value
from fx_interface.signature import OutputKind, signature_of
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of

aten = torch.ops.aten


class Kept:
    """A forward compiler that notes which operators' results are kept, and how many bytes they take."""

    def __init__(self) -> None:
        self.operators: list[Any] = []
        self.bytes = 0

    def __call__(self, graph: Any) -> Any:
        signature = signature_of(graph)
        assert signature is not None
        results = graph.graph.output_node().args[0]
        for result, declared in zip(results, signature.outputs, strict=True):
            if declared.kind is OutputKind.SAVED:
                self.operators.append(result.target)
                self.bytes += result.meta["spec"].numel * result.meta["spec"].dtype.itemsize
        return graph


def kept(program: Any, library: Any, *inputs: torch.Tensor, partition: Any) -> Kept:
    """What a program keeps, after its gradients were compared with eager's."""
    noted = Kept()
    run = aot_function(
        program,
        operators=library,
        forward_compiler=noted,
        backward_compiler=lambda graph: graph,
        partition=partition,
    )
    torch.manual_seed(3)
    expected = torch.autograd.grad(program(*inputs).sum(), inputs)
    torch.manual_seed(3)
    found = torch.autograd.grad(run(*inputs).sum(), inputs)
    torch.testing.assert_close(found, expected)
    return noted


def grad(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes, dtype=torch.float64).requires_grad_()


def test_a_chain_of_arithmetic_is_computed_again(library: Any) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x * 2 + 1
        return ((y * y).relu() * y.neg()).cos()

    assert kept(program, library, grad(5), partition=min_cut()).operators == []
    assert len(kept(program, library, grad(5), partition=save_everything).operators) > 1


def test_products_are_not_computed_again(library: Any) -> None:
    """Of each product and what follows it one tensor is kept, the one that leaves the least to compute."""

    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return ((x @ w).relu() * 3 @ w).relu() @ w

    noted = kept(program, library, grad(4, 4), grad(4, 4), partition=min_cut())
    assert noted.operators == [aten.relu.default, aten.relu.default]


def test_the_smaller_side_of_a_conversion_is_kept(library: Any) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        half = x.exp().to(torch.float16)
        return (half.to(torch.float64) * half.to(torch.float64) * 2).sin()

    assert kept(program, library, grad(64), partition=min_cut()).bytes <= 64 * (2 + 8)


def test_random_numbers_are_never_drawn_again(library: Any) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return (nn.functional.dropout(x * 2, 0.5) * x).relu()

    for budget in (1.0, 0.5, 0.0):
        noted = kept(program, library, grad(100), partition=min_cut(budget))
        assert noted.bytes >= 100


def _network(width: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def program(x: torch.Tensor) -> torch.Tensor:
        for _ in range(4):
            hidden = nn.functional.gelu(nn.functional.layer_norm(x, (width,)) @ x.detach().t() * 0.1)
            x = x + (hidden @ x).softmax(-1)
        return x

    return program


def test_a_smaller_budget_never_keeps_more(library: Any) -> None:
    whole = kept(_network(16), library, grad(16, 16), partition=save_everything).bytes
    found = [
        kept(_network(16), library, grad(16, 16), partition=min_cut(budget)).bytes
        for budget in (1.0, 0.75, 0.5, 0.25, 0.1, 0.0)
    ]
    assert found == sorted(found, reverse=True)
    assert found[0] <= whole
    assert found[-1] == 0
    assert all(
        bytes <= budget * whole for bytes, budget in zip(found[1:], (0.75, 0.5, 0.25, 0.1), strict=False)
    )


def test_a_module_trains_under_a_budget(library: Any) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4)).double()
    x = torch.randn(6, 8, dtype=torch.float64)
    model(x).square().sum().backward()
    expected = [parameter.grad for parameter in model.parameters()]
    model.zero_grad(set_to_none=True)
    run = aot_module(model, operators=library, forward_compiler=lambda graph: graph, partition=min_cut(0.0))
    run(x).square().sum().backward()
    torch.testing.assert_close([parameter.grad for parameter in model.parameters()], expected, rtol=0, atol=0)


def test_what_is_computed_again_is_computed_where_it_is_used(library: Any) -> None:
    """Not all of it at the start of the backward, where it would be in memory at once."""
    graphs: list[Any] = []
    run = aot_function(
        lambda x, y: x.sin().exp().cos() + y.sin().exp().cos(),
        operators=library,
        forward_compiler=lambda graph: graph,
        backward_compiler=lambda graph: graphs.append(graph) or graph,
        partition=min_cut(0.0),
    )
    run(grad(4), grad(4))
    targets = [node.target for node in graphs[0].graph.nodes if node.op == "call_function"]
    first, second = (place for place, target in enumerate(targets) if target is aten.exp.default)
    assert aten.mul.Tensor in targets[first:second]


STEPS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "exp": lambda x, y: (x * 0.1).exp(),
    "mul": lambda x, y: x * y,
    "matmul": lambda x, y: x @ y,
    "softmax": lambda x, y: x.softmax(-1),
    "transpose": lambda x, y: x.t().sin(),
    "sum": lambda x, y: x - y.sum(0),
    "dropout": lambda x, y: nn.functional.dropout(x, 0.3) + y,
    "slice": lambda x, y: x * y[0],
}


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9)),
        min_size=2,
        max_size=9,
    ),
    budgets=st.lists(st.floats(0, 1), min_size=2, max_size=4),
)
def test_budgets_behave_monotonically(
    library: Any, steps: list[tuple[str, int, int]], budgets: list[float]
) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        made = [x]
        for name, one, other in steps:
            made.append(STEPS[name](made[one % len(made)], made[other % len(made)]))
        return made[-1] + made[-2]

    whole = kept(program, library, grad(5, 5), partition=save_everything).bytes
    found = [
        kept(program, library, grad(5, 5), partition=min_cut(budget)).bytes
        for budget in sorted([*budgets, 1.0])
    ]
    assert found == sorted(found)
    assert found[-1] <= whole


@pytest.mark.parametrize("budget", [-0.1, 1.1])
def test_budgets_have_bounds(budget: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        min_cut(budget)


@pytest.mark.slow
def test_twenty_thousand_values_are_cut_in_seconds(library: Any) -> None:
    recorder = Recorder(library, ShapeEnv())
    forward: list[Value] = [recorder.input("x", spec_of(torch.ones(4)))]
    for number in range(10_000):
        op = aten.exp.default if number % 4 == 0 else aten.add.Tensor
        operands = [forward[-1]] if number % 4 == 0 else [forward[-1], forward[-(number % 30) // 2 - 1]]
        forward.append(recorder.call(op, operands))
    recorder.backward = True
    value = recorder.input("tangent", spec_of(torch.ones(4)))
    for number in range(10_000):
        value = recorder.call(aten.mul.Tensor, (value, forward[-1 - number]))
    started = time.perf_counter()
    found = min_cut()([value], recorder.env)
    assert time.perf_counter() - started < 20
    assert {v.op for v in found} <= {aten.exp.default, aten.add.Tensor}
