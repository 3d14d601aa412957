"""``mode="reduce-overhead"`` on a CUDA device: the program sees what the default mode shows, and graphs replay."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

import fxstack

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


class Counts:
    """How often graphs were recorded and replayed."""

    def __init__(self) -> None:
        self.captures = self.replays = 0


@pytest.fixture(autouse=True)
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counts]:
    pytest.importorskip("triton")
    from inductor_codegen.runtime.cuda_graphs import trial
    from inductor_codegen.runtime.cuda_graphs.cuda import CudaRecorder
    from inductor_codegen.runtime.cuda_graphs.recorder import Captured

    made, capture = Counts(), CudaRecorder.capture

    def counted(self: CudaRecorder, *args: Any) -> Captured:
        captured = capture(self, *args)
        made.captures += 1

        def replay() -> None:
            made.replays += 1
            captured.replay()

        return Captured(replay, captured.results)

    monkeypatch.setattr(CudaRecorder, "capture", counted)
    monkeypatch.setattr(trial, "SLOWER", float("inf"))  # graphs as small as these may not pay
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    fxstack.reset()
    yield made
    fxstack.reset()
    torch.backends.cuda.matmul.allow_tf32 = before


def compiled(function: Any, **options: Any) -> Any:
    # what runs the tests may have threads of its own, which draw nothing
    return fxstack.compile(function, options={"cuda_graphs": "beside threads"}, **options)


def close(one: Any, other: Any, tolerance: float = 1e-4) -> None:
    torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def network(dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(0)
    made = nn.Sequential(
        nn.Linear(64, 128), nn.BatchNorm1d(128), nn.GELU(), nn.Dropout(dropout), nn.Linear(128, 8)
    )
    return made.cuda()


def gpt2(layers: int = 2, **config: Any) -> nn.Module:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {
        "n_embd": 64,
        "n_head": 4,
        "vocab_size": 257,
        "n_positions": 64,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    made: nn.Module = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_layer=layers, **sizes, **config)
    ).cuda()
    return made


def trained(
    model: nn.Module, called: Callable[..., Any], steps: int, accumulate: int = 1
) -> list[torch.Tensor]:
    """Losses, parameters and buffers after ``steps``; all losses are held."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(1)
    losses = []
    for n in range(steps):
        x, y = torch.randn(32, 64, device="cuda"), torch.randint(0, 8, (32,), device="cuda")
        loss = nn.functional.cross_entropy(called(x), y)
        losses.append(loss.detach())
        loss.backward()
        if n % accumulate == accumulate - 1:
            optimizer.step()
            optimizer.zero_grad()
    return [*losses, *model.parameters(), *model.buffers()]


def test_inference_replays(counts: Counts) -> None:
    model = network().eval()
    called = compiled(model, fullgraph=True)
    with torch.no_grad():
        inputs = [torch.randn(16, 64, device="cuda") for _ in range(8)]
        results = [called(x) for x in inputs]
        for x, result in zip(inputs, results, strict=True):
            close(result, model(x))
    assert counts.captures == 1
    assert counts.replays == 5


def test_gpt2_decodes_with_a_static_cache(counts: Counts) -> None:
    import transformers

    model = gpt2().eval()
    prompt = torch.randint(0, 257, (2, 4), device="cuda")

    def decoded(call: Any) -> tuple[torch.Tensor, torch.Tensor]:
        cache = transformers.StaticCache(config=model.config, max_cache_len=48)
        with torch.no_grad():
            place = torch.arange(4, device="cuda")
            logits = [model(prompt, past_key_values=cache, cache_position=place).logits[:, -1:]]
            for position in range(4, 24):
                place = torch.tensor([position], device="cuda")
                tokens = logits[-1].argmax(-1)
                logits.append(
                    call(tokens, past_key_values=cache, position_ids=place[None], cache_position=place).logits
                )
        return torch.cat(logits, 1), torch.cat([layer.keys for layer in cache.layers])

    expected, keys = decoded(model)
    call = compiled(model)
    for _ in range(2):  # with a cache in another place
        ours, our_keys = decoded(call)
        close(ours, expected, 1e-3)
        close(our_keys, keys, 1e-3)
    assert counts.replays > 20


@pytest.mark.parametrize("accumulate", [1, 3])
def test_training_with_an_optimizer(counts: Counts, accumulate: int) -> None:
    ours, theirs = network(), network()
    results = trained(ours, compiled(ours), 15, accumulate)
    replays = counts.replays
    expected = trained(theirs, fxstack.compile(theirs), 15, accumulate)
    for one, other in zip(results, expected, strict=True):
        close(one, other, 1e-3)
    assert replays >= 15


def test_dropout_draws_what_the_default_draws(counts: Counts) -> None:
    ours, theirs = network(0.4), network(0.4)
    results = trained(ours, compiled(ours), 12)
    assert counts.replays > 12
    after = torch.cuda.get_rng_state()
    expected = trained(theirs, fxstack.compile(theirs), 12)
    assert torch.equal(after, torch.cuda.get_rng_state())
    for one, other in zip(results, expected, strict=True):
        close(one, other, 1e-3)


def test_dropout_masks_are_the_defaults_bit_for_bit(counts: Counts) -> None:
    def mask(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(x, 0.3) + torch.rand_like(x)

    x = torch.ones(1000, device="cuda")
    drawn = []
    for call in (compiled(mask), fxstack.compile(mask)):
        torch.manual_seed(3)
        results = [call(x) for _ in range(8)]
        torch.manual_seed(4)
        drawn.append([*results, call(x), torch.rand(3, device="cuda")])
    for one, other in zip(*drawn, strict=True):
        assert torch.equal(one, other)
    assert len({result.sum().item() for result in drawn[0]}) == len(drawn[0])
    assert counts.replays == 6


def test_gpt2_trains(counts: Counts) -> None:
    losses = []
    for compiler in (compiled, fxstack.compile):
        model = gpt2(
            resid_pdrop=0.1, embd_pdrop=0.1, attn_pdrop=0.0, use_cache=False, attn_implementation="eager"
        )
        called = compiler(model)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        torch.manual_seed(2)
        ids = torch.randint(0, 257, (4, 32), device="cuda")
        found = []
        for _ in range(12):
            optimizer.zero_grad()
            loss = called(input_ids=ids, labels=ids).loss
            loss.backward()
            optimizer.step()
            found.append(float(loss.detach()))
        losses.append(found)
        if compiler is compiled:
            assert counts.replays >= 16
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert losses[0][-1] < losses[0][0]


def test_parameters_that_move(counts: Counts) -> None:
    model = nn.Linear(64, 64).cuda()
    called = compiled(model)
    with torch.no_grad():
        for n in range(9):
            if n == 5:
                model.weight.data = torch.randn(64, 64, device="cuda")
            if n == 7:
                model.weight.mul_(2)
            x = torch.randn(8, 64, device="cuda")
            close(called(x), model(x))
    assert counts.captures == 2


def test_an_input_written_to_that_moves(counts: Counts) -> None:
    def add(cache: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        cache.add_(x.sin())
        return cache * 2

    called = compiled(add)
    for n in range(10):
        if n % 4 == 0:
            cache = torch.zeros(1 << 16, device="cuda")
            expected = torch.zeros_like(cache)
        x = torch.randn(1 << 16, device="cuda")
        expected += x.sin()
        close(called(cache, x), expected * 2)
        close(cache, expected)
    assert counts.replays > 5


def test_two_forwards_before_their_backwards(counts: Counts) -> None:
    ours, theirs = network().eval(), network().eval()
    called = compiled(ours)
    for _ in range(8):
        x, y = torch.randn(16, 64, device="cuda"), torch.randn(16, 64, device="cuda")
        for call in (called, theirs):
            (call(x).square().sum() + call(y).sum()).backward()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        close(one.grad, other.grad, 1e-3)
    assert counts.replays > 4


def test_interleaved_models_share_memory(counts: Counts) -> None:
    models = [network().eval() for _ in range(3)]
    calls = [compiled(model) for model in models]
    held: list[tuple[torch.Tensor, torch.Tensor]] = []
    for _ in range(8):
        for model, call in zip(models, calls, strict=True):
            x = torch.randn(16, 64, device="cuda")
            result = call(x)
            held.append((result.detach(), model(x).detach()))
            result.sum().backward()
    for one, other in held:
        close(one, other)
    assert counts.replays > 20


def test_sizes_that_vary(counts: Counts) -> None:
    layer = nn.Linear(64, 64).cuda()
    called = compiled(layer, dynamic=True)
    for _ in range(5):
        for rows in (2, 7, 16):
            x = torch.randn(rows, 64, device="cuda", requires_grad=True)
            result = called(x)
            close(result, layer(x))
            result.sum().backward()
            close(x.grad, layer.weight.sum(0).expand(rows, 64))
    assert counts.captures >= 6


def test_threads(counts: Counts, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """They replay what has been recorded before, in one pool, and record nothing: each draws random numbers."""
    from inductor_codegen.runtime.cuda_graphs.cuda import CudaRecorder

    model = network().eval()
    called, other = (fxstack.compile(model, mode="reduce-overhead") for _ in range(2))
    wrong: list[str] = []
    with monkeypatch.context() as context, torch.no_grad():
        context.setattr(CudaRecorder, "is_alone", lambda self: True)  # but for threads of what runs the tests
        for _ in range(5):
            called(torch.randn(16, 64, device="cuda"))
    captures, replays = counts.captures, counts.replays
    assert captures == 1

    def work(call: Callable[..., Any], stream: Any) -> None:
        try:
            with torch.no_grad(), torch.cuda.stream(stream):
                for _ in range(30):
                    x = torch.randn(16, 64, device="cuda")
                    if not torch.allclose(call(x), model(x), rtol=1e-4, atol=1e-4):
                        wrong.append("another result")
        except Exception as error:
            wrong.append(repr(error))

    default = torch.cuda.default_stream()
    given = [(called, default), (called, default), (other, default), (other, torch.cuda.Stream())]
    threads = [threading.Thread(target=work, args=args) for args in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert counts.captures == captures
    assert counts.replays > replays
    assert "other threads are alive" in caplog.text


def reasons(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "IND501" in record.getMessage()]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x[x > 0].sum() + 1, ""),
        (lambda x: torch.linalg.inv(x @ x.T + torch.eye(16, device="cuda")) * 2, ""),
        (lambda x: (x + 1).cpu(), "CPU"),
        (lambda x: x * torch.nonzero(x).shape[0], "size"),
    ],
)
def test_what_waits_is_not_recorded(
    counts: Counts, caplog: pytest.LogCaptureFixture, function: Callable[..., Any], reason: str
) -> None:
    called = compiled(function)
    with caplog.at_level(logging.WARNING):
        for _ in range(6):
            x = torch.randn(16, 16, device="cuda")
            close(called(x), function(x), 1e-3)
            torch.rand(2, device="cuda")
    print(reasons(caplog))
    assert counts.replays == 0 or not reasons(caplog)
    if reason:
        (said,) = reasons(caplog)
        assert reason in said
    torch.cuda.synchronize()


def test_after_a_recording_that_failed_all_goes_on(counts: Counts, caplog: pytest.LogCaptureFixture) -> None:
    from inductor_codegen.runtime.cuda_graphs.cuda import cuda_recorder
    from inductor_codegen.runtime.cuda_graphs.recorder import NotRecordedError

    recorder = cuda_recorder(torch.cuda.current_device())
    around = recorder.surroundings()
    assert around is not None
    x = torch.randn(64, 64, device="cuda")
    assert (x @ x).shape == x.shape  # cuBLAS begins

    def waits() -> tuple[Any, ...]:
        y = torch.rand(64, 64, device="cuda") @ x
        return (y * y.sum().item(),)

    before = torch.cuda.current_stream()
    torch.manual_seed(0)
    expected = torch.rand(4, device="cuda")
    torch.manual_seed(0)
    with pytest.raises(NotRecordedError, match="capturing"):
        recorder.capture(waits, (), around.pool)
    assert torch.cuda.current_stream() == before
    assert torch.equal(torch.rand(4, device="cuda"), expected)
    torch.cuda.synchronize()
    close(x @ x, (x.double() @ x.double()).float(), 1e-3)
    del waits
    gc.collect()
    torch.cuda.empty_cache()
    test_dropout_masks_are_the_defaults_bit_for_bit(counts)


def test_an_exception_between_forward_and_backward(counts: Counts) -> None:
    model = network().eval()
    called = compiled(model)
    for n in range(10):
        x = torch.randn(16, 64, device="cuda")
        try:
            loss = called(x).sum()
            if n % 2:
                raise KeyError(n)
            loss.backward()
        except KeyError:
            if n % 4 == 3:  # else what the forward has kept is still needed, and the next call runs as it is
                del loss
    x = torch.randn(16, 64, device="cuda", requires_grad=True)
    called(x).sum().backward()
    close(x.grad, torch.autograd.grad(model(x).sum(), x)[0])
    assert counts.replays > 4


def test_inside_of_the_programs_own_recording(counts: Counts) -> None:
    model = network().eval()
    called = compiled(model)
    x = torch.randn(16, 64, device="cuda")
    with torch.no_grad():
        for _ in range(5):
            called(x)
        before = counts.replays
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = called(x)
        assert counts.replays == before
        x.normal_()
        graph.replay()
        close(result, model(x))


def test_memory_is_given_back(counts: Counts) -> None:
    clear_workspaces = (
        torch._C._cuda_clearCublasWorkspaces
    )  # one for each stream and thread, while the process lives
    clear_workspaces()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)]).cuda()
    called = compiled(model)
    for _ in range(10):
        called(torch.randn(512, 512, device="cuda")).sum().backward()
        model.zero_grad()
    assert counts.replays > 6
    del called, model
    fxstack.reset()
    gc.collect()
    clear_workspaces()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() - before < 4 << 20


def test_a_result_that_another_stream_reads(counts: Counts) -> None:
    called = compiled(lambda x: x * 2 + 1)
    side = torch.cuda.Stream()
    sums = []
    for n in range(8):
        x = torch.full((1 << 20,), float(n), device="cuda")
        result = called(x)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            sums.append(result.mean())
        torch.cuda.current_stream().wait_stream(side)
        del result
    for n, found in enumerate(sums):
        assert found.item() == 2 * n + 1
