"""Captures tiny models of the architectures in ``transformers`` and compares with eager and with stock's capture.

``python integration_tests/sweeps/architectures.py --every 4`` takes each fourth architecture. Chunks run in processes
of their own, so that a crash costs, and is counted against, one architecture. The backend runs graphs as captured:
what is measured is the capture. Results go to a JSON file and a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

sys.path.insert(0, str(Path(__file__).parent))
from tiny_models import NotFitting, TinyModel, architectures, build

CHUNK = 12
CALLS = 2


@dataclass(slots=True)
class Outcome:
    """One architecture under one capture. ``failure`` is empty where two calls equalled eager's."""

    name: str
    capture: str
    failure: str = ""
    graphs: int = 0
    breaks: list[str] = field(default_factory=list)
    seconds: float = 0.0


def compare(tiny: TinyModel, name: str, capture: str, compile: Callable[..., Any]) -> Outcome:
    """Call the model eagerly and captured, ``CALLS`` times each with the same seed."""
    outcome = Outcome(name, capture)
    graphs: list[Any] = []

    def backend(graph_module: Any, example_inputs: Any) -> Any:
        graphs.append(graph_module)
        return graph_module.forward

    with torch.no_grad():
        expected = [_seeded(tiny.model, tiny.inputs) for _ in range(CALLS)]
        if difference(expected[0], expected[1]):
            outcome.failure = "left out: eager differs from itself"
            return outcome
        start = time.perf_counter()
        try:
            captured = compile(tiny.model, backend)
            found = [_seeded(captured, tiny.inputs)]
            outcome.seconds = time.perf_counter() - start
            outcome.graphs = len(graphs)
            found += [_seeded(captured, tiny.inputs) for _ in range(CALLS - 1)]
        except Exception as error:
            outcome.failure = f"raised {type(error).__name__}: {str(error)[:300]}"
            return outcome
    differences = [difference(one, other) for one, other in zip(found, expected, strict=True)]
    outcome.failure = next(filter(None, differences), "")
    return outcome


def _seeded(function: Callable[..., Any], inputs: dict[str, Any]) -> Any:
    torch.manual_seed(3)
    copies = {
        key: value.clone() if isinstance(value, torch.Tensor) else value for key, value in inputs.items()
    }
    return function(**copies)


def difference(found: Any, expected: Any) -> str:
    """Where two results differ; empty if they do not."""
    mine, theirs = dict(leaves(found)), dict(leaves(expected))
    if mine.keys() != theirs.keys():
        return f"other parts: {sorted(mine.keys() ^ theirs.keys())[:3]}"
    for path, value in theirs.items():
        other = mine[path]
        if isinstance(value, torch.Tensor):
            if (
                not isinstance(other, torch.Tensor)
                or other.shape != value.shape
                or other.dtype != value.dtype
            ):
                return f"{path}: another kind of tensor"
            if not torch.allclose(other, value, rtol=1e-4, atol=1e-5, equal_nan=True):
                return f"{path}: differs by {(other - value).abs().max().item():.2e}"
        elif type(other) is not type(value) or other != value:
            return f"{path}: {other!r} for {value!r}"
    return ""


def leaves(value: Any, path: str = "result", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Tensors and plain values in containers, model outputs and caches, with their paths."""
    if isinstance(value, (torch.Tensor, int, float, str, bool)):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}[{key!r}]", depth)
    elif isinstance(value, (tuple, list)):
        for position, item in enumerate(value):
            yield from leaves(item, f"{path}[{position}]", depth)
    elif hasattr(value, "__dict__") and depth < 4:
        for key, item in vars(value).items():
            yield from leaves(item, f"{path}.{key}", depth + 1)


def ours(tiny: TinyModel, name: str) -> Outcome:
    """Under ``dynamo_capture``."""
    import dynamo_capture
    from primtorch_decomps import LIBRARY

    kept: list[Any] = []

    def compile(model: Any, backend: Any) -> Any:
        kept.append(dynamo_capture.optimize(backend, operators=LIBRARY))
        return kept[0](model)

    outcome = compare(tiny, name, "fxstack", compile)
    if kept:
        report = kept[0].report
        stops = (replacement.stopped for _, replacement in report.replacements)
        outcome.breaks = [f"{s.kind.code} {s.where}: {s.what}" for s in stops if s is not None]
        outcome.breaks += [f"runs eagerly: {code.co_qualname}: {reason}" for code, reason in report.eager]
    dynamo_capture.reset()
    return outcome


def stock(tiny: TinyModel, name: str) -> Outcome:
    """Under ``torch.compile``'s capture."""
    import torch._dynamo as dynamo

    dynamo.reset()
    dynamo.utils.counters.clear()
    outcome = compare(tiny, name, "stock", lambda model, backend: torch.compile(model, backend=backend))
    outcome.breaks = [str(reason).splitlines()[0] for reason in dynamo.utils.counters["graph_break"]]
    dynamo.reset()
    return outcome


def work(names: Sequence[str], with_stock: bool) -> None:
    """A worker's share, one line of JSON an outcome; stock last, since its import changes ``nn.Module``."""
    import transformers

    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    made: dict[str, TinyModel] = {}
    for name in names:
        print(json.dumps({"begin": name}), flush=True)
        try:
            made[name] = build(name)
        except NotFitting as error:
            print(json.dumps(asdict(Outcome(name, "eager", f"left out: {error}"))), flush=True)
        else:
            print(json.dumps(asdict(ours(made[name], name))), flush=True)
    for name, tiny in made.items() if with_stock else ():
        print(json.dumps({"begin": name}), flush=True)
        print(json.dumps(asdict(stock(tiny, name))), flush=True)


def outcomes(names: Sequence[str], with_stock: bool, limit: float) -> Iterator[Outcome]:
    """Run workers; an architecture during which one dies or hangs is an outcome too."""
    left = list(names)
    while left:
        chunk, left = left[:CHUNK], left[CHUNK:]
        command = [sys.executable, __file__, "--worker", *(["--stock"] if with_stock else []), *chunk]
        running, done = "", set()
        try:
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            ) as worker:
                assert worker.stdout is not None
                for line in worker.stdout:
                    record = json.loads(line) if line.startswith("{") else {}
                    running = record.get("begin", running)
                    if "name" in record:
                        done.add(running)
                        yield Outcome(**record)
                worker.wait(limit)
            died = worker.returncode != 0
        except subprocess.TimeoutExpired:
            died = True
        if died:
            yield Outcome(running, "fxstack" if running not in done else "stock", "the process died")
            left = [name for name in chunk if name not in done and name != running] + left


def table(found: Sequence[Outcome]) -> str:
    """The summary, and a row for each architecture that is not in one graph, or differs."""
    mine = {o.name: o for o in found if o.capture == "fxstack" and not o.failure.startswith("left out")}
    theirs = {o.name: o for o in found if o.capture == "stock"}
    equal = [o for o in mine.values() if not o.failure]
    one = [o for o in equal if o.graphs == 1]
    more = [
        n for n, o in mine.items() if n in theirs and not theirs[n].failure and o.graphs > theirs[n].graphs
    ]
    lines = [
        f"{len(mine)} architectures, {len(equal)} equal to eager, {len(one)} in one graph"
        f" ({100 * len(one) / max(1, len(mine)):.1f}%), {sum(o.seconds for o in mine.values()):.0f} s in first calls.",
    ]
    if theirs:
        right = [o for o in theirs.values() if not o.failure]
        lines.append(
            f"stock: {len(theirs)} architectures, {len(right)} equal to eager,"
            f" {sum(o.graphs == 1 for o in right)} in one graph,"
            f" {sum(o.seconds for o in theirs.values()):.0f} s in first calls;"
            f" more graphs than stock in {len(more)}: {', '.join(more) or 'none'}."
        )
    lines += ["", "| architecture | graphs | stock's | what |", "|---|---|---|---|"]
    for name, o in mine.items():
        if o.failure or o.graphs != 1 or o.breaks:
            beside = theirs.get(name)
            what = o.failure or "; ".join(text for text, _ in Counter(o.breaks).most_common(3))
            graphs = "-" if beside is None else beside.failure[:40] or str(beside.graphs)
            lines.append(f"| {name} | {o.graphs} | {graphs} | {what.replace('|', '/')[:300]} |")
    reasons = Counter(o.failure.split(":")[1].strip() for o in found if o.failure.startswith("left out"))
    lines += ["", f"Left out: {dict(reasons)}"]
    return "\n".join(lines)


def main(argv: Sequence[str]) -> int:
    """Exit status 1 if anything differs from eager."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="architectures; all by default")
    parser.add_argument("--every", type=int, default=1, help="take each n-th of them")
    parser.add_argument("--stock", action="store_true", help="stock's capture beside ours")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds for a worker's share")
    parser.add_argument("--output", type=Path, default=Path("sweep-results"))
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    names = (arguments.names or architectures())[:: arguments.every]
    if arguments.worker:
        work(names, arguments.stock)
        return 0
    found: list[Outcome] = []
    for outcome in outcomes(names, arguments.stock, arguments.limit):
        found.append(outcome)
        print(f"{outcome.capture:8} {outcome.name:32} {outcome.graphs:3} {outcome.failure[:120]}", flush=True)
    arguments.output.mkdir(exist_ok=True)
    (arguments.output / "architectures.json").write_text(json.dumps([asdict(o) for o in found], indent=1))
    (arguments.output / "architectures.md").write_text(table(found) + "\n")
    print(table(found))
    return int(
        any(o.failure and o.capture == "fxstack" and not o.failure.startswith("left out") for o in found)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
