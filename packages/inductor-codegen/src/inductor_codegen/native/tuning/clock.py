"""How long kernels and library calls take on a GPU: recorded as a CUDA graph, which is replayed between two events.

So neither Python nor the launches count. Nothing of the program's state is touched: the stream, the tensors and the
generator of their numbers are the measurement's own.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch

from inductor_codegen.codegen.wrapper.kernel_calls import ADDED
from inductor_codegen.ir.program import Buffer

_ROTATED = 160 << 20
"""Bytes of tensors that runs of a measurement take turns with: more than the caches of a GPU hold."""
_MOST_SETS = 8
Queue = Callable[[int], None]
"""Queues a run's work on the current stream; the argument says which set of tensors it is to use."""


def milliseconds(queue: Queue, device: torch.device, runs: int, turns: int) -> float:
    """The least time of a run among ``turns`` replays of ``runs`` of them. RuntimeError if it cannot be recorded."""
    stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(device), torch.cuda.stream(stream):
        queue(0)  # what is loaded or allocated at a first call
        stream.synchronize()
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            for number in range(runs):
                queue(number)
        finally:
            graph.capture_end()
        graph.replay()
        events: list[Any] = [
            torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            for _ in range(turns + 1)
        ]
        events[0].record()
        for event in events[1:]:
            graph.replay()
            event.record()
        stream.synchronize()
    pairs = itertools.pairwise(events)
    return float(min(one.elapsed_time(other) for one, other in pairs)) / runs


def tensor_sets(buffers: Sequence[Buffer], device: torch.device) -> list[dict[str, torch.Tensor]]:
    """Tensors for buffers by name, several times, so that runs which take turns do not find theirs in a cache."""
    named = {buffer.name: buffer for buffer in buffers}
    bytes_of_one = sum(_extent(buffer) * buffer.dtype.itemsize for buffer in named.values())
    count = min(_MOST_SETS, max(1, _ROTATED // max(1, bytes_of_one)))
    numbers = torch.Generator(device)
    return [{name: _tensor(buffer, device, numbers) for name, buffer in named.items()} for _ in range(count)]


def _extent(buffer: Buffer) -> int:
    pairs = zip(buffer.sizes, buffer.strides, strict=True)
    return 1 + sum([(int(size) - 1) * int(stride) for size, stride in pairs])  # type: ignore[arg-type,misc]


def _tensor(buffer: Buffer, device: torch.device, numbers: torch.Generator) -> torch.Tensor:
    """Normal numbers, or zeros and ones: those of all zeros take less power, and are multiplied faster."""
    memory = torch.empty(_extent(buffer), dtype=buffer.dtype, device=device)
    if buffer.dtype.is_floating_point:
        memory.normal_(generator=numbers)
    else:
        memory.random_(0, 2, generator=numbers)
    return memory.as_strided(buffer.sizes, buffer.strides)  # type: ignore[arg-type]


class Launched:
    """A loaded kernel with its arguments for each set of tensors. ``function`` is what ``KernelLoader`` gives."""

    def __init__(
        self,
        function: tuple[int, ...],
        rows: int,
        points: int,
        pointers: Sequence[Sequence[torch.Tensor]],
        sizes: Sequence[int],
        floats: int,
    ) -> None:
        handle, block, threads, shared, *rest = function
        parts, points_of_block = rest[:2] if rest else (1, 1)
        across = parts if parts else -(-points // points_of_block)
        self._first = handle, (-(-rows // block), across), threads, shared
        self._own = [_Arguments(tensors, sizes, floats) for tensors in pointers]

    def __call__(self, number: int) -> None:
        """Queue it, with a set of tensors."""
        handle, (rows, across), threads, shared = self._first
        stream = torch.cuda.current_stream().cuda_stream
        given = self._own[number % len(self._own)]
        error = _driver().cuLaunchKernel(
            ctypes.c_void_p(handle),
            rows,
            across,
            1,
            threads,
            1,
            1,
            shared,
            ctypes.c_void_p(stream),
            given.array,
            None,
        )
        if error:
            raise RuntimeError(f"a kernel cannot be launched: error {error} of the driver")


class _Arguments:
    """Addresses of arguments, and behind them of zeros for what Triton adds."""

    def __init__(self, tensors: Sequence[torch.Tensor], sizes: Sequence[int], floats: int) -> None:
        self._tensors = tensors
        values: list[Any] = [ctypes.c_uint64(tensor.data_ptr()) for tensor in tensors]
        values += [ctypes.c_int64(size) for size in sizes]
        values += [ctypes.c_double(1.0)] * floats
        values += [ctypes.c_uint64(0)] * ADDED
        self._values = values
        self.array = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))


@cache
def _driver() -> Any:
    return ctypes.CDLL("libcuda.so.1")
