"""``run(arguments)`` is ``subprocess.run([sys.executable, *arguments], capture_output=True, text=True)`` in a process
that is forked from one in which torch is imported: that takes longer than most of what tests start.

What such a process sees is what a new one would see, but for: torch is loaded; ``sys.orig_argv`` is the server's; a
traceback begins with the frame that runs the program. What asks about those starts a Python of its own.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

_SERVER = r"""
def _serve(requests, answers):
    import json, os
    import torch
    for line in requests:
        request = json.loads(line)
        child = os.fork()
        if not child:
            return request
        answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")

def _begin(request):
    import os, sys, tempfile, types
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    for name, mode, descriptor in (("output", os.O_WRONLY, 1), ("errors", os.O_WRONLY, 2), ("input", os.O_RDONLY, 0)):
        os.dup2(os.open(request[name], mode), descriptor)
    tempfile.tempdir = None
    first, *rest = request["arguments"]
    path = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = ["" if first.startswith("-") else os.path.dirname(first), *path, *sys.path[1 + request["paths"]:]]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    if first == "-m":
        import runpy
        sys.argv = rest
        return runpy._run_module_as_main, (rest[0],)
    text, shown = (rest.pop(0), "-c") if first == "-c" else (open(first).read(), first)
    sys.argv = [shown, *rest]
    if first != "-c":
        main.__file__ = first
    return exec, (compile(text, "<string>" if first == "-c" else first, "exec"), main.__dict__)

import os, sys
_request = _serve(os.fdopen(int(sys.argv[1])), os.fdopen(int(sys.argv[2]), "w", 1))
if _request:
    _function, _arguments = _begin(_request)
    _function(*_arguments)
"""


class _Server:
    def __init__(self) -> None:
        read, self._requests = os.pipe()
        self._answers, write = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, str(read), str(write)], pass_fds=(read, write)
        )
        os.close(read)
        os.close(write)
        self._lines = os.fdopen(self._answers)

    def ask(self, request: dict[str, object]) -> int:
        os.write(self._requests, (json.dumps(request) + "\n").encode())
        return int(self._lines.readline())

    def stop(self) -> None:
        os.close(self._requests)
        self._process.wait()


@functools.cache
def _server() -> _Server:
    server = _Server()
    atexit.register(server.stop)
    return server


def run(
    *arguments: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The exit status and what was printed, of ``python *arguments``; -c, -m or a script comes first."""
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder, name) for name in ("output", "errors", "input")}
        for file in files.values():
            file.touch()
        request = {
            "arguments": [str(argument) for argument in arguments],
            "folder": str(cwd or Path.cwd()),
            "environment": dict(os.environ if env is None else env),
            "paths": len([entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]),
            **{name: str(file) for name, file in files.items()},
        }
        status = _server().ask(request)
        return subprocess.CompletedProcess(
            list(arguments), status, files["output"].read_text(), files["errors"].read_text()
        )
