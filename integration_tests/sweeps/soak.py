"""Compiles and drops thousands of functions on several threads, and fails if the process grows.

    python integration_tests/sweeps/soak.py --functions 10000 --threads 8

Each function is made anew from one of some texts (branches, loops, breaks, classes, modules, training), compiled with
``fxstack.compile``, called twice, checked against eager, and dropped. Now and then ``fxstack.reset()`` is called. The
resident memory and the number of objects that the garbage collector knows are printed at intervals; after a warm-up
neither may grow by more than 5%.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from random import Random
from typing import Any

GROWTH = 0.05
WARM_UP = 0.25
"""The part of all functions after which memory counts."""

TEXTS = (
    "def f(x):\n    return (x * {n} + 1).relu().sum(-1)\n",
    "def f(x):\n    h = x\n    for i in range({n} % 5):\n        h = h * i + x.sin()\n    return h\n",
    "def f(x):\n    h = x + {n}\n    print(end='')\n    return h.cos() * 2\n",
    "def f(x):\n    if x.sum() > {n}:\n        return x + 1\n    return x - 1\n",
    "class C:\n    def __init__(self, v):\n        self.v = v\n    def m(self, x):\n        return x * self.v\n"
    "def f(x):\n    return C({n}).m(x) + C(2).m(x)\n",
    "def g(x, k={n}):\n    return [x * k, {{'a': x + k}}]\ndef f(x):\n    a, b = g(x)\n    return a + b['a']\n",
    "m = torch.nn.Linear(4, 4)\ndef f(x):\n    return torch.tanh(m(x)) * {n}\n",
    "m = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())\nf = m\n",
    "def f(x):\n    with torch.no_grad():\n        h = x * {n}\n        print(end='')\n    return h + x\n",
    "def f(x):\n    try:\n        raise ValueError({n})\n    except ValueError as e:\n        return x + e.args[0]\n",
)


@dataclass(frozen=True, slots=True)
class Reading:
    """The process at one moment."""

    done: int
    bytes: int
    objects: int


def main() -> int:
    """The command line; 1 if memory grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--readings", type=int, default=40)
    parser.add_argument("--aot-eager", type=float, default=0.1, help="the share of functions for aot_eager")
    parser.add_argument("--inductor", type=float, default=0.01, help="the share of functions for inductor")
    parser.add_argument(
        "--kinds", action="store_true", help="print the classes of which there are more at the end"
    )
    options = parser.parse_args()
    readings, failures = soak(options)
    return verdict(readings, failures)


def soak(options: argparse.Namespace) -> tuple[list[Reading], list[str]]:
    """Compile all functions; what was read on the way, and what went wrong."""
    readings: list[Reading] = []
    failures: list[str] = []
    kinds: list[Counter[str]] = []
    step = max(1, options.functions // options.readings)
    for start in range(0, options.functions, step):
        count = min(step, options.functions - start)
        failures += _on_threads(range(start, start + count), options)
        readings.append(_reading(start + count))
        print(_shown(readings[-1]), flush=True)
        if options.kinds:
            kinds.append(Counter(type(item).__qualname__ for item in gc.get_objects()))
    if options.kinds:
        more = kinds[-1] - kinds[int(len(kinds) * WARM_UP)]
        print("more at the end:", dict(more.most_common(20)))
    return readings, failures


def verdict(readings: list[Reading], failures: list[str]) -> int:
    """Print what was found; 1 for growth or a failure."""
    warm = readings[int(len(readings) * WARM_UP)]
    last = readings[-1]
    memory, objects = last.bytes / warm.bytes - 1, last.objects / warm.objects - 1
    print(
        f"after the warm-up memory grew by {memory:+.1%}, objects by {objects:+.1%}; {len(failures)} failures"
    )
    print(*failures[:5], sep="\n")
    return int(memory > GROWTH or objects > GROWTH or bool(failures))


def _on_threads(numbers: range, options: argparse.Namespace) -> list[str]:
    waiting: SimpleQueue[int] = SimpleQueue()
    for number in numbers:
        waiting.put(number)
    failures: list[str] = []

    def work() -> None:
        while True:
            try:
                number = waiting.get_nowait()
            except Empty:
                return
            try:
                _one(number, options)
            except Exception as error:
                failures.append(f"function {number}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=work) for _ in range(options.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def _one(number: int, options: argparse.Namespace) -> None:
    import torch

    import fxstack

    random = Random(number)
    draw = random.random()
    backend = "eager"
    if draw < options.inductor:
        backend = "inductor"
    elif draw < options.inductor + options.aot_eager:
        backend = "aot_eager"
    function = _made(random.choice(TEXTS).format(n=random.randint(1, 6)))
    compiled = fxstack.compile(
        function, backend=backend, options={"cache": False} if backend == "inductor" else None
    )
    for rows in (2, 3):
        x = torch.full((rows, 4), 0.5, requires_grad=random.random() < 0.3)
        result, expected = compiled(x), function(x)
        if result.requires_grad:
            result.sum().backward()
        if not torch.allclose(result, expected, atol=1e-5):
            raise AssertionError(f"{backend} differs")
    if number % 500 == 499:
        fxstack.reset()


def _made(text: str) -> Callable[..., Any]:
    import torch

    space: dict[str, Any] = {"torch": torch, "__name__": "soaked"}
    exec(compile(text, "<soaked>", "exec"), space)
    made: Callable[..., Any] = space["f"]
    return made


def _reading(done: int) -> Reading:
    gc.collect()
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return Reading(done, pages * os.sysconf("SC_PAGE_SIZE"), len(gc.get_objects()))


def _shown(reading: Reading) -> str:
    return (
        f"{time.strftime('%H:%M:%S')} {reading.done:6} functions, "
        f"{reading.bytes / 2**20:8.1f} MiB, {reading.objects:8} objects"
    )


if __name__ == "__main__":
    sys.exit(main())
