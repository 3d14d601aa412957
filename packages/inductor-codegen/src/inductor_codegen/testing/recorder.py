"""A recorder that needs no GPU, for tests: it holds callers to what a replay on a GPU does to memory.

A replay runs the graph again and writes into the memory of the recorded results. Whatever else a replay may overwrite,
which are the results of recordings made later in the same pool, it fills with a value that is never right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch

from inductor_codegen.runtime.cuda_graphs.pool import Pool
from inductor_codegen.runtime.cuda_graphs.recorder import Captured, NotRecordedError, Surroundings
from inductor_codegen.runtime.cuda_graphs.recording import distinct

NEVER_RIGHT = 77


class ImitatedTimer:
    """``taken`` is what calls have taken, if they replayed and if not; ``late``: it is not known yet."""

    def __init__(self, recorder: ImitatedRecorder) -> None:
        self._recorder, self._before = recorder, recorder.replays
        self._replayed = False

    def stop(self) -> None:
        self._replayed = self._recorder.replays > self._before

    def seconds(self) -> float | None:
        return None if self._recorder.late else self._recorder.taken[self._replayed]


class ImitatedRecorder:
    """``replays`` and ``captures`` count; ``refuses`` is why nothing can be recorded, ``away`` whether nothing may be;
    ``taken``: the seconds of a call that does not replay, and of one that does; ``late``: they are not known yet;
    ``alone``: no other thread is there."""

    def __init__(self) -> None:
        self.pool = Pool("memory")
        self.settings: Hashable = ()
        self.captures = self.replays = 0
        self.refuses = ""
        self.away = self.late = False
        self.alone = True
        self.taken = (2.0, 1.0)
        self._owned: Counter[int] = Counter()
        self._memories: list[list[torch.Tensor]] = []

    def surroundings(self) -> Surroundings | None:
        """One pool for all."""
        return (
            None if self.away else Surroundings(self.pool, (self.settings, torch.is_inference_mode_enabled()))
        )

    def is_alone(self) -> bool:
        """Whether ``alone``."""
        return self.alone

    def capture(self, run: Callable[..., tuple[Any, ...]], inputs: Sequence[Any], pool: Pool) -> Captured:
        """Runs, and undoes what the run has written and drawn."""
        if self.refuses:
            raise NotRecordedError(self.refuses)
        tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
        contents, state = [tensor.clone() for tensor in tensors], torch.get_rng_state()
        results = run(*inputs)
        for tensor, content in zip(tensors, contents, strict=True):
            if not torch.equal(tensor, content):
                tensor.data.copy_(content)  # which autograd does not hear of
        torch.set_rng_state(state)
        self.captures += 1
        known = {tensor.untyped_storage()._cdata for tensor in tensors}
        new = [r for r in results if isinstance(r, torch.Tensor) and r.untyped_storage()._cdata not in known]
        memory = [distinct(self._own(tensor)) for tensor in new]
        place = len(self._memories)
        self._memories.append(memory)
        given = [self._own(x) if isinstance(x, torch.Tensor) else x for x in inputs]

        def replay() -> None:
            self.replays += 1
            for later in self._memories[place + 1 :]:
                for tensor in later:
                    tensor.fill_(NEVER_RIGHT)
            again = [r for r in run(*given) if isinstance(r, torch.Tensor)]
            made = [distinct(r) for r in again if r.untyped_storage()._cdata not in known]
            for target, content in zip(memory, made, strict=True):
                target.copy_(content)

        for tensor in memory:
            tensor.fill_(NEVER_RIGHT)
        return Captured(replay, results)

    def timer(self) -> ImitatedTimer:
        """One that measures nothing."""
        return ImitatedTimer(self)

    def uses(self, storage: int) -> int:
        """As torch counts them, but for this recorder itself."""
        count: int = torch._C._storage_Use_Count(storage)
        return count - self._owned[storage]

    def _own(self, tensor: torch.Tensor) -> torch.Tensor:
        """The same memory, not counted."""
        alias = tensor.data
        self._owned[alias.untyped_storage()._cdata] += 1
        return alias
