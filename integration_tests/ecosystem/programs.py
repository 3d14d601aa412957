"""A program of a library: how its step is built, given what compiles. ``libraries`` has one file for each library."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

Compile = Callable[..., Any]
"""What ``torch.compile`` is to the program: a module or a function gives its compiled twin."""
Step = Callable[[], Any]
"""Runs the program once, from the same state each time, and returns what it computed: results, losses, gradients."""


@dataclass(frozen=True, slots=True)
class Program:
    """``build`` makes model and inputs under a fixed seed, compiles what a user of the library would, and returns the
    step. ``needs`` are the modules that have to be importable; ``rounds`` is how often the step is timed. Capturing
    three steps makes at most so many ``graphs`` and ``breaks``."""

    name: str
    build: Callable[[Compile], Step]
    needs: tuple[str, ...]
    graphs: int = 1
    breaks: int = 0
    rounds: int = 15

    def missing(self) -> str:
        """The first module that is not installed; empty if all are."""
        return next((name for name in self.needs if importlib.util.find_spec(name) is None), "")


def libraries() -> list[str]:
    """The files of ``libraries``, in order."""
    folder = Path(__file__).parent / "libraries"
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


def programs_of(library: str) -> Iterator[Program]:
    """The programs that the file declares. Nothing of the library is imported before a program is built."""
    module = importlib.import_module(f"libraries.{library}")
    yield from module.PROGRAMS


def training_step(model: nn.Module, loss_of: Callable[[], Tensor]) -> Step:
    """A step that returns the loss and every parameter's gradient."""

    def step() -> Any:
        model.zero_grad()
        loss = loss_of()
        loss.backward()
        return loss.detach(), [p.grad for p in model.parameters() if p.requires_grad]

    return step
