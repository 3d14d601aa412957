"""Runs programs drawn at random, eagerly and compiled, and prints those whose outcomes differ.

An adversary is a module beside this one with a function ``draw(random) -> str``: the text of a module that defines

    def program(...): ...           what is compiled
    CALLS = [lambda: (...), ...]    the arguments of each call, made afresh for each way of running the program
    WATCHED = {...}                 optional: objects that the program may change, described after each call
    CHANGES = [lambda: undo, ...]   optional: for each call what is changed before it (None: nothing); the function that
                                    a change returns, if it returns one, undoes it right after the call
    def after(result, *arguments):  optional: runs uncompiled on what a call returned, in place of the plain backward;
                                    what it returns, raises and prints is compared too

The text is executed once for each way of running it, so that no state is shared. All calls go to the same compiled
function, so that later ones meet versions that earlier ones made. ``main`` draws ``count`` programs from a seed, runs
them in processes of some hundred programs (a crash or a hang ends one process, and is a failure of the program that
was running) and exits with 1 if an outcome differs.

    python integration_tests/adversaries/statements.py 2000 --seed 1 --jobs 2 --backend eager
    python integration_tests/adversaries/statements.py --only 17 --seed 1 --shrink
    python integration_tests/adversaries/documented.py 1000 --seed all
    python integration_tests/adversaries/accuracy.py 500 --backend inductor --device cuda
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import linecache
import logging
import marshal
import os
import re
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from judging import Comparing, Judge
from shrinking import shrunk

__all__ = ["Comparing", "main", "module_of", "run_in_test"]

BATCH = 500
PROGRAM_SECONDS = 60.0
DIFFERENCES = 30
"""As many are printed of a program."""
_NUMBERING = re.compile(r": (identity|(object|memory) number) ")

Draw = Callable[[Random], str]


class NoArgumentsError(Exception):
    """What a program draws as an argument cannot be made: eagerly neither."""


Compare = Callable[[str, str, str], list[str]]
"""Runs a program's text, under a name, by a backend: what is wrong with the outcome."""


def main(
    draw: Draw,
    comparing: Comparing | None = None,
    compare: Compare | None = None,
    listed: Callable[[], Sequence[str]] | None = None,
) -> None:
    """The command line of an adversary; ``compare`` judges by other means than equal outcomes. ``listed`` gives the
    programs of a class that has a last one: ``--seed all`` runs the first ``count`` of them and draws none."""
    judge = compare or partial(equal_outcomes, comparing=comparing or Comparing.exactly())
    parser = argparse.ArgumentParser()
    parser.add_argument("count", nargs="?", type=int, default=200)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--backend", default="eager", help="a backend's name, or several with commas")
    parser.add_argument("--device", default="cpu", help="torch's default device while programs run")
    parser.add_argument("--only", help="numbers of programs, with commas, run in this process")
    parser.add_argument("--from", dest="first", type=int, help=argparse.SUPPRESS)
    parser.add_argument(
        "--shrink", action="store_true", help="print failing programs without what they do not need"
    )
    parser.add_argument("--show", action="store_true", help="print each program before it runs")
    options = parser.parse_args()
    _fill_new_memory()
    program = partial(_drawn, draw, options.seed)
    if listed is not None and options.seed == "all":
        program = listed().__getitem__
        options.count = min(options.count, len(listed()))
    numbers = _numbers(options)
    if numbers is not None:
        failed = _run_here(program, judge, numbers, options)
    else:
        failed = _run_batches(options)
    sys.exit(1 if failed else 0)


def _drawn(draw: Draw, seed: str, number: int) -> str:
    return draw(Random(f"{seed} {number}"))


def _fill_new_memory() -> None:
    """Start again where the C library does not fill memory that nobody has written: ``out=`` that was resized before
    its operator failed shows such memory, and eagerly it would differ from run to run. What a thread has just freed is
    filled otherwise when it is given out again, so that nothing is kept for a thread."""
    if "MALLOC_PERTURB_" not in os.environ:
        filled = {
            "MALLOC_PERTURB_": "85",
            "GLIBC_TUNABLES": "glibc.malloc.perturb=85:glibc.malloc.tcache_count=0",
        }
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **filled})


def _numbers(options: argparse.Namespace) -> Sequence[int] | None:
    if options.only is not None:
        return [int(number) for number in options.only.split(",")]
    if options.first is not None:
        return range(options.first, options.first + options.count)
    return None


def _run_here(
    program: Callable[[int], str], judge: Compare, numbers: Sequence[int], options: argparse.Namespace
) -> int:
    import torch

    failed = 0
    _have_warned()
    if options.device != "cpu":
        torch.set_default_device(options.device)
    for number in numbers:
        source = program(number)
        if options.show:
            print(f"# program {number}\n{source}", flush=True)
        else:
            print(f"running {number}", flush=True)
        for backend in options.backend.split(","):
            found = judge(source, f"<adversary {options.seed} {number}>", backend)
            if found:
                failed += 1
                if options.shrink:
                    name = f"<adversary {options.seed} {number}>"
                    source = shrunk(source, partial(_judged, judge, name, backend))
                    found = judge(source, name, backend)
                print(f"# program {number} of seed {options.seed} differs under {backend}", flush=True)
                print(source, *(f"    {line}" for line in _telling(found)), sep="\n", flush=True)
    print(f"{len(numbers)} programs, {failed} failed", flush=True)
    return failed


def _telling(found: Sequence[str]) -> list[str]:
    """Some of the differences: the numbers that objects have in an outcome, which change with all else, come last."""
    ordered = sorted(found, key=lambda line: bool(_NUMBERING.search(line)))
    return ordered[:DIFFERENCES] + (
        [f"and {len(found) - DIFFERENCES} more"] if len(found) > DIFFERENCES else []
    )


def _have_warned() -> None:
    """Have torch give the warnings that it gives once in a process, so that no program is the one that gets them, and
    settle what it settles once: the order of its kernels for attention on a GPU."""
    import torch

    from fx_interface.torch_internals.modes import settle_attention_order

    if torch.cuda.is_available():
        torch.cuda.init()
        settle_attention_order()
    with warnings.catch_warnings(action="ignore"):
        float(torch.ones(1, requires_grad=True))
        number, row = torch.ones(()), torch.ones(1)
        _ = number.mT, number.mH, number.H, number.adjoint(), number.T, row.T
        row.add(1, row)
        with contextlib.suppress(TypeError):
            _ = row <= type("OfTensors", (torch.Tensor,), {})  # whose method seems to be a plain one


def _judged(judge: Compare, name: str, backend: str, source: str) -> list[str]:
    return list(judge(source, name, backend))


def _run_batches(options: argparse.Namespace) -> int:
    starts = range(0, options.count, BATCH)
    with ThreadPoolExecutor(options.jobs) as pool:
        parts = pool.map(lambda start: _run_batch(options, start), starts)
        failed = sum(parts)
    print(f"{options.count} programs, {failed} failed (seed {options.seed}, {options.backend})")
    return failed


def _run_batch(options: argparse.Namespace, start: int) -> int:
    """A process for some programs; after a crash or a hang, another one for the rest."""
    count, failed = min(BATCH, options.count - start), 0
    while count > 0:
        command = [sys.executable, sys.argv[0], str(count), "--from", str(start), "--seed", options.seed]
        command += ["--device", options.device]
        try:
            done = subprocess.run(
                [*command, "--backend", options.backend],
                capture_output=True,
                text=True,
                check=False,
                timeout=PROGRAM_SECONDS + 10 * count,
            )
            text, status = done.stdout, done.returncode
            errors = done.stderr
        except subprocess.TimeoutExpired as expired:
            text, status, errors = _text(expired.stdout), -1, "the time is over"
        reported = [line for line in text.splitlines() if not line.startswith("running ")]
        finished = bool(reported) and reported[-1].endswith(" failed")
        if finished and status in (0, 1):
            if status:
                print("\n".join(reported[:-1]), flush=True)
                failed += int(reported[-1].split()[-2])
            return failed
        at = max(
            [int(line.split()[1]) for line in text.splitlines() if line.startswith("running ")], default=start
        )
        print(
            "\n".join(reported),
            f"# program {at} of seed {options.seed} ended its process ({status})",
            sep="\n",
        )
        print(errors[-2000:], flush=True)
        failed += 1 + sum(line.startswith("# program ") for line in reported)
        count, start = count - (at + 1 - start), at + 1
    return failed


def _text(output: Any) -> str:
    return output.decode() if isinstance(output, bytes) else (output or "")


def equal_outcomes(source: str, name: str, backend: str, comparing: Comparing) -> list[str]:
    """Run one program's text eagerly and compiled; where the outcomes of its calls differ. What the compiler logs as an
    error, and a guard that fails at once (CAP410), are its own mistakes, and count as differences."""

    import fxstack

    judge = Judge.of(comparing, backend)
    try:
        plain = module_of(source, name)
    except Exception:
        return []  # what the text defines cannot be made: eagerly neither
    fast = module_of(source, name)
    fxstack.reset()
    options = {"cache": False} if backend == "inductor" else None
    compiled = fxstack.compile(fast.program, backend=backend, options=options)
    found: list[str] = []
    with _logged(logging.ERROR) as mistakes, _logged(logging.WARNING) as warned:
        for number, (one, two) in enumerate(zip(plain.CALLS, fast.CALLS, strict=True)):
            try:
                expected = _outcomes(plain, _after(plain, number, plain.program), one, name)
            except NoArgumentsError:
                break
            actual = _outcomes(fast, _after(fast, number, compiled), two, name)
            told = [*warned, *(str(outcome.forms["exception"]) for outcome in actual)]
            if any(text in message for text in comparing.reported for message in told):
                break
            compared = _before_refused(plain, expected) if "refused backward" in judge.ignored else expected
            refused = len(compared) < len(expected) or any(outcome.backward_raised for outcome in expected)
            found += judge.differences(number, compared, actual, partial(_plain_outcomes, source, name))
            if refused and "refused backward" in judge.ignored:
                break  # gradients of what is watched differ from now on
    return found + mistakes + [message for message in warned if "CAP410" in message]


def _plain_outcomes(source: str, name: str, last: int) -> list[list[Any]]:
    """What the program does uncompiled, in each call up to the one of this number."""
    plain = module_of(source, name)
    found = []
    for number, make in enumerate(plain.CALLS[: last + 1]):
        try:
            found.append(_outcomes(plain, _after(plain, number, plain.program), make, name))
        except NoArgumentsError:
            break
    return found


def _before_refused(module: Any, expected: list[Any]) -> list[Any]:
    """The outcomes up to the one in which eager has refused a backward, because what it had saved was overwritten: by
    an exception, or by one that the program caught and noted in ``REFUSED``."""
    for place, outcome in enumerate(expected):
        if "modified by an inplace operation" in str(outcome.forms["exception"]):
            return expected[:place]
    return expected[:1] if getattr(module, "REFUSED", None) else expected


def _outcomes(
    module: Any, program: Callable[..., Any], make: Callable[[], tuple[Any, ...]], name: str
) -> list[Any]:
    """The outcome of one call, and that of ``after``, if the program's text has one."""
    from fx_interface.conformance.outcomes import observe, seed_everywhere

    seed_everywhere(1)
    try:
        arguments = make()
    except Exception as error:
        raise NoArgumentsError from error
    after = getattr(module, "after", None)
    watched = getattr(module, "WATCHED", None)
    results: list[Any] = []

    def call(*given: Any) -> Any:
        results.append(program(*given))
        return results[0]

    with _restored():
        outcomes = [observe(call, *arguments, backward=after is None, also=watched, lines_of=name)]
    if after is not None and results:
        with _restored():
            outcomes.append(observe(after, *results, *arguments, backward=False, also=watched, lines_of=name))
    return outcomes


def _after(module: Any, number: int, program: Callable[..., Any]) -> Callable[..., Any]:
    """The program, called after the change that belongs to the call of this number."""
    changes = getattr(module, "CHANGES", None)
    change = None if changes is None else changes[number]
    if change is None:
        return program

    from shared_names import remember

    def call(*args: Any) -> Any:
        restore = remember()
        try:
            undo = change()
            try:
                return program(*args)
            finally:
                if undo is not None:
                    undo()
        finally:
            restore()

    return call


def module_of(source: str, name: str) -> Any:
    """A module that runs a program's text."""
    from fx_interface.conformance.outcomes import seed_everywhere

    seed_everywhere(1)
    made = ModuleType("adversary")
    made.__file__ = name
    sys.modules[made.__name__] = made  # where classes that are made look for their module
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(marshal.loads(_compiled(source, name)), made.__dict__)
    return made


@functools.lru_cache(2)
def _compiled(source: str, name: str) -> bytes:
    """What Python's compiler makes of a program's text, from which each way of running it takes code of its own."""
    return marshal.dumps(compile(source, name, "exec"))


@contextlib.contextmanager
def _restored() -> Iterator[None]:
    """What a program leaves switched on is switched off for the next."""
    import torch

    grad, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    modes, device = torch._C._len_torch_function_stack(), torch.get_default_device()
    try:
        yield
    finally:
        while torch._C._len_torch_function_stack() > modes:
            torch._C._pop_torch_function_stack()
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        torch.set_default_device(None if device.type == "cpu" else device)


@contextlib.contextmanager
def _logged(level: int) -> Iterator[list[str]]:
    """What the compiler logs at this level; errors are defects of its own, which the user's program survives."""
    found: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            trace = "" if record.exc_info is None else "".join(traceback.format_exception(*record.exc_info))
            found.append(f"logged: {record.getMessage()}\n{trace}")

    handler = Handler(level)
    handler.addFilter(lambda record: record.levelno == level)
    loggers = [
        logging.getLogger(name) for name in ("dynamo_capture", "fxstack", "aot_autograd", "inductor_codegen")
    ]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield found
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


def run_in_test(path: Path, count: int, backend: str) -> tuple[frozenset[int], str]:
    """The adversary at ``path`` as a test: the numbers of the programs that differ, and what it printed.

    ``ADVERSARY_TIMES`` multiplies the number of programs, ``ADVERSARY_SEED`` draws others, ``ADVERSARY_JOBS`` is the
    number of processes side by side.
    """
    total = count * int(os.environ.get("ADVERSARY_TIMES", "1"))
    chosen = [
        "--seed",
        os.environ.get("ADVERSARY_SEED", "1"),
        "--jobs",
        os.environ.get("ADVERSARY_JOBS", "1"),
    ]
    run = partial(
        subprocess.run,
        [sys.executable, str(path), str(total), *chosen, "--backend", backend],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        done = run()
    except OSError:  # no process could be started (EFAULT was seen once, where memory was short)
        done = run()
    text = done.stdout[-20000:] + done.stderr[-5000:]
    differing = re.findall(r"^# program (\d+) of seed", done.stdout, re.MULTILINE)
    assert done.returncode == 0 or differing, text
    return frozenset(map(int, differing)), text
