"""What starting costs: ``import fxstack`` after torch, and a first call with a cold and with a warm cache.

    python -m benchmarks.start --rounds 8 --against ../another-checkout

Each figure is from a process of its own, in which torch, the model and an eager step came first; the checkouts take
turns. Shown are the least CPU seconds of all rounds (a cold call's with those of the C++ compiler that it starts):
least, because whatever else runs on the machine only adds to them.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.process import ROOT, in_checkout

MODELS = ("mlp", "convnet", "bert")
PHASES = ("import", "cold", "warm", "import + warm")

_Built = tuple[Any, dict[str, Any]]


def _mlp() -> _Built:
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8))
    return model, {"input": torch.randn(4, 16)}


def _convnet() -> _Built:
    """Two convolutions with batch norm, in training mode."""
    import torch
    from torch import nn

    layers: list[nn.Module] = []
    for channels in (3, 8):
        layers += [nn.Conv2d(channels, 8, 3), nn.BatchNorm2d(8), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(4)), {"input": torch.randn(2, 3, 12, 12)}


def _bert() -> _Built:
    """Two layers and a head, with labels."""
    from benchmarks.stages import transformer

    return transformer(2)


BUILD: dict[str, Callable[[], _Built]] = {"mlp": _mlp, "convnet": _convnet, "bert": _bert}


def main_of_process(model: str, training: bool) -> None:
    """In a fresh process: print the CPU seconds of the import and of the first call."""
    import torch

    from benchmarks.models import loss_of

    torch.manual_seed(1)
    built, inputs = BUILD[model]()

    def step(called: Any) -> None:
        if training:
            loss_of(called(**inputs)).backward()  # type: ignore[no-untyped-call]
        else:
            with torch.no_grad():
                called(**inputs)

    step(built)
    begun = _cpu()
    import fxstack

    imported = _cpu()
    step(fxstack.compile(built))
    print(json.dumps({"import": imported - begun, "call": _cpu() - imported}))


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measure(tree: Path, model: str, training: bool, cache: Path, bytecode: Path) -> dict[str, float]:
    """The figures of one process that runs the packages of a checkout."""
    program = f"from benchmarks.start import main_of_process as m; m({model!r}, {training!r})"
    return in_checkout(tree, program, bytecode, FXSTACK_CACHE_DIR=str(cache))


def least(
    trees: Sequence[Path], models: Sequence[str], training: bool, rounds: int
) -> dict[str, dict[str, list[float]]]:
    """For each model and phase the least CPU seconds of each checkout."""
    samples: dict[str, dict[str, list[list[float]]]] = {
        model: {phase: [[] for _ in trees] for phase in PHASES} for model in models
    }
    with tempfile.TemporaryDirectory() as kept:
        for _ in range(rounds + 1):  # the first one writes bytecode, and does not count
            for model in models:
                for number, tree in enumerate(trees):
                    bytecode = Path(kept) / f"bytecode{number}"
                    with tempfile.TemporaryDirectory() as cache:
                        cold, warm = (measure(tree, model, training, Path(cache), bytecode) for _ in range(2))
                    figures = {"import": warm["import"], "cold": cold["call"], "warm": warm["call"]}
                    figures["import + warm"] = warm["import"] + warm["call"]
                    for phase, seconds in figures.items():
                        samples[model][phase][number].append(seconds)
    return {
        model: {phase: [min(of_tree[1:]) for of_tree in found] for phase, found in phases.items()}
        for model, phases in samples.items()
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__)
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=MODELS)
    parser.add_argument("--inference", action="store_true", help="without gradients")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--against", type=Path, nargs="*", default=[], help="other checkouts, with their native parts"
    )
    arguments = parser.parse_args(argv)
    trees = [ROOT, *(tree.resolve() for tree in arguments.against)]
    found = least(trees, arguments.models, not arguments.inference, arguments.rounds)
    table = Table(title="least CPU seconds")
    for title in ("", *PHASES):
        table.add_column(title, justify="right")
    for model, phases in found.items():
        for number, tree in enumerate(trees):
            table.add_row(f"{model}, {tree.name}", *(f"{phases[phase][number]:.3f}" for phase in PHASES))
    Console().print(table)


if __name__ == "__main__":
    main()
