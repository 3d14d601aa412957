"""Whether replaying a recording is faster than running its graph: measured in the calls that are made anyway."""

from __future__ import annotations

from inductor_codegen.runtime.cuda_graphs.recorder import Timer

SLOWER = 1.03
"""Replays that take so many times as long are not made."""
ROUNDS = 3
"""Calls of each kind that are measured. The shortest of each kind counts."""


class Trial:
    """The measured calls of one recording. The first replay, which also loads it onto the device, is left out."""

    def __init__(self) -> None:
        self._runs: list[Timer] = []
        self._replays: list[Timer] = []
        self._is_first = True
        self.is_over = False

    def add_run(self, timer: Timer) -> None:
        """A call that ran the graph as it is, after the first one."""
        if len(self._runs) < ROUNDS:
            self._runs.append(timer)

    def add_replay(self, timer: Timer) -> None:
        """A call that replayed."""
        if not self._is_first and len(self._replays) < ROUNDS:
            self._replays.append(timer)
        self._is_first = False

    def verdict(self) -> str:
        """Why no replay should be made; empty where one should, or while that is not known."""
        if len(self._replays) < ROUNDS or not self._runs:
            return ""
        runs, replays = [one.seconds() for one in self._runs], [one.seconds() for one in self._replays]
        if any(one is None for one in (*runs, *replays)):
            return ""
        self.is_over = True
        run, replay = min(filter(None, runs), default=0.0), min(filter(None, replays), default=0.0)
        if replay <= run * SLOWER:
            return ""
        return f"a replay takes {replay * 1e3:.3f} ms, and its kernels launched one by one {run * 1e3:.3f} ms"
