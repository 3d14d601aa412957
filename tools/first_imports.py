"""Imports each module of the packages as the first of them in a process of its own.

A module that works only after another one has been imported fails for whoever imports it first. torch, which no module
here can change, is imported once; each module then has a forked process. A module that needs a distribution that is not
installed is counted apart. ``python tools/first_imports.py [PACKAGE ...] [--every N] [--jobs N]``.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import packages_distributions
from multiprocessing import get_context
from multiprocessing.connection import Connection

from import_circles import modules
from workspace import PACKAGES

FORK = get_context("fork")


@dataclass(frozen=True)
class Failure:
    """A module that could not be imported first: the end of its traceback, and a distribution that it lacked."""

    module: str
    text: str
    missing: str | None


def names(packages: Sequence[str] = ()) -> list[str]:
    """The modules of some packages, of all by default; ``__main__`` files are programs and left out."""
    chosen = [package for package in PACKAGES if not packages or package.name in packages]
    found = [name for package in chosen for name in modules(package.folder / "src")]
    return [name for name in found if not name.endswith("__main__")]


def import_first(name: str) -> Failure | None:
    """Import a module in a forked process, in which none of its package is imported, and say how it failed."""
    ours = {package.module for package in PACKAGES}
    early = sorted(loaded for loaded in sys.modules if loaded.partition(".")[0] in ours)
    if early:
        raise RuntimeError(f"imported already: {', '.join(early[:3])}")
    receiver, sender = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_import, args=(name, sender))
    process.start()
    sender.close()
    try:
        outcome: Failure | None = receiver.recv()
    except EOFError:
        outcome = Failure(name, "the process ended", None)
    process.join()
    return outcome


def _import(name: str, sender: Connection) -> None:
    try:
        import_module(name)
        failure = None
    except BaseException as error:
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        is_foreign = absent is not None and absent.partition(".")[0] not in packages_distributions()
        text = "".join(traceback.format_exception(error)[-2:])
        failure = Failure(name, text, absent if is_foreign else None)
    sender.send(failure)
    os._exit(0)


def failures(wanted: Sequence[str], jobs: int) -> Iterator[Failure]:
    """How each module that cannot be imported first fails, in order."""
    with ThreadPoolExecutor(jobs) as pool:
        yield from (failure for failure in pool.map(import_first, wanted) if failure is not None)


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status is 1 if a module cannot be imported first for another reason than a missing distribution."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="*", help="distributions, all by default")
    parser.add_argument("--every", type=int, default=1, help="each n-th module only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    options = parser.parse_args(argv)
    import_module("torch")
    wanted = names(options.packages)[:: options.every]
    found = list(failures(wanted, options.jobs))
    faults = [failure for failure in found if failure.missing is None]
    for failure in faults:
        print(f"{failure.module}: {failure.text}")
    lacking = sorted({failure.missing for failure in found if failure.missing})
    print(f"{len(wanted)} modules, {len(faults)} cannot be imported first")
    if lacking:
        print(f"{len(found) - len(faults)} need what is not installed: {', '.join(lacking)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
