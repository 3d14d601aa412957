"""A process that compiles Triton kernels into Triton's cache; and how one kernel is compiled, here and anywhere.

Run as a script, with Triton and the standard library alone, so that it begins in a third of a second. It is told on its
standard input, a line of JSON each, of a file with a module's text and jobs, and of the jobs that are its own:

    {"batch": 1, "file": "/tmp/.../jobs.json", "jobs": [0, 3, 6]}

and answers each with a line: the batch, and whether the kernel is in Triton's cache. It ends with its input, or when it
has not been told of anything for a while.
"""

from __future__ import annotations

import json
import linecache
import os
import select
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

IDLE_SECONDS = 20.0
"""How long a process waits for another batch: the backward's follows the forward's."""


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


def main() -> None:
    """Serve batches until there are no more."""
    told = _lines()
    sys.path[:] = json.loads(next(told, "[]"))
    for line in told:
        batch = json.loads(line)
        _serve(batch["batch"], batch["file"], batch["jobs"])


def _lines() -> Iterator[bytes]:
    """The lines of the standard input, until it ends or nothing comes for a while."""
    read = b""
    while select.select([0], [], [], IDLE_SECONDS)[0]:
        more = os.read(0, 1 << 16)
        *lines, read = (read + more).split(b"\n")
        yield from lines
        if not more:
            return


def _serve(batch: int, file: str, numbers: Sequence[int]) -> None:
    module: Any = None
    for number in numbers:
        try:
            if module is None:
                with open(file) as opened:
                    content = json.load(opened)
                module = _module(content["text"], content["path"])
            _compile(module, content["jobs"][number], content["target"])
            answer = "made"
        except Exception as error:
            answer = f"failed {type(error).__name__}"
        print(batch, answer, flush=True)


def _compile(module: Any, job: Mapping[str, Any], target: Sequence[Any]) -> None:
    from triton.backends.compiler import GPUTarget

    attributes = {(place,): assumed for place, assumed in job["attributes"]}
    function = getattr(module, job["function"])
    where = GPUTarget(*target)
    compile_function(function, job["kinds"], job["constants"], attributes, job["options"], where)


def _module(text: str, path: str) -> types.ModuleType:
    """The module of a text that will lie at ``path``, from where Triton reads lines."""
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    module = types.ModuleType("kernels")
    module.__file__ = path
    sys.modules["kernels"] = module  # Triton looks a function's module up
    exec(compile(text, path, "exec"), vars(module))
    return module


if __name__ == "__main__":
    main()
