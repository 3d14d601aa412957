"""Trials of program texts in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from fxstack.minify.outcomes import Outcome

if TYPE_CHECKING:
    from fxstack.minify.comparing import Settings

_FIRST_SECONDS = 60.0
"""A program that takes longer than this in its first trial hangs."""
_WARM_UP = """\
import torch
def program(x):
    return x.relu().sum()
INPUTS = (torch.ones(2, requires_grad=True),)
"""


class Trials:
    """Runs trials, each text once. A context manager: the process that runs them ends with the block."""

    def __init__(self, settings: Settings, *, script: bool, folder: str | Path = ".") -> None:
        self._settings = asdict(settings)
        self._script = script
        self._seconds = _FIRST_SECONDS
        self._known: dict[str, Outcome] = {}
        self._cache = tempfile.TemporaryDirectory(prefix="fxstack-minify-")  # the user's own is not filled
        path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._server = subprocess.Popen(
            [sys.executable, "-m", "fxstack.minify.trial_server"],
            env=os.environ
            | {
                "PYTHONPATH": os.pathsep.join(path),
                "FXSTACK_CACHE_DIR": self._cache.name,
                "FXSTACK_ON_INTERNAL_ERROR": "raise",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def outcome(self, text: str) -> Outcome:
        """What a trial of ``text`` comes to."""
        if not self._known:
            self._run(_WARM_UP, script=False)  # from now on the server has loaded what a trial needs
            self._known[text] = self._first(text)
        if text not in self._known:
            self._known[text] = self._run(text, script=self._script)
        return self._known[text]

    def _first(self, text: str) -> Outcome:
        """The trial of the whole program, after which none is given much longer than that one needed; where it hangs,
        than it needs with torch's own kernels."""
        start = time.monotonic()
        outcome = self._run(text, script=self._script)
        if outcome.kind == "hang":
            start = time.monotonic()
            self._run(text, script=self._script, backend="eager")
        self._seconds = min(self._seconds, 3.0 + 4 * (time.monotonic() - start))
        return outcome

    def _run(self, text: str, *, script: bool, backend: str | None = None) -> Outcome:
        request = {
            "text": text,
            "script": script,
            "seconds": self._seconds,
            "settings": self._settings | ({} if backend is None else {"backend": backend}),
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline()
        if not answer:
            raise RuntimeError("the process that runs trials has ended; its messages are above")
        return Outcome(**json.loads(answer))

    @property
    def count(self) -> int:
        """How many texts were tried."""
        return len(self._known)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.kill()
        self._server.wait()
        self._cache.cleanup()
