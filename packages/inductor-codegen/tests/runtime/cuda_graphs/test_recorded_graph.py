"""When a graph is recorded and replayed, on a recorder that spoils whatever a replay may overwrite."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inductor_codegen.runtime.cuda_graphs import recorded_graph
from inductor_codegen.runtime.cuda_graphs.recorded_graph import WARM_CALLS, GraphForm, RecordedGraph
from inductor_codegen.runtime.cuda_graphs.trial import ROUNDS
from inductor_codegen.testing.recorder import ImitatedRecorder


class Graph:
    """A function in the place of a compiled graph; ``runs`` counts those that were no recording or replay."""

    def __init__(self, function: Callable[..., tuple[Any, ...]], kinds: str) -> None:
        self._function, self.calls = function, 0
        self.metadata = SimpleNamespace(input_kinds=kinds)

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        self.calls += 1
        return self._function(*inputs)

    def call_owning(self, inputs: list[Any], positions: tuple[int, ...]) -> tuple[Any, ...]:
        given = list(inputs)
        for place in positions:
            inputs[place] = None
        return self(*given)


def recorded(
    function: Callable[..., tuple[Any, ...]],
    kinds: str,
    recorder: ImitatedRecorder,
    **form: Any,
) -> RecordedGraph:
    given: Any = Graph(function, kinds)
    return RecordedGraph(given, GraphForm(**form), recorder)


@pytest.fixture
def recorder() -> ImitatedRecorder:
    return ImitatedRecorder()


def test_replays_after_the_warm_calls(recorder: ImitatedRecorder) -> None:
    weight = torch.randn(3)
    call = recorded(lambda x, w: (x * w, x.sum()), "tt", recorder, fixed=frozenset({1}))
    for n in range(WARM_CALLS + 4):
        x = torch.randn(3)
        product, total = call(x, weight)
        torch.testing.assert_close((product, total), (x * weight, x.sum()))
        weight.add_(1)  # its memory is read at each replay
        assert recorder.replays == max(0, n + 1 - WARM_CALLS)


def test_results_that_are_held_keep_what_they_are(recorder: ImitatedRecorder) -> None:
    call = recorded(lambda x: (x + 1,), "t", recorder)
    inputs = [torch.randn(4) for _ in range(12)]
    results = [call(x)[0] for x in inputs]
    for x, result in zip(inputs, results, strict=True):
        torch.testing.assert_close(result, x + 1)
    assert recorder.captures == 1  # that callers hold results was seen in the warm calls
    assert recorder.replays == len(inputs) - WARM_CALLS


def test_a_result_that_is_held_later_on_is_left_to_its_holder(recorder: ImitatedRecorder) -> None:
    call = recorded(lambda x: (x + 1, x * 2), "t", recorder)
    for _ in range(WARM_CALLS + 1):
        call(torch.randn(4))
    x = torch.randn(4)
    view = call(x)[0][1:]
    others = [call(torch.randn(4)) for _ in range(3)]
    torch.testing.assert_close(view, x[1:] + 1)
    assert len({pair[0].data_ptr() for pair in others}) == 3
    assert recorder.captures == 3  # another one for each result that was found to be held
    assert not call.why_not


def test_a_caller_may_write_to_a_result(recorder: ImitatedRecorder) -> None:
    call = recorded(lambda x: (x + 1,), "t", recorder)
    for _ in range(6):
        x = torch.randn(4)
        result = call(x)[0].mul_(3)
        torch.testing.assert_close(result, (x + 1) * 3)
        assert result._version == 1
        del result


def test_a_result_that_is_the_next_input(recorder: ImitatedRecorder) -> None:
    call = recorded(lambda x: (x * 0.5 + 1,), "t", recorder)
    state = expected = torch.randn(4)
    for _ in range(10):
        (state,) = call(state)
        expected = expected * 0.5 + 1
        torch.testing.assert_close(state, expected)
    assert recorder.replays > 4


def test_inputs_that_are_written_to_are_not_copied(recorder: ImitatedRecorder) -> None:
    call = recorded(lambda cache, x: (cache.add_(x), cache * 2), "tt", recorder)
    cache, expected = torch.zeros(4), torch.zeros(4)
    for _ in range(6):
        x = torch.randn(4)
        same, doubled = call(cache, x)
        expected += x
        assert same is cache
        torch.testing.assert_close(cache, expected)
        torch.testing.assert_close(doubled, expected * 2)
    assert recorder.replays == 6 - WARM_CALLS


def test_contents_that_the_caller_would_copy_are_copied_in_the_recording(recorder: ImitatedRecorder) -> None:
    call = recorded(lambda cache, x: (cache * 2, cache + x), "tt", recorder, writes=((1, 0),))
    cache, expected = torch.zeros(4), torch.zeros(4)
    for n in range(WARM_CALLS + 3):
        x = torch.randn(4)
        doubled, content = call(cache, x)
        torch.testing.assert_close(doubled, expected * 2)
        expected += x
        assert (content is cache) is (n >= WARM_CALLS)
        if content is not cache:
            cache.copy_(content)
        torch.testing.assert_close(cache, expected)
    assert cache._version == WARM_CALLS


def test_a_written_input_that_moves_is_recorded_again_until_it_is_too_often(
    recorder: ImitatedRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    call = recorded(lambda cache, x: (cache.add_(x),), "tt", recorder)
    with caplog.at_level(logging.WARNING):
        for _ in range(WARM_CALLS + recorded_graph.MOST_MOVES + 5):
            cache, x = torch.randn(4), torch.randn(4)
            before = cache.clone()
            call(cache, x)
            torch.testing.assert_close(cache, before + x)
    assert recorder.captures == recorded_graph.MOST_MOVES + 1
    assert "another place at each call" in call.why_not
    assert sum("IND501" in record.message for record in caplog.records) == 1


def test_a_parameter_that_moves_is_recorded_again(recorder: ImitatedRecorder) -> None:
    call = recorded(lambda x, w: (x * w,), "tt", recorder, fixed=frozenset({1}))
    weight = torch.nn.Parameter(torch.randn(4))
    for n in range(8):
        x = torch.randn(4)
        if n == 5:
            weight.data = torch.randn(4)
        torch.testing.assert_close(call(x, weight)[0], x * weight.detach())
    assert recorder.captures == 2


def test_large_inputs_are_read_where_they_stay_and_copied_once_they_move(recorder: ImitatedRecorder) -> None:
    call = recorded(lambda x: (x.sum(),), "t", recorder)
    large = torch.randn(recorded_graph.STAYS)
    for n in range(10):
        if n == 6:
            kept = large
            large = torch.randn(recorded_graph.STAYS)
        large.add_(1)
        torch.testing.assert_close(call(large)[0], large.sum())
    assert recorder.captures == 2
    torch.testing.assert_close(call(kept)[0], kept.sum())
    assert recorder.captures == 2


def test_one_recording_for_each_size_and_setting(recorder: ImitatedRecorder) -> None:
    call = recorded(lambda n, f, x: (x[:n] * f, n + 1), "ift", recorder)
    for _ in range(WARM_CALLS + 2):
        for n in (2, 3):
            for settings in ("one", "other"):
                recorder.settings = settings
                x = torch.randn(n)
                result, number = call(n, 0.5, x)
                torch.testing.assert_close(result, x * 0.5)
                assert number == n + 1
    assert recorder.captures == 4
    assert recorder.replays == 8


def test_too_many_sizes_are_reported(recorder: ImitatedRecorder, caplog: pytest.LogCaptureFixture) -> None:
    call = recorded(lambda f, x: (x * f,), "ft", recorder)
    with caplog.at_level(logging.WARNING):
        for n in range(recorded_graph.MOST_KEYS + 3):
            x = torch.randn(3)
            torch.testing.assert_close(call(float(n), x)[0], x * n)
    assert "different sizes" in call.why_not
    assert sum("IND501" in record.message for record in caplog.records) == 1


def test_a_tensor_of_another_form_runs_the_graph_as_it_is(recorder: ImitatedRecorder) -> None:
    call = recorded(lambda x: (x + 1,), "t", recorder)
    for _ in range(4):
        call(torch.randn(3, 4))
    replays = recorder.replays
    x = torch.randn(4, 3).t()
    torch.testing.assert_close(call(x)[0], x + 1)
    assert recorder.replays == replays


def test_expanded_inputs_and_results(recorder: ImitatedRecorder) -> None:
    call = recorded(lambda x: ((x[:, 0] * 2)[:, None].expand(3, 4), x + 1), "t", recorder)
    held = []
    for _ in range(WARM_CALLS + 3):
        x = torch.randn(3, 1).expand(3, 4)
        held.append((call(x), x))
    for (doubled, more), x in held:
        torch.testing.assert_close((doubled, more), (x * 2, x + 1))
        assert doubled.stride() == (1, 0)
    assert recorder.replays == 3


def test_an_input_that_overlaps_itself_is_not_copied(recorder: ImitatedRecorder) -> None:
    call = recorded(lambda x: (x.sum(),), "t", recorder)
    for _ in range(WARM_CALLS + 2):
        x = torch.randn(5).as_strided((2, 2, 2), (1, 0, 1))
        torch.testing.assert_close(call(x)[0], x.sum())
    assert recorder.captures + bool(call.why_not) == 1


def test_what_is_kept_for_a_backward_is_waited_for(recorder: ImitatedRecorder) -> None:
    forward = recorded(lambda x: (x.sum(), x.exp()), "t", recorder, kept=frozenset({1}))
    backward = recorded(lambda e, g: (e * g,), "tt", recorder, of_forward=frozenset({0}))

    def step(x: torch.Tensor) -> Callable[[], torch.Tensor]:
        _, kept = forward(x)
        given = [kept, torch.tensor(2.0)]
        del kept
        return lambda: backward.call_owning(given, (0,))[0]

    for _ in range(2 * WARM_CALLS + 2):
        x = torch.randn(4)
        torch.testing.assert_close(step(x)(), x.exp() * 2)
    assert recorder.captures == 2
    replays = recorder.replays
    xs = [torch.randn(4) for _ in range(3)]
    gradients = [later() for later in [step(x) for x in xs]]
    for x, gradient in zip(xs, gradients, strict=True):
        torch.testing.assert_close(gradient, x.exp() * 2)
    assert recorder.replays == replays + 2  # one forward, and its backward
    assert not forward.why_not
    assert not backward.why_not


def test_gradients_that_accumulate(recorder: ImitatedRecorder) -> None:
    forward = recorded(lambda x: (x.sum(), x.exp()), "t", recorder, kept=frozenset({1}))
    backward = recorded(lambda e, g: (e * g,), "tt", recorder, of_forward=frozenset({0}))
    held: torch.Tensor | None = None
    expected = torch.zeros(4)
    for n in range(16):
        x = torch.randn(4)
        (gradient,) = backward.call_owning([forward(x)[1], torch.tensor(1.0)], (0,))
        expected = x.exp() if n % 4 == 0 else expected + x.exp()
        if n % 4 == 0:
            held = gradient  # as autograd does: the first is kept as it is
        else:
            assert held is not None
            held += gradient
        del gradient
        torch.testing.assert_close(held, expected)
    assert recorder.replays > 16


def test_a_backward_whose_forward_is_not_recorded(
    recorder: ImitatedRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    backward = recorded(lambda e: (e * 2,), "t", recorder, of_forward=frozenset({0}))
    with caplog.at_level(logging.INFO):
        for _ in range(recorded_graph.MOST_WAITS + WARM_CALLS + 5):
            x = torch.randn(3)
            torch.testing.assert_close(backward(x)[0], x * 2)
    assert sum("forward is not recorded" in record.message for record in caplog.records) == 1
    assert recorder.captures == 0


def test_replays_that_take_longer_are_not_made(
    recorder: ImitatedRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    recorder.taken, recorder.late = (0.001, 0.002), True
    call = recorded(lambda n, x: (x + n,), "it", recorder)
    with caplog.at_level(logging.INFO):
        for late in (True, False):
            recorder.late = late
            for _ in range(WARM_CALLS + ROUNDS + 3):
                x = torch.randn(3)
                torch.testing.assert_close(call(1, x)[0], x + 1)
            assert bool(caplog.records) is not late
    replays = recorder.replays
    assert "2.000 ms" in caplog.text
    assert "1.000 ms" in caplog.text
    recorder.taken = (2.0, 1.0)
    for _ in range(WARM_CALLS + ROUNDS + 3):  # another size is another question
        call(2, torch.randn(3))
    call(1, torch.randn(3))
    assert recorder.replays == replays + ROUNDS + 3


def test_interleaved_graphs_of_one_pool(recorder: ImitatedRecorder) -> None:
    one = recorded(lambda x: (x + 1,), "t", recorder)
    other = recorded(lambda x: (x * 2,), "t", recorder)
    held = None
    for _ in range(8):
        x, y = torch.randn(4), torch.randn(4)
        first = one(x)[0]
        second = other(first)[0]
        torch.testing.assert_close(first, x + 1)
        torch.testing.assert_close(second, (x + 1) * 2)
        if held is not None:
            torch.testing.assert_close(held[0], held[1] * 2)
        held = other(y)[0], y
    assert recorder.replays > 10


def test_what_cannot_be_recorded_is_reported_once_and_runs(
    recorder: ImitatedRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    recorder.refuses = "an operator waits for the GPU"
    call = recorded(lambda x: (x + 1,), "t", recorder, name="the forward of f")
    with caplog.at_level(logging.WARNING):
        for _ in range(6):
            x = torch.randn(3)
            torch.testing.assert_close(call(x)[0], x + 1)
    (record,) = [record for record in caplog.records if "IND501" in record.message]
    assert "the forward of f: an operator waits" in record.message


def test_a_result_in_the_memory_of_a_copied_input_is_no_replay(recorder: ImitatedRecorder) -> None:
    call = recorded(lambda x: (x[1:],), "t", recorder)
    for _ in range(5):
        x = torch.randn(3)
        assert call(x)[0].data_ptr() == x[1:].data_ptr()
    assert "shares the memory" in call.why_not


def test_a_view_of_a_parameter(recorder: ImitatedRecorder) -> None:
    call = recorded(lambda w, x: (w[1:], x + 1), "tt", recorder, fixed=frozenset({0}))
    weight = torch.randn(3)
    views = []
    for _ in range(6):
        x = torch.randn(3)
        view, result = call(weight, x)
        views.append(view)
        assert view.data_ptr() == weight[1:].data_ptr()
        torch.testing.assert_close(result, x + 1)
    assert recorder.replays == 6 - WARM_CALLS


def test_nothing_is_recorded_where_nothing_may_be(recorder: ImitatedRecorder) -> None:
    recorder.away = True
    call = recorded(lambda x: (x + 1,), "t", recorder)
    for _ in range(5):
        call(torch.randn(3))
    assert recorder.captures == 0
    assert not call.why_not


def test_results_are_inference_tensors_where_the_call_is_in_inference_mode(
    recorder: ImitatedRecorder,
) -> None:
    call = recorded(lambda x: (x + 1,), "t", recorder)
    x = torch.randn(3)
    for _ in range(5):
        with torch.inference_mode():
            assert call(x)[0].is_inference()
        assert not call(x)[0].is_inference()


def test_an_exception_of_the_graph_is_the_callers(recorder: ImitatedRecorder) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor]:
        if fails:
            raise ZeroDivisionError
        return (x + 1,)

    fails = True
    call = recorded(function, "t", recorder)
    with pytest.raises(ZeroDivisionError):
        call(torch.randn(3))
    fails = False
    for _ in range(4):
        x = torch.randn(3)
        torch.testing.assert_close(call(x)[0], x + 1)


def test_threads(recorder: ImitatedRecorder) -> None:
    call = recorded(lambda x: (x * 2 + 1,), "t", recorder)
    wrong: list[int] = []

    def work(seed: int) -> None:
        for n in range(40):
            x = torch.full((64,), float(seed * 100 + n))
            result = call(x)[0]
            if not torch.equal(result, x * 2 + 1):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert recorder.replays > 0


def test_nothing_is_recorded_beside_other_threads_unless_that_is_asked_for(
    recorder: ImitatedRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    recorder.alone = False
    call = recorded(lambda x: (x + 1,), "t", recorder)
    told = recorded(lambda x: (x + 1,), "t", recorder, beside_threads=True)
    with caplog.at_level(logging.WARNING):
        for _ in range(40):
            x = torch.randn(3)
            torch.testing.assert_close(call(x), (x + 1,))
    (record,) = caplog.records
    assert "beside threads" in record.message
    assert recorder.captures == 0
    for _ in range(WARM_CALLS + 2):
        told(torch.randn(3))
    assert recorder.captures == 1
    recorder.alone = True
    call(torch.randn(3))
    assert recorder.captures == 2


def test_parameters_that_move_beside_other_threads_are_followed_afterwards(
    recorder: ImitatedRecorder,
) -> None:
    call = recorded(lambda x, w: (x * w,), "tt", recorder, fixed=frozenset({1}))
    weight = torch.nn.Parameter(torch.randn(4))
    for n in range(30):
        recorder.alone = not 6 <= n < 26
        if n >= 6:
            kept = weight.data
            weight.data = weight.data.clone() if n < 26 else kept
        x = torch.randn(4)
        torch.testing.assert_close(call(x, weight)[0], x * weight.detach())
    assert not call.why_not
    assert recorder.captures == 2


def test_a_recording_that_is_gone_leaves_its_results(recorder: ImitatedRecorder) -> None:
    first = recorded(lambda x: (x + 1,), "t", recorder)
    second = recorded(lambda x: (x * 2,), "t", recorder)
    for _ in range(WARM_CALLS + 1):
        first(torch.randn(3))
    for _ in range(WARM_CALLS + 1):
        second(torch.randn(3))
    x = torch.randn(3)
    (result,) = second(x)
    del second
    gc.collect()
    for _ in range(3):
        first(torch.randn(3))
    torch.testing.assert_close(result, x * 2)
    del result
    first(torch.randn(3))
    assert len(recorder.pool._given_out) == 1
