"""``fxstack bench``: a program of the user's, eager and compiled by each backend."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import click
import torch
from torch.utils import _pytree as pytree

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.cli.output import as_json, say_json, say_table
from fxstack.cli.programs import ProgramError, made_program
from fxstack.compile import compile, reset

_FAR = 1e-2
"""A result that differs so much from eager's, of its largest value, is wrong rather than rounded otherwise."""
Step = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """One backend: seconds of the first call, of a call afterwards, and the largest difference to eager's results, of
    their largest value; ``failure``: why there are none."""

    backend: str
    first: float = 0.0
    call: float = 0.0
    difference: float = 0.0
    failure: str = ""

    def row(self, eager: float) -> tuple[str, ...]:
        """The cells of the table."""
        if self.failure:
            return self.backend, "", "", "", self.failure
        times = f"{eager / self.call:.2f}x"
        return (
            self.backend,
            f"{self.first:.2f} s",
            f"{self.call * 1e3:.3f} ms",
            times,
            f"{self.difference:.1e}",
        )


@click.command(short_help="Eager beside compiled: what make() of FILE returns.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--make", "name", default="make", show_default=True, help="the function in FILE to call")
@click.option(
    "--backend", "backends", multiple=True, default=("inductor",), show_default=True, help="may be repeated"
)
@click.option("--train", is_flag=True, help="also the backward of the sum of all results")
@click.option("--seconds", default=1.0, show_default=True, help="how long each is run")
@as_json
def bench(file: str, name: str, backends: Sequence[str], train: bool, seconds: float, as_json: bool) -> int:
    """Compare eager with backends on what the function make() of FILE returns: (callable, arguments).

    The arguments are a tuple, or a dict for keywords:

    \b
        def make():
            return Model(), (torch.randn(8, 16),)

    Compilation is cold, in an empty cache. Exit status: 0, or 1 if a
    backend fails or its results are far from eager's, or eager fails.
    """
    function, arguments, _ = made_program(file, name)
    expected: Any = None
    found: list[Measured] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FXSTACK_CACHE_DIR"] = folder
        for backend in ("eager (no compiler)", *backends):
            click.echo(f"{backend} ...", err=True)
            try:
                run = function if not found else compile(function, backend=backend)
                result, first, call = _measure(_step(run, arguments, train), seconds)
            except Exception as error:
                if not found:
                    raise ProgramError(file, error) from error
                found.append(Measured(backend, failure=f"{type(error).__name__}: {error}".splitlines()[0]))
                continue
            expected = result if not found else expected
            found.append(Measured(backend, first, call, _difference(expected, result)))
            reset()
    if as_json:
        names = ("backend", "first", "call", "difference", "failure")
        say_json([{name: getattr(one, name) for name in names} for one in found])
    else:
        say_table(
            ("backend", "first call", "call", "speed-up", "difference"), [m.row(found[0].call) for m in found]
        )
    return int(any(one.failure or one.difference > _FAR for one in found))


def _step(run: Callable[..., Any], arguments: Any, train: bool) -> Step:
    positional, keywords = ((), arguments) if isinstance(arguments, dict) else (arguments, {})

    def step() -> Any:
        results = [x for x in pytree.tree_leaves(run(*positional, **keywords)) if isinstance(x, torch.Tensor)]
        if train:
            sum((x.float().sum() for x in results if x.requires_grad), torch.zeros(())).backward()  # type: ignore[no-untyped-call]
        return [x.detach() for x in results]

    return step


def _measure(step: Step, seconds: float) -> tuple[Any, float, float]:
    """The first call's results, its seconds, and those of the shortest call afterwards."""
    torch.manual_seed(0)
    begin = _now()
    result = step()
    first = _now() - begin
    shortest, end = float("inf"), _now() + seconds
    while True:
        begin = _now()
        step()
        done = _now()
        shortest = min(shortest, done - begin)
        if done >= end:
            return result, first, shortest


def _now() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def _difference(expected: Sequence[torch.Tensor], found: Sequence[torch.Tensor]) -> float:
    if [x.shape for x in expected] != [x.shape for x in found]:
        return float("inf")
    worst = 0.0
    for one, other in zip(expected, found, strict=True):
        if one.numel():
            largest = max(float(one.abs().max()), 1e-30)
            worst = max(worst, float((one.double() - other.double()).abs().max()) / largest)
    return worst
