"""Runs CPython's own tests with each test method captured, by itself and as part of a graph, and tells which pass only
where nothing is captured.

``python integration_tests/sweeps/python_library.py test_list test_generators`` runs modules of the interpreter's
package ``test`` (which a distribution may leave out); without names those of ``MODULES``. A name that ends in ``.py``
is a file of tests in the form of ``unittest``, a library's own, say; ``--before FILE`` names a program that each
process runs before it loads one (stand-ins for what the tests import and the machine lacks), and ``--backend`` the
backend. Exit code 1 if a test that passes as written fails, prints something else (addresses aside), or ends the
process, when it is captured. A test that looks at reference counts, or takes longer than ``--seconds`` of the clock,
is told like any other: read what it says.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

_NAMES = """
augassign binop bisect bool builtin call class collections compare complex contextlib copy
decorators defaultdict deque descr dict dictviews enum enumerate except_star exception_group
exceptions extcall float format fractions fstring funcattrs functools generator_stop generators
global grammar heapq index int isinstance iter itertools keywordonlyarg list math named_expressions
operator ordered_dict patma positional_only_arg property raise range reprlib richcmp scope set slice
sort statistics string super tuple types unpack unpack_ex userdict userlist weakref with
"""
MODULES = tuple(f"test_{name}" for name in _NAMES.split())
"""Modules that test the language, builtins, and what programs use of the library."""
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def loaded(name: str, before: Path | None) -> ModuleType:
    """A module of CPython's tests, or a file."""
    if before is not None:
        runpy.run_path(str(before))
    if not name.endswith(".py"):
        return importlib.import_module(f"test.{name}")
    sys.path.insert(0, str(Path(name).resolve().parent))
    module = importlib.import_module(Path(name).stem)
    vars(module).pop("load_tests", None)  # which may choose by the program that runs
    return module


def tests_of(module: ModuleType) -> dict[str, unittest.TestCase]:
    """The module's tests by their names."""
    found: dict[str, unittest.TestCase] = {}

    def walk(part: Iterable[object]) -> None:
        for one in part:
            if isinstance(one, unittest.TestSuite):
                walk(one)
            elif isinstance(one, unittest.TestCase) and type(one).__name__ != "_FailedTest":
                found.setdefault(one.id(), one)

    walk([unittest.defaultTestLoader.loadTestsFromModule(module)])
    return found


def _outcome(test: unittest.TestCase) -> tuple[str, str, str]:
    """How the test ends, what it says, and what it prints."""
    result, printed = unittest.TestResult(), io.StringIO()
    with contextlib.redirect_stdout(printed):
        test.run(result)
    text = _ADDRESS.sub("0x", printed.getvalue())
    wrong = result.errors + result.failures
    if wrong:
        return "fails", wrong[0][1], text
    return ("skipped" if result.skipped else "passes"), "", text


def _alone(method: Callable[[], None], backend: str) -> Callable[[], None]:
    """The test captured by itself; where nothing breaks its graph it has none, and is left as it is."""
    import fxstack

    compiled: Callable[[], None] = fxstack.compile(method, backend=backend)
    return compiled


def _in_a_graph(method: Callable[[], None], backend: str) -> Callable[[], None]:
    """The test in a function that computes with a tensor, so that what is captured of it is used."""
    import torch

    import fxstack

    def program(x: torch.Tensor) -> torch.Tensor:
        method()
        return x + 1

    compiled = fxstack.compile(program, backend=backend)
    return lambda: torch.testing.assert_close(compiled(torch.ones(2)), torch.full((2,), 2.0))


@dataclass(frozen=True)
class Run:
    """How tests are run."""

    captured: bool
    backend: str
    before: Path | None
    seconds: float


def work(name: str, wanted: Path, run: Run) -> None:
    """In a process of its own: run the tests that ``wanted`` lists, and write a line before and after each."""
    import fxstack

    tests = tests_of(loaded(name, run.before))
    with open(f"{wanted}.told", "a") as told:
        for identity in json.loads(wanted.read_text()):
            test = tests[identity]
            print(json.dumps([identity]), file=told, flush=True)
            method = getattr(test, test._testMethodName)
            status, text, printed = "passes", "", []
            for form in (_alone, _in_a_graph) if run.captured else (None,):
                if form is not None:
                    fxstack.reset()
                    setattr(test, test._testMethodName, form(method, run.backend))
                if status == "passes":
                    status, text, output = _outcome(test)
                    printed.append(output)
            print(json.dumps([identity, status, text, printed]), file=told, flush=True)
    os._exit(0)  # whatever the tests have left running


def _waited_for(process: subprocess.Popen[bytes], told: Path, seconds: float) -> None:
    """Wait for the worker; end it where it has told nothing for so long."""
    since, size = time.monotonic(), -1
    while process.poll() is None:
        time.sleep(0.1)
        now = told.stat().st_size if told.exists() else 0
        if now != size:
            since, size = time.monotonic(), now
        if time.monotonic() - since > seconds:
            process.kill()


def outcomes(name: str, identities: list[str], run: Run) -> Iterator[tuple[str, str, str, list[str]]]:
    """Each test with ``passes``, ``fails``, ``skipped`` or ``ends the process``, what it says, and what it prints each
    time that it runs."""
    left = list(identities)
    while left:
        with tempfile.TemporaryDirectory() as folder:
            wanted, told = Path(folder, "wanted"), Path(folder, "wanted.told")
            wanted.write_text(json.dumps(left))
            command = [
                sys.executable,
                __file__,
                name,
                "--worker",
                str(wanted),
                "--backend",
                run.backend,
                *(["--before", str(run.before)] if run.before is not None else []),
                *(["--captured"] if run.captured else []),
            ]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _waited_for(process, told, run.seconds)
            lines = [json.loads(line) for line in told.read_text().splitlines()] if told.exists() else []
        for identity, status, text, printed in (line for line in lines if len(line) > 1):
            left.remove(identity)
            yield identity, status, text, printed
        if left and (not lines or len(lines[-1]) == 1):
            yield left.pop(0), "ends the process", "", []


def differing(name: str, run: Run) -> tuple[int, list[tuple[str, str, str]]]:
    """How many of a module's tests pass as written, and those of them that do not when captured, or print otherwise."""
    written = outcomes(name, list(tests_of(loaded(name, run.before))), replace(run, captured=False))
    passing = {identity: printed for identity, status, _, printed in written if status == "passes"}
    bad = []
    for identity, status, text, printed in outcomes(name, list(passing), run):
        if status == "passes" and any(one != passing[identity][0] for one in printed):
            status, text = "prints otherwise", "\n".join(printed)
        if status != "passes":
            bad.append((identity, status, text))
    return len(passing), bad


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=MODULES)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--worker", type=Path)
    parser.add_argument("--captured", action="store_true")
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--before", type=Path)
    arguments = parser.parse_args()
    run = Run(arguments.captured, arguments.backend, arguments.before, arguments.seconds)
    sys.argv[1:] = []
    if arguments.worker is not None:
        work(arguments.names[0], arguments.worker, run)
    different, count = 0, 0
    for name in arguments.names:
        passing, bad = differing(name, replace(run, captured=True))
        count, different = count + passing, different + len(bad)
        print(f"{name}: {passing} pass as written, {len(bad)} of them not when captured", flush=True)
        for identity, status, text in bad:
            print(f"  {identity} {status}\n    " + "\n    ".join(text.strip().splitlines()[-6:]), flush=True)
    print(f"{count} tests of {len(arguments.names)} modules, {different} differ")
    return int(different > 0)


if __name__ == "__main__":
    raise SystemExit(main())
