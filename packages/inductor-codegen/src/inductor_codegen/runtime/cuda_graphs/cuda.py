"""The recorder of a CUDA device, by torch's public CUDA graphs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch

from fx_interface.torch_internals.torch_state import read_by_kernels
from inductor_codegen.runtime.cuda_graphs.pool import Pool
from inductor_codegen.runtime.cuda_graphs.recorder import Captured, NotRecordedError, Surroundings
from inductor_codegen.runtime.cuda_graphs.threads import is_alone

_CUDA: Final[Any] = torch.cuda
_HIGH: Final = -1
"""The priority of streams that are recorded on: torch hands them out of a set that programs seldom use, so that what
libraries keep for a stream (cuBLAS its workspace) is not written to by others."""

_ONE_AT_A_TIME: Final = threading.Lock()
"""Held while something is recorded: torch allows one recording in a process."""


class _EventTimer:
    """Between two events on the current stream: the host's time, where that is what the GPU waits for."""

    def __init__(self) -> None:
        self._begin, self._end = (_CUDA.Event(enable_timing=True) for _ in range(2))
        self._begin.record()

    def stop(self) -> None:
        self._end.record()

    def seconds(self) -> float | None:
        return float(self._begin.elapsed_time(self._end)) / 1e3 if self._end.query() else None


class CudaRecorder:
    """One pool for each stream that calls are made on."""

    def __init__(self, device: int) -> None:
        self._device = device
        self._pools: dict[int, Pool] = {}
        self._graphs: WeakKeyDictionary[torch.cuda.CUDAGraph, Any] = WeakKeyDictionary()

    def surroundings(self) -> Surroundings | None:
        """None where the program records itself, or wants to see operators, or has another device as the current."""
        if (
            torch.cuda.is_current_stream_capturing()
            or torch._C._len_torch_dispatch_stack()
            or torch.cuda.current_device() != self._device
        ):
            return None
        stream = torch.cuda.current_stream(self._device).cuda_stream
        pool = self._pools.get(stream) or self._pools.setdefault(stream, self._new_pool())
        return Surroundings(pool, read_by_kernels())

    def _new_pool(self) -> Pool:
        return Pool(torch.cuda.graph_pool_handle(), _CUDA.Stream(self._device, priority=_HIGH))

    def is_alone(self) -> bool:
        """As to threads that run Python."""
        return is_alone()

    def capture(self, run: Callable[..., tuple[Any, ...]], inputs: Sequence[Any], pool: Pool) -> Captured:
        """Record on a stream of the pool's own. What the run raises is why nothing is recorded."""
        graph, first = torch.cuda.CUDAGraph(), None
        with _ONE_AT_A_TIME:
            if pool.handle not in self._graphs.values():  # torch lets go of a pool with its last graph
                pool.handle = torch.cuda.graph_pool_handle()
            try:
                with torch.cuda.stream(pool.stream):
                    graph.capture_begin(pool.handle, capture_error_mode="thread_local")
                    try:
                        results = run(*inputs)
                    except BaseException as error:
                        first = error
                        raise
                    finally:
                        graph.capture_end()
            except BaseException as error:
                _recover(self._device, pool.handle)
                pool.handle = torch.cuda.graph_pool_handle()
                if not isinstance(error, Exception):
                    raise
                cause = first or error  # ending may have failed too
                text = str(cause).partition("\n")[0]
                raise NotRecordedError(f"{type(cause).__name__}: {text}") from error
        self._graphs[graph] = pool.handle
        return Captured(graph.replay, results)

    def timer(self) -> _EventTimer:
        """By CUDA's events."""
        return _EventTimer()

    def uses(self, storage: int) -> int:
        """As torch counts them."""
        count: int = torch._C._storage_Use_Count(storage)
        return count


def _recover(device: int, handle: Any) -> None:
    """After a recording that failed: torch's allocator and its generator believe that it goes on."""
    end: Any = torch._C._cuda_endAllocateToPool
    with suppress(RuntimeError):  # it has ended
        end(device, handle)
    for _ in range(2):  # the first may be told of the error that is past
        with suppress(RuntimeError), torch.cuda.stream(_CUDA.Stream(device, priority=_HIGH)):
            graph = torch.cuda.CUDAGraph()
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                torch.zeros(1, device="cuda")  # torch warns of recordings in which there is nothing
            finally:
                graph.capture_end()
            return


@cache
def cuda_recorder(device: int) -> CudaRecorder:
    """The recorder of a device, one in a process."""
    return CudaRecorder(device)
