"""Which function of the user's program an event is about, and what the programs of kernels in it do to memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar

import torch
from torch.fx import GraphModule

from dynamo_capture.foundation.texts.users_words import in_users_words
from fx_guards.kinds.base import short
from fx_interface import SHAPE_ENV_KEY, UserLocation
from fx_interface.errors import UnsupportedProgramError
from fx_interface.events import Event
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import Source
from fx_interface.symbols import IntLike, ShapeEnv

T = TypeVar("T")
_NOT_EXPECTED = ("source", "sources", "where", "identity", "reference", "key", "dispatch_keys")
"""Fields of guards that a reader does not need: what is said apart, and numbers that mean nothing outside."""


def function_of(event: Event) -> UserLocation | None:
    """The function whose frame is compiled, where it is defined; None outside of any, as in a compiler used alone."""
    frame = event if event.kind == "frame" else event.within("frame")
    if frame is not None:
        where: UserLocation = frame.facts["where"]
        return where
    code = event.facts.get("code")
    if isinstance(code, CodeType):
        return UserLocation(code.co_filename, code.co_firstlineno, code.co_qualname)
    return None


_TORCH = str(Path(torch.__file__).parent) + os.sep


def is_torchs(filename: str) -> bool:
    """Whether a file is one of torch's own, of which the user has written nothing."""
    return filename.startswith(_TORCH)


def breaks_by_line(
    stops: Iterable[T], told: Callable[[T], tuple[str, str, UserLocation | None]]
) -> list[list[T]]:
    """Breaks in groups, those of one kind at one line of the user's together; ``told`` says of a break its code, what
    was met, and where. One at a line of torch's, which a function of torch has that is compiled by itself, is with
    the break that it repeats."""
    found = [(stop, *told(stop)) for stop in stops]
    at_users = {
        (code, what): where
        for _, code, what, where in found
        if where is not None and not is_torchs(where.filename)
    }
    groups: dict[tuple[str, object], list[T]] = {}
    for stop, code, what, where in found:
        if where is None or is_torchs(where.filename):
            where = at_users.get((code, what))
        groups.setdefault((code, where or what), []).append(stop)
    return list(groups.values())


@dataclass(frozen=True, slots=True)
class Launch:
    """One run of a kernel in a compiled graph.

    ``label`` is its name in profilers and among times. ``read`` and ``written`` are bytes, each operand counted whole
    and once; None where a size is known only when the program runs. ``origins``: what is computed, and on which line.
    """

    kernel: str
    label: str
    loops: str
    read: int | None
    written: int | None
    origins: tuple[str, ...]
    where: UserLocation | None


def launches_of(program: Any, graph: GraphModule) -> Iterator[Launch]:
    """The kernels that a program runs, in order. ``program``: an ``inductor_codegen.ir.program.Program``."""
    from inductor_codegen.codegen.wrapper.labels import label_of_kernel
    from inductor_codegen.ir.kernel import Access  # what an event of the code generator has loaded
    from inductor_codegen.ir.program import RunKernel

    env = graph.meta.get(SHAPE_ENV_KEY)
    buffers = program.buffers()
    kernels = {kernel.name: kernel for kernel in program.kernels}
    for step in program.steps:
        if not isinstance(step, RunKernel):
            continue
        kernel = kernels[step.kernel]
        moved: dict[Access, int | None] = {Access.READ: 0, Access.WRITE: 0}
        for name, parameter in zip(step.buffers, kernel.buffers, strict=True):
            size, before = bytes_of(buffers[name], env), moved[parameter.access]
            moved[parameter.access] = None if size is None or before is None else before + size
        loops = " x ".join(str(loop.extent) for loop in (*kernel.outer, *kernel.inner))
        read, written = moved[Access.READ], moved[Access.WRITE]
        label = label_of_kernel(kernel, step.where)
        yield Launch(kernel.name, label, loops, read, written, kernel.comments, step.where)


def guard_text(guard: Any) -> str:
    """A guard on one line: what it reads, and what it expects of that."""
    read = ", ".join(dict.fromkeys(source.expression for source in guard.sources))
    return f"{in_users_words(read)}: {expected_by(guard)}"


def expected_by(guard: Any) -> str:
    """The kind of a guard and what it expects."""
    expected = [
        f"{name}={short(value, 60)}"
        for name, value in ((field.name, getattr(guard, field.name)) for field in fields(guard))
        if name not in _NOT_EXPECTED and value is not None and not isinstance(value, Source)
    ]
    text = " ".join([guard.kind, *expected])
    return in_users_words(text) if " at 0x" in text else text


def library_calls_of(program: Any) -> list[tuple[str, str]]:
    """The operators of torch that a program calls, in order, each with its label among times."""
    from inductor_codegen.codegen.wrapper.labels import label_of_call
    from inductor_codegen.ir.program import CallExtern

    return [(str(step.op), label_of_call(step)) for step in program.steps if isinstance(step, CallExtern)]


def bytes_of(buffer: Any, env: ShapeEnv | None) -> int | None:
    """What a buffer of a program holds, with the sizes of the example; None where only a run tells."""
    count = buffer.dtype.itemsize
    for size in buffer.sizes:
        known = _known(size, env)
        if known is None:
            return None
        count *= known
    return int(count)


def _known(size: IntLike, env: ShapeEnv | None) -> int | None:
    if isinstance(size, int):
        return size
    if env is None:
        return None
    try:
        return env.hint(size)
    except UnsupportedProgramError:
        return None
