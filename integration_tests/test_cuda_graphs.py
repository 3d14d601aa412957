"""``mode="reduce-overhead"`` on programs, with a recorder that needs no GPU and spoils what a replay may overwrite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

import fxstack
from fxstack.programs import recorded
from inductor_codegen.runtime.cuda_graphs.recorded_graph import RecordedGraph
from inductor_codegen.testing.recorder import ImitatedRecorder


class Recorder(ImitatedRecorder):
    """Also keeps the graphs that it records."""

    def __init__(self) -> None:
        super().__init__()
        self.graphs: list[RecordedGraph] = []


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    made = Recorder()

    def with_cuda_graphs(graph: Any, form: Any) -> RecordedGraph:
        made.graphs.append(RecordedGraph(graph, form, made))
        return made.graphs[-1]

    monkeypatch.setattr(recorded, "with_cuda_graphs", with_cuda_graphs)
    fxstack.reset()
    yield made
    fxstack.reset()


def compiled(function: Any, **options: Any) -> Any:
    return fxstack.compile(function, mode="reduce-overhead", **options)


def network(dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(16, 32), nn.BatchNorm1d(32), nn.GELU(), nn.Dropout(dropout), nn.Linear(32, 4)
    )


def trained(model: nn.Module, called: Callable[..., Any], steps: int, **step: Any) -> list[torch.Tensor]:
    """Losses, parameters and buffers after ``steps``."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=True)
    losses = []
    torch.manual_seed(1)
    for n in range(steps):
        x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
        loss = nn.functional.cross_entropy(called(x), y)
        losses.append(loss)
        loss.backward()
        if n % step.get("accumulate", 1) == step.get("accumulate", 1) - 1:
            optimizer.step()
            optimizer.zero_grad(set_to_none=step.get("to_none", True))
    return [*losses, *model.parameters(), *model.buffers()]


def same(ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "step", [{}, {"accumulate": 3}, {"to_none": False}, {"accumulate": 2, "to_none": False}]
)
def test_training_equals_the_default(recorder: Recorder, step: dict[str, Any]) -> None:
    ours, theirs = network(0.3), network(0.3)
    results = trained(ours, compiled(ours), 14, **step)
    replays = recorder.replays
    same(results, trained(theirs, fxstack.compile(theirs), 14, **step))
    assert replays >= 14
    assert not any(graph.why_not for graph in recorder.graphs)


def test_two_calls_before_one_backward(recorder: Recorder) -> None:
    ours, theirs = network(), network()
    called = compiled(ours)
    for _ in range(8):
        x, y = torch.randn(8, 16), torch.randn(8, 16)
        for call in (called, theirs):
            (call(x).square().sum() + call(y).sum()).backward()
    same([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()])  # type: ignore[misc]
    assert recorder.replays > 4


def test_a_backward_that_is_repeated(recorder: Recorder) -> None:
    model = network()
    called = compiled(model)
    for _ in range(6):
        x = torch.randn(8, 16, requires_grad=True)
        result = called(x).sum()
        result.backward(retain_graph=True)
        first = x.grad.clone()  # type: ignore[union-attr]
        other = called(torch.randn(8, 16))
        result.backward()
        torch.testing.assert_close(x.grad, 2 * first)
        del other
    assert recorder.replays > 0


def test_losses_that_are_kept(recorder: Recorder) -> None:
    model = network()
    called = compiled(lambda x: model(x).square().mean())
    inputs = [torch.randn(8, 16) for _ in range(10)]
    losses = [called(x) for x in inputs]
    expected = [model(x).square().mean() for x in inputs]
    model.eval()
    same(losses, expected)
    sum(losses).backward()  # type: ignore[attr-defined]
    assert recorder.replays > 0


def test_interleaved_models(recorder: Recorder) -> None:
    one, other = network(), network()
    first, second = compiled(one), compiled(other)
    for _ in range(8):
        x = torch.randn(8, 16)
        y = second(torch.nn.functional.pad(first(x), (0, 12)))
        expected = other(torch.nn.functional.pad(one(x), (0, 12)))
        torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-4)
        y.sum().backward()
    assert recorder.replays > 12


def test_a_graph_break_in_the_middle(recorder: Recorder) -> None:
    layer = nn.Linear(16, 16)

    def function(x: torch.Tensor) -> torch.Tensor:
        y = layer(x).relu()
        print(end="")
        return layer(y).sum()

    called = compiled(function)
    for _ in range(8):
        x = torch.randn(8, 16)
        torch.testing.assert_close(called(x), function(x))
        called(x).backward()
    assert recorder.replays > 16


def test_sizes_that_vary(recorder: Recorder) -> None:
    layer = nn.Linear(16, 16)
    called = compiled(layer, dynamic=True)
    for _ in range(4):
        for rows in (2, 5, 9):
            x = torch.randn(rows, 16)
            torch.testing.assert_close(called(x), layer(x))
            called(x).sum().backward()
    assert recorder.captures >= 3


def test_a_static_cache(recorder: Recorder) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_layer=2, n_embd=32, n_head=2, vocab_size=64, n_positions=64)
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config).eval()
    prompt = torch.randint(0, 64, (2, 4))

    def decoded(call: Any) -> torch.Tensor:
        cache = transformers.StaticCache(config=config, max_cache_len=32)
        with torch.no_grad():
            given = model(prompt, past_key_values=cache, cache_position=torch.arange(4))
            tokens = [given.logits[:, -1].argmax(-1, keepdim=True)]
            for position in range(4, 20):
                step = torch.tensor([position])
                logits = call(tokens[-1], past_key_values=cache, cache_position=step).logits
                tokens.append(logits[:, -1].argmax(-1, keepdim=True))
        return torch.cat(tokens, 1)

    expected = decoded(model)
    assert torch.equal(decoded(compiled(model)), expected)
    assert recorder.replays > 4


def test_weights_that_are_replaced(recorder: Recorder) -> None:
    model = nn.Linear(4, 4)
    called = compiled(model)
    for n in range(8):
        if n == 5:
            model.weight.data = torch.randn(4, 4)
        if n == 6:
            model.load_state_dict(nn.Linear(4, 4).state_dict())
        x = torch.randn(2, 4)
        torch.testing.assert_close(called(x), model(x))


def test_a_cpu_needs_no_graphs(caplog: pytest.LogCaptureFixture) -> None:
    called = compiled(lambda x: x + 1)
    for _ in range(4):
        torch.testing.assert_close(called(torch.ones(3)), torch.full((3,), 2.0))
    assert not caplog.records


def test_an_evaluation_between_steps_leaves_gradients_in_their_memory(recorder: Recorder) -> None:
    """It was recorded first, and would overwrite them: it is recorded once more, and they are never copied."""
    evaluated, ours, theirs = network(), network(), network()
    evaluated.eval()
    evaluate, called = compiled(evaluated), compiled(ours)
    x = torch.randn(8, 16)
    for step in range(24):
        if step < 6 or step % 5 == 0:
            with torch.no_grad():
                torch.testing.assert_close(evaluate(x), evaluated(x))
        if step >= 6:
            ours.zero_grad()
            theirs.zero_grad()
            for call in (called, theirs):
                call(x).square().sum().backward()
            same([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()])  # type: ignore[misc]
    made = [key.recording for graph in recorder.graphs for key in graph._keys.values()]
    recordings = [recording for recording in made if recording is not None]
    assert len(recordings) == 3
    assert recorder.captures == 4
    assert not any(recording.results.copied for recording in recordings)
