"""What watching compilations costs: nothing where nobody listens, a part of the compile time where somebody does.

    python -m benchmarks.observing --rounds 5 --model bert

- unheard: the events of one compilation, times what an event costs that nobody hears, as a part of the compile time;
- logs: compile time with all topics logged, to nowhere, beside that without;
- record: the same with ``fxstack.recording``.

Compile time is CPU seconds of a first call with an empty cache, less those of a second call, with and without the C++
compiler that it starts. The three take turns in one process, which has compiled the model once before; shown are the
least of all rounds: least, because whatever else runs on the machine only adds to them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.start import BUILD, MODELS

_CALLS = 100_000


def _seconds() -> tuple[float, float]:
    """CPU seconds of this process, and of the processes that it started."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time(), children.ru_utime + children.ru_stime


def _unheard_event() -> float:
    """Seconds of a stretch of time that nobody hears: more than those of a moment."""
    from fx_interface.events import span

    begun = time.process_time()
    for _ in range(_CALLS):
        with span("frame", code=None) as event:
            event.note(replacement=None)
    return (time.process_time() - begun) / _CALLS


def _events(run: Callable[[], Any]) -> int:
    from fx_interface.events import listening

    heard: list[int] = []
    with listening(lambda event: heard.append(event.number)):
        run()
    return len(heard)


@contextlib.contextmanager
def _logged() -> Iterator[None]:
    import fxstack

    handler = logging.NullHandler()
    logger = logging.getLogger("fxstack")
    logger.addHandler(handler)
    logger.propagate = False
    try:
        with fxstack.logging():
            yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = True


def measure(model: str, rounds: int) -> dict[str, Any]:
    """Seconds of compiling, by who listens: ``(this process, with those it starts)``."""
    import fxstack

    module, inputs = BUILD[model]()

    def compile_once() -> tuple[float, float]:
        fxstack.reset()
        with tempfile.TemporaryDirectory() as folder:
            os.environ["FXSTACK_CACHE_DIR"] = folder
            compiled = fxstack.compile(module)
            found = []
            for _ in range(2):
                before = _seconds()
                compiled(**inputs)
                after = _seconds()
                found.append((after[0] - before[0], after[1] - before[1]))
        own = found[0][0] - found[1][0]
        return own, own + found[0][1] - found[1][1]

    listeners: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
        "nobody": contextlib.nullcontext,
        "logs": _logged,
        "record": fxstack.recording,
    }
    events = _events(compile_once)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in listeners}
    for _ in range(rounds):
        for name, listen in listeners.items():
            with listen():
                times[name].append(compile_once())
    least = {name: tuple(map(min, zip(*found, strict=True))) for name, found in times.items()}
    return {"events": events, "unheard": events * _unheard_event(), "seconds": least}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table; 1 if who listens costs more than ``--most`` of the compile time."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.observing", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", choices=MODELS, default="bert")
    parser.add_argument("--most", type=float, default=0.2, help="the most that a listener may add")
    parser.add_argument("--json", action="store_true", help="print the seconds as JSON")
    options = parser.parse_args(arguments)
    found = measure(options.model, options.rounds)
    if options.json:
        print(json.dumps(found))
    base, whole = found["seconds"]["nobody"]
    table = Table("who listens", "compiling, s", "added", "with the C++ compiler, s", "added")
    worst = 0.0
    for name, (own, total) in found["seconds"].items():
        worst = max(worst, total / whole - 1)
        table.add_row(name, f"{own:.3f}", f"{own / base - 1:.1%}", f"{total:.3f}", f"{total / whole - 1:.1%}")
    Console().print(table)
    print(f"{found['events']} events that nobody hears: {found['unheard'] / base:.4%} of compiling")
    return int(worst > options.most)


if __name__ == "__main__":
    raise SystemExit(main())
