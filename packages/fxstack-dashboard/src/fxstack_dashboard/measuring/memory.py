"""The peak memory of one step: exact, from what torch's allocators hand out and take back.

On a CPU every block is reported to the profiler, so that live bytes are known after each; counted is all tensor memory
from the module's construction on, parameters and gradients included, and what a compiler keeps between calls. On a GPU
it is the caching allocator's own figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import torch

_MARK = "fxstack_dashboard: one step"
_WARM_UP = 2


class StepMemory(NamedTuple):
    """Bytes of live tensor memory: ``before`` the step, at its ``peak``, and ``after`` it."""

    before: int
    peak: int
    after: int


def peak_of_step(make_step: Callable[[], Callable[[], Any]], device: str) -> int:
    """Bytes at the peak of one call of what ``make_step`` returns, after two calls."""
    return memory_of_step(make_step).peak if device == "cpu" else _peak_on_gpu(make_step)


def _peak_on_gpu(make_step: Callable[[], Callable[[], Any]]) -> int:
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    step = make_step()
    for _ in range(_WARM_UP):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def memory_of_step(make_step: Callable[[], Callable[[], Any]], warm_up: int = _WARM_UP) -> StepMemory:
    """The CPU memory of one call of what ``make_step`` returns, after ``warm_up`` calls, all under the profiler.

    Memory that was allocated before does not count.
    """
    from torch.profiler import ProfilerActivity, profile, record_function

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step = make_step()
        for _ in range(warm_up):
            step()
        with record_function(_MARK):
            step()
        assert profiler.profiler is not None
    events = list(_flat(profiler.profiler.kineto_results.experimental_event_tree()))
    (mark,) = [event for event in events if event.name == _MARK]
    changes = sorted(
        (event.start_time_ns, event.extra_fields.alloc_size)
        for event in events
        if event.name == "[memory]" and event.extra_fields.device.type == "cpu"
    )
    before = sum(change for time, change in changes if time < mark.start_time_ns)
    inside = [change for time, change in changes if mark.start_time_ns <= time <= mark.end_time_ns]
    live = list(accumulate(inside, initial=before))
    return StepMemory(before, max(live), live[-1])


def _flat(events: Sequence[Any]) -> Iterator[Any]:
    pending = list(events)
    while pending:
        event = pending.pop()
        yield event
        pending.extend(event.children)
