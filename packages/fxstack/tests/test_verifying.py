"""``fxstack.verify``: right programs pass, a wrong operator is named with its line, and the repro script runs alone."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx import GraphModule

import fxstack
from aot_autograd import compile_joint
from inductor_codegen import CodegenOptions, compile_graph
from primtorch_decomps import DECOMPOSITIONS, LIBRARY, decompose

BROKEN = '''
import copy
import torch


class WrongBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0] * 1.01


def replacing(target, other):
    def backend(graph_module, example_inputs):
        made = copy.deepcopy(graph_module)
        for node in made.graph.nodes:
            if node.target in (target, getattr(torch.Tensor, target.__name__, None), target.__name__):
                node.op, node.target = "call_function", other
        made.recompile()
        return made.forward

    return backend


wrong_tanh = replacing(torch.tanh, lambda x: torch.tanh(x) * 1.001)
wrong_exp_backward = replacing(torch.exp, lambda x: WrongBackward.apply(x))


def rounds_after_relu(graph_module, example_inputs):
    """Wrong only where nothing but relu's own result is asked for: as a fault of fusion is."""
    made = copy.deepcopy(graph_module)
    if len(made.graph.output_node().args[0]) == 1:
        return replacing(torch.relu, lambda x: torch.relu(x) + 0.01)(made, example_inputs)
    return made.forward


def tanh_backend(graph_module, example_inputs):
    return wrong_tanh(graph_module, example_inputs)
'''


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "broken_backends.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(str(tmp_path))
    import broken_backends  # type: ignore[import-not-found]

    yield broken_backends
    sys.modules.pop("broken_backends")


def chain(x: Tensor) -> Tensor:
    y = torch.sin(x) * 2
    z = torch.tanh(y)
    return torch.relu(z) + x.sum()


def test_a_right_program_passes() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.BatchNorm1d(8), nn.Linear(8, 2))
    before = {key: value.clone() for key, value in model.state_dict().items()}
    found = fxstack.verify(model, backend="aot_eager")(torch.randn(5, 4, requires_grad=True))
    assert found.ok, found
    assert found.graphs == 1
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key]), key


def test_generated_code_passes(tmp_path: Path) -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.softmax(x, -1), (x.to(torch.bfloat16) * 3).exp()

    found = fxstack.verify(function, options={"cache_dir": tmp_path})(torch.randn(6, 16, requires_grad=True))
    assert found.ok, found


def test_random_numbers_are_the_same_in_all_runs() -> None:
    x = torch.randn(50)
    state = torch.random.get_rng_state()
    found = fxstack.verify(lambda x: nn.functional.dropout(x) * torch.rand_like(x), backend="aot_eager")(x)
    assert found.ok, found
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_wrong_operator_is_named_with_its_line(broken: Any) -> None:
    found = fxstack.verify(chain, backend=broken.wrong_tanh)(torch.randn(10))
    assert not found.ok
    assert found.operator is not None
    assert found.operator.endswith("tanh")
    assert found.stack[-1].line == chain.__code__.co_firstlineno + 2
    assert "test_verifying.py" in str(found)


def test_a_wrong_derivative_is_named(broken: Any) -> None:
    def function(x: Tensor) -> Tensor:
        return (torch.cos(x) + torch.exp(x)).sin()

    found = fxstack.verify(function, backend=broken.wrong_exp_backward)(torch.randn(10, requires_grad=True))
    assert found.operator is not None
    assert found.operator.endswith("exp")
    assert found.first is not None
    assert found.first.what.startswith("gradient of")


def test_a_fault_that_hides_when_all_is_returned_is_found_by_halving(broken: Any) -> None:
    found = fxstack.verify(chain, backend=broken.rounds_after_relu)(torch.randn(10))
    assert found.operator is not None
    assert found.operator.endswith("relu")


def test_a_wrong_decomposition_in_a_table_is_found(tmp_path: Path) -> None:
    table = dict(DECOMPOSITIONS)
    table[torch.ops.aten.tanh.default] = DECOMPOSITIONS[torch.ops.aten.sin.default]

    def compiler(graph: GraphModule) -> Callable[..., Sequence[Any]]:
        return compile_graph(decompose(graph, table), CodegenOptions(cache_dir=tmp_path))

    def backend(graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Sequence[Any]]:
        return compile_joint(graph, inputs, operators=LIBRARY, forward_compiler=compiler)

    found = fxstack.verify(chain, backend=backend)(torch.randn(10))
    assert found.operator is not None
    assert found.operator.endswith("tanh")


def test_the_repro_script_runs_alone(broken: Any, tmp_path: Path) -> None:
    script = tmp_path / "repro.py"
    found = fxstack.verify(chain, backend=broken.tanh_backend, repro=script)(torch.randn(3, 4)[:, ::2])
    assert found.path == script
    environment = dict(os.environ, PYTHONPATH=str(tmp_path))
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "first operator that differs" in done.stdout
    assert "tanh" in done.stdout
    (tmp_path / "broken_backends.py").write_text(
        "def tanh_backend(graph_module, example_inputs):\n    return graph_module.forward\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_repro_script_holds_what_is_at_fault_and_little_else(broken: Any) -> None:
    def function(x: Tensor) -> Tensor:
        for _ in range(20):
            x = torch.sin(x) * 2 + x.mean(-1, keepdim=True)
        x = torch.tanh(x.t().reshape(-1)) - 1
        return torch.cos(x).sum()

    found = fxstack.verify(function, backend=broken.wrong_tanh)(torch.randn(3, 4))
    assert found.repro is not None
    program = found.repro.partition("def program")[2].partition("if __name__")[0]
    assert "tanh" in program
    assert len(program.strip().splitlines()) == 3


def test_several_graphs_and_written_buffers(broken: Any) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))

    def function(x: Tensor) -> Tensor:
        y = model(x)
        print(end="")
        return torch.tanh(y)

    found = fxstack.verify(function, backend=broken.wrong_tanh)(torch.randn(4, 3))
    assert found.graphs >= 1
    assert found.operator is not None
    assert found.operator.endswith("tanh")
    assert int(model[1].num_batches_tracked) == 0


def test_the_function_and_its_arguments_in_one_call() -> None:
    assert str(fxstack.verify(torch.sin, torch.ones(3), backend="eager")) == "as good as eager, in 1 graph"
    with pytest.raises(TypeError, match="None is no function"):
        fxstack.verify(None)  # type: ignore[call-overload]


class Trainer:
    """A training step as programs have it: gradients, momentum, a learning rate that falls."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.5)

    def step(self, x: Tensor, labels: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.schedule.step()
        return loss

    def state(self) -> list[Any]:
        momenta = [entry["momentum_buffer"].tolist() for entry in self.optimizer.state.values()]
        tensors = [tensor.tolist() for tensor in self.model.state_dict().values()]
        grads = [None if p.grad is None else p.grad.tolist() for p in self.model.parameters()]
        return [momenta, tensors, grads, self.schedule.state_dict(), self.optimizer.param_groups[0]["lr"]]


@pytest.mark.parametrize("steps", [0, 2])
def test_a_whole_training_step(steps: int) -> None:
    trainer = Trainer()
    x, labels = torch.randn(5, 4), torch.tensor([0, 1, 1, 0, 1])
    for _ in range(steps):
        trainer.step(x, labels)
    before = trainer.state()
    found = fxstack.verify(trainer.step, backend="aot_eager")(x, labels)
    assert found.ok, found
    assert trainer.state() == before


def test_from_a_failing_training_step_to_a_script_that_shows_the_operator(
    broken: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer, script = Trainer(), tmp_path / "repro.py"
    x, labels = torch.randn(5, 4), torch.tensor([0, 1, 1, 0, 1])
    found = fxstack.verify(trainer.step, backend=broken.tanh_backend, repro=script)(x, labels)
    differ = {difference.what for difference in found.differences}
    assert {
        "content of self.model.1.weight after the call",
        ".grad of self.model.1.weight after the call",
    } <= differ
    assert found.operator is not None
    assert found.operator.endswith("tanh")
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    assert ended.value.code == 1
    assert re.search("first operator that differs: .*tanh", capsys.readouterr().out)


def test_a_write_that_is_lost_is_found() -> None:
    def forgetful(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        run = graph_module.forward
        return lambda *inputs: run(*(x.clone() if isinstance(x, Tensor) else x for x in inputs))

    counter = torch.zeros(3)

    def function(x: Tensor) -> Tensor:
        counter.add_(x)
        return x * 2

    found = fxstack.verify(function, backend=forgetful)(torch.ones(3))
    assert [difference.what for difference in found.differences] == ["content of counter after the call"]
    assert counter.tolist() == [0.0, 0.0, 0.0]
