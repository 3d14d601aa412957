"""Runs tiny models of the architectures in ``transformers`` captured and compares with eager and with stock's capture.

``python integration_tests/sweeps/architectures.py --every 4`` takes each fourth one, ``--stack`` adds the whole
stack with gradients. Chunks run in processes of their own, so that a crash or a hang costs, and is counted against,
one architecture. What is compared is the capture: graphs run as they are. Results go to ``architectures.jsonl`` as they
come, a line each, then to a JSON file and a Markdown table; ``--page docs/architectures.md`` writes the documentation's
page of what was not captured whole. ``--merge`` reports results of earlier runs (of both kinds of files), nothing else.

``--train`` trains them with the whole stack instead, at two sizes, and measures results, loss, gradients and buffers
against float64 (``training.py``); ``--merge`` adds the results of earlier runs, ``--missing`` runs what these lack.
The results of ``docs/architectures-training.md`` are in ``training_results.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

sys.path.insert(0, str(Path(__file__).parent))
from architecture_report import page, table
from captures import Outcome, ours, stock, whole_stack
from tiny_models import NotFitting, TinyModel, architectures, build

CHUNK = 12


def work(names: Sequence[str], ways: Sequence[str], limit: int) -> None:
    """A worker's share, one line of JSON an outcome; stock last, since its import changes ``nn.Module``."""
    import transformers

    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    made: dict[str, TinyModel] = {}
    for name in names:
        _begin(name, "eager", limit)
        try:
            made[name] = build(name)
        except NotFitting as error:
            print(json.dumps(asdict(Outcome(name, "eager", f"left out: {error}"))), flush=True)
    for way in ways:
        for name, tiny in made.items():
            _begin(name, way, limit)
            print(json.dumps(asdict(WAYS[way](tiny, name))), flush=True)


WAYS: dict[str, Callable[[TinyModel, str], Outcome]] = {"fxstack": ours, "stack": whole_stack, "stock": stock}


def _begin(name: str, way: str, limit: int) -> None:
    """Tell what is done next; one that takes longer than ``limit`` seconds ends the process."""
    signal.alarm(limit)
    print(json.dumps({"begin": name, "way": way}), flush=True)


Tell = Callable[[Outcome], None]


def outcomes(
    names: Sequence[str], ways: Sequence[str], limit: int, jobs: int, tell: Tell
) -> Iterator[Outcome]:
    """Run workers, ``jobs`` at a time; what a worker was at when it died or hung is an outcome too. Each is told at
    once, and given in order."""
    chunks = [list(names[start : start + CHUNK]) for start in range(0, len(names), CHUNK)]
    with ThreadPoolExecutor(jobs) as pool:
        for found in pool.map(lambda chunk: _chunk(chunk, ways, limit, tell), chunks):
            yield from found


def _chunk(names: list[str], ways: Sequence[str], limit: int, tell: Tell) -> list[Outcome]:
    """The outcomes of some architectures. After a death the next process does what was left."""
    found: list[Outcome] = []
    left: list[tuple[list[str], list[str]]] = [(names, list(ways))]
    while left:
        found += _worker(*left.pop(), limit, left, tell)
    return found


def _worker(
    names: list[str], ways: list[str], limit: int, left: list[tuple[list[str], list[str]]], tell: Tell
) -> list[Outcome]:
    """One process; what it has not done when it dies is added to ``left``."""
    command = [sys.executable, __file__, "--worker", "--limit", str(limit), "--ways", ",".join(ways), *names]
    running, done = {"begin": "", "way": ""}, []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as worker:
        assert worker.stdout is not None
        for line in worker.stdout:
            record = json.loads(line) if line.startswith("{") else {}
            running = record if "begin" in record else running
            if "name" in record:
                done.append(Outcome(**record))
                tell(done[-1])
    if worker.returncode == 0:
        return done
    name, way = running["begin"], running["way"]
    what = "took too long" if worker.returncode == -signal.SIGALRM else "the process died"
    after = names[names.index(name) + 1 :] if name in names else []
    if way not in ways:  # it died before anything was compared
        left.append(([other for other in names if other != name], ways))
        tell(out := Outcome(name, "eager", f"left out: {what}"))
        return [out]
    if after:
        left.append((after, [way]))
    if way != ways[-1]:
        left.append((names, ways[ways.index(way) + 1 :]))
    tell(out := Outcome(name, way, what))
    return [*done, out]


def _read(path: Path) -> list[dict[str, Any]]:
    """The results in a file of an earlier run, whole or line by line."""
    text = path.read_text()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    records: list[dict[str, Any]] = json.loads(text)
    return records


class _Lines:
    """Writes results line by line as they come."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        self._file = path.open("w")

    def __call__(self, outcome: Outcome) -> None:
        self._file.write(json.dumps(asdict(outcome)) + "\n")
        self._file.flush()


def main(argv: Sequence[str]) -> int:
    """Exit status 1 if anything differs from eager."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="architectures; all by default")
    parser.add_argument("--every", type=int, default=1, help="take each n-th of them")
    parser.add_argument("--offset", type=int, default=0, help="the first of them")
    parser.add_argument("--stock", action="store_true", help="stock's capture beside ours")
    parser.add_argument("--stack", action="store_true", help="the whole stack, with gradients, too")
    parser.add_argument("--train", action="store_true", help="training against float64, and nothing else")
    parser.add_argument("--report", action="store_true", help="with --train: run none, report what is merged")
    parser.add_argument("--missing", action="store_true", help="with --train: those without a merged result")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--limit", type=int, default=120, help="seconds for one architecture in one way")
    parser.add_argument("--output", type=Path, default=Path("sweep-results"))
    parser.add_argument("--page", type=Path, help="write the documentation's page")
    parser.add_argument("--note", default="", help="a paragraph about these results, for the page")
    parser.add_argument(
        "--merge", type=Path, nargs="*", default=[], help="results of other runs, to be reported together"
    )
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--ways", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.worker:
        work(arguments.names, arguments.ways.split(","), arguments.limit)
        return 0
    if arguments.train:
        from training_report import Plan, sweep  # imports the whole stack

        chosen = (arguments.names or architectures())[arguments.offset :: arguments.every]
        return sweep(
            Plan(
                [] if arguments.report else chosen,
                arguments.limit,
                arguments.jobs,
                arguments.output,
                arguments.merge,
                arguments.page,
                arguments.missing,
            )
        )
    records = [record for path in arguments.merge for record in _read(path)]
    found = list({(r["name"], r["capture"]): Outcome(**r) for r in records}.values())  # the later file counts
    if not arguments.merge:
        names = (arguments.names or architectures())[arguments.offset :: arguments.every]
        ways = ["fxstack", *(["stack"] if arguments.stack else []), *(["stock"] if arguments.stock else [])]
        tell = _Lines(arguments.output / "architectures.jsonl")
        for outcome in outcomes(names, ways, arguments.limit, arguments.jobs, tell):
            found.append(outcome)
            print(
                f"{outcome.capture:8} {outcome.name:32} {outcome.graphs:3} {outcome.failure[:120]}",
                flush=True,
            )
    arguments.output.mkdir(exist_ok=True)
    (arguments.output / "architectures.json").write_text(json.dumps([asdict(o) for o in found], indent=1))
    (arguments.output / "architectures.md").write_text(table(found) + "\n")
    if arguments.page:
        arguments.page.write_text(page(found, arguments.note))
    print(table(found))
    wrong = [
        o
        for o in found
        if o.failure and o.capture in ("fxstack", "stack") and not o.failure.startswith("left out")
    ]
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
