"""A process that compiles Triton kernels into Triton's cache; and how one kernel is compiled, here and anywhere.

Run as a script, with Triton and the standard library alone. It is told on its standard input, a line of JSON each:
first where Python looks for modules and what it compiles for, so that Triton is ready when the first batch comes, then
batches,

    {"path": ["/usr/lib/python3.12", ...], "target": ["cuda", 90, 32]}
    {"folder": "/tmp/..."}

each a folder with a file of jobs. Whoever makes the file that claims a job does it, and leaves the image of the kernel
beside it. The answers go to a pipe in the folder, a line of JSON for each job and one at the end of the process's work:

    {"job": 3, "name": "kernel_1f", "threads": 128, "shared": 0}
    {"ended": 4711}

The process ends with its input, or when it has not been told of anything for a while.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import linecache
import os
import re
import select
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

IDLE_SECONDS = 20.0
"""How long a process waits for another batch: the backward's follows the forward's."""
JOBS, ANSWERS = "jobs.json", "answers"
"""Names in a batch's folder."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_HEAD = re.compile(r"^@triton\.jit\ndef (\w+)\(", re.MULTILINE)
_SMALLEST = """\
import triton
import triton.language as tl


@triton.jit
def begin(x, XBLOCK: tl.constexpr):
    place = tl.arange(0, XBLOCK)
    tl.store(x + place, tl.sum(tl.load(x + place), 0) + place)
"""
"""A kernel whose compilation loads what that of others needs."""


def image_name(job: int) -> str:
    """The file in a batch's folder with the image of a job's kernel."""
    return f"{job}.image"


def compile_function(
    function: Any,
    kinds: Sequence[str],
    constants: Mapping[str, int],
    attributes: Mapping[tuple[int], list[list[Any]]],
    options: Mapping[str, Any],
    target: Any,
) -> Any:
    """Triton's compiled kernel, out of its cache if it is there.

    ``kinds`` are the types of its parameters as Triton writes them, ``attributes`` what is taken for granted of them by
    place; ``target`` None is the current device.
    """
    import triton
    from triton.compiler import ASTSource

    signature = dict(zip(function.arg_names, kinds, strict=False)) | dict.fromkeys(constants, "constexpr")
    source = ASTSource(function, signature, dict(constants), dict(attributes))
    return triton.compile(source, target=target, options=dict(options))


class LazyModule(types.ModuleType):
    """A module of kernels, of which a function is made when it is asked for: Triton reads the lines of each that it is
    to make. ``path`` is where the text lies, or will; ``kernels`` are the functions that no other one calls."""

    def __init__(self, name: str, text: str, path: str, kernels: Sequence[str]) -> None:
        super().__init__(name)
        self.__file__ = path
        found, wanted = functions_of(text), frozenset(kernels)
        self._waiting = {key: place for key, place in found.items() if key in wanted}
        lines = text.splitlines(keepends=True)
        for line, source in self._waiting.values():
            lines[line - 1 : line - 1 + source.count("\n")] = ["\n"] * source.count("\n")
        exec(compile("".join(lines), path, "exec"), vars(self))

    def __getattr__(self, name: str) -> Any:
        waiting = vars(self).get("_waiting", {})
        if name not in waiting:
            raise AttributeError(name)
        line, source = waiting.pop(name)
        exec(compile("\n" * (line - 1) + source, str(self.__file__), "exec"), vars(self))
        return vars(self)[name]


def functions_of(text: str) -> dict[str, tuple[int, str]]:
    """The first line and the text of each function of a module of kernels; the text ends where the next one begins."""
    starts = [(found.start(), found.group(1)) for found in _HEAD.finditer(text)]
    functions, line, before = {}, 1, 0
    for (start, name), (end, _) in itertools.pairwise([*starts, (len(text), "")]):
        line, before = line + text.count("\n", before, start), start
        functions[name] = line, text[start:end]
    return functions


def main() -> None:
    """Serve batches until there are no more."""
    told = _lines()
    first = json.loads(next(told, "{}"))
    sys.path[:] = first.get("path", [])
    if first.get("target"):
        _warm_up(first["target"])
    for line in told:
        with contextlib.suppress(OSError):  # whoever asked no longer waits
            _serve(json.loads(line)["folder"])


def _lines() -> Iterator[bytes]:
    """The lines of the standard input, until it ends or nothing comes for a while."""
    read = b""
    while select.select([0], [], [], IDLE_SECONDS)[0]:
        more = os.read(0, 1 << 16)
        *lines, read = (read + more).split(b"\n")
        yield from lines
        if not more:
            return


def _warm_up(target: Sequence[Any]) -> None:
    """Compile something. What fails here fails with the first kernel again, and is answered then."""
    with contextlib.suppress(Exception):
        module = _module(_SMALLEST, "begin.py", ("begin",))
        job = {"function": "begin", "kinds": ["*fp32"], "constants": {"XBLOCK": 128}}
        _compile(module, {**job, "attributes": [], "options": {"num_warps": 4}}, target)


def _serve(folder: str) -> None:
    """Do jobs of a batch until each has been claimed."""
    with open(os.path.join(folder, JOBS)) as opened:
        content = json.load(opened)
    jobs = content["jobs"]
    answers = os.open(os.path.join(folder, ANSWERS), os.O_WRONLY | os.O_NONBLOCK)
    os.set_blocking(answers, True)
    try:
        module = None
        for number, job in enumerate(jobs):
            if not _claimed(os.path.join(folder, f"{number}.claim")):
                continue
            if module is None:
                names = [one["function"] for one in jobs]
                module = _module(content["text"], content["path"], names)
            _answer(answers, {"job": number, **_made(module, job, content["target"], folder, number)})
        _answer(answers, {"ended": os.getpid()})
    finally:
        os.close(answers)


def _claimed(path: str) -> bool:
    try:
        os.close(os.open(path, _NEW, 0o600))
    except FileExistsError:
        return False
    return True


def _answer(pipe: int, answer: Mapping[str, Any]) -> None:
    os.write(pipe, json.dumps(answer).encode() + b"\n")


def _made(
    module: Any, job: Mapping[str, Any], target: Sequence[Any], folder: str, number: int
) -> Mapping[str, Any]:
    """What is answered of a job besides its number."""
    try:
        made = _compile(module, job, target)
        place = os.path.join(folder, image_name(number))
        with open(os.open(place, _NEW, 0o600), "wb") as file:
            file.write(made.asm["cubin"])
        metadata = made.metadata
        return {"name": made.name, "threads": target[2] * metadata.num_warps, "shared": metadata.shared}
    except Exception as error:
        return {"failed": type(error).__name__}


def _compile(module: Any, job: Mapping[str, Any], target: Sequence[Any]) -> Any:
    from triton.backends.compiler import GPUTarget

    attributes = {(place,): assumed for place, assumed in job["attributes"]}
    function = getattr(module, job["function"])
    where = GPUTarget(*target)
    return compile_function(function, job["kinds"], job["constants"], attributes, job["options"], where)


def _module(text: str, path: str, kernels: Sequence[str]) -> types.ModuleType:
    """The module of a text that will lie at ``path``, from where Triton reads lines."""
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    module = LazyModule("kernels", text, path, kernels)
    sys.modules["kernels"] = module  # Triton looks a function's module up
    return module


if __name__ == "__main__":
    main()
