"""What compiling costs as a model gets deeper: a cold first call of 2, 12 and 48 equal layers, by stage.

    python -m benchmarks.layers --models encoder bert --layers 2 12 48 [--no-stages]

Each figure is of a process of its own with an empty cache, in which torch, fxstack, the model and an eager step came
first. Shown are CPU seconds: of this process by stage (a stage's own events end it), of the C++ compiler, of all of the
first call but what a second one takes (the step itself, which compiles nothing), and how often that is what the
smallest number of layers takes. Where somebody listens to events, graphs are compiled whole: ``--no-stages`` measures
first calls as users have them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.process import ROOT, in_checkout

MODELS = ("encoder", "bert")
STAGES = {
    "capture": ("trace", "graph", "guards", "frame"),
    "joint": ("joint",),
    "decompose": ("decompose",),
    "lower": ("lower",),
    "schedule": ("schedule",),
    "text": ("kernels",),
    "rest": ("cache", "compile", "backend"),
}
"""Stages in the order of the pipeline, each with the kinds of events that end it."""
COLUMNS = (*STAGES, "C++", "all", "run", "compile")


def encoder(layers: int) -> tuple[Any, dict[str, Any]]:
    """A transformer encoder in plain torch, normalisation first, width 64."""
    import torch
    from torch import nn

    layer = nn.TransformerEncoderLayer(64, 4, 256, 0.0, "gelu", batch_first=True, norm_first=True)
    stack = nn.TransformerEncoder(layer, layers, nn.LayerNorm(64), enable_nested_tensor=False)
    return stack, {"src": torch.randn(2, 32, 64)}


def build(model: str, layers: int) -> tuple[Any, dict[str, Any]]:
    """The module and its inputs."""
    if model == "encoder":
        return encoder(layers)
    from benchmarks.stages import transformer

    return transformer(layers)


def main_of_process(model: str, layers: int, training: bool, stages: bool = True) -> None:
    """In a fresh process: print the CPU seconds of a first call, by stage if anybody is to listen, and the number of
    characters."""
    import torch

    import fxstack
    import fxstack.pipeline
    from fx_interface.events import listening

    torch.manual_seed(1)
    built, inputs = build(model, layers)
    step = _step_of(inputs, training)
    step(built)
    found = dict.fromkeys(COLUMNS, 0.0) | {"entries": 0.0}
    stage_of = {kind: stage for stage, kinds in STAGES.items() for kind in kinds}
    before = begun = time.process_time()

    def ended(event: Any) -> None:
        nonlocal before
        now = time.process_time()
        found[stage_of.get(event.kind, "rest")] += now - before
        before = now
        if event.kind == "compile":
            found["entries"] += sum(len(unit.text) for unit in event.facts["units"] if unit.name == "entry")

    compiler = _of_children()
    with listening(ended) if stages else contextlib.nullcontext():
        compiled = fxstack.compile(built)
        step(compiled)
    found["C++"] = _of_children() - compiler
    found["all"] = time.process_time() - begun + found["C++"]
    begun = time.process_time()
    step(compiled)
    found["run"] = time.process_time() - begun
    found["compile"] = found["all"] - found["run"]
    print(json.dumps(found))


def _step_of(inputs: dict[str, Any], training: bool) -> Callable[[Any], None]:
    import torch

    from benchmarks.models import loss_of

    def step(called: Any) -> None:
        with torch.set_grad_enabled(training):
            result = called(**inputs)
            if training:
                loss = result.square().mean() if isinstance(result, torch.Tensor) else loss_of(result)
                loss.backward()  # type: ignore[no-untyped-call]

    return step


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(
    tree: Path, model: str, layers: int, training: bool, bytecode: Path, stages: bool = True
) -> dict[str, float]:
    """The figures of one process that runs the packages of a checkout."""
    program = (
        f"from benchmarks.layers import main_of_process as m; m({model!r}, {layers}, {training}, {stages})"
    )
    with tempfile.TemporaryDirectory() as cache:
        return in_checkout(tree, program, bytecode, FXSTACK_CACHE_DIR=cache)


def main(argv: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.layers", description=__doc__)
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=MODELS)
    parser.add_argument("--layers", nargs="*", type=int, default=[2, 12, 48])
    parser.add_argument("--rounds", type=int, default=2, help="the least of so many is shown")
    parser.add_argument("--against", type=Path, nargs="*", default=[], help="other checkouts")
    parser.add_argument("--no-stages", dest="stages", action="store_false", help="nobody listens to events")
    arguments = parser.parse_args(argv)
    trees = [ROOT, *(tree.resolve() for tree in arguments.against)]
    table = Table(title="CPU seconds of a cold first call")
    for title in ("", "layers", *COLUMNS, "times", "k of entries"):
        table.add_column(title, justify="right")
    with tempfile.TemporaryDirectory() as kept:
        for model in arguments.models:
            for training in (False, True):
                for number, tree in enumerate(trees):
                    title = f"{model} {'training' if training else 'inference'}, {tree.name}"
                    fewest = 0.0
                    for layers in sorted(arguments.layers):
                        runs = [
                            measure(
                                tree,
                                model,
                                layers,
                                training,
                                Path(kept) / f"bytecode{number}",
                                arguments.stages,
                            )
                            for _ in range(arguments.rounds)
                        ]
                        least = min(runs, key=lambda run: run["all"])
                        fewest = fewest or least["compile"]
                        shown = (f"{least[column]:.2f}" for column in COLUMNS)
                        times = f"{least['compile'] / fewest:.2f}"
                        table.add_row(title, str(layers), *shown, times, f"{least['entries'] / 1000:.0f}")
    Console(width=None if sys.stdout.isatty() else 160).print(table)


if __name__ == "__main__":
    main()
