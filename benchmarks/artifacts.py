"""``python -m benchmarks.artifacts``: BERT of the usual size as an artifact; what a fresh process pays for a result.

One process makes the file and times steps of it. Then fresh processes import torch and load it, with all hashes and
once more with ``remember=True``. CPU time of one thread in milliseconds, so that other processes count only in so far
as they share caches and memory; at the end the medians, with the kernel's share and the pages that were mapped.

Modules come from bytecode, as they do where a package was installed: the first process of each kind writes it, into a
folder of its own, and does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

TOKENS = 16
STEPS = 10


def milliseconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU time of this process, and what the call returned."""
    start = time.process_time()
    made = call()
    return (time.process_time() - start) * 1000, made


def steps(call: Callable[[], Any]) -> float:
    """The median of some calls."""
    return statistics.median(milliseconds(call)[0] for _ in range(STEPS))


def make(path: str, layers: int) -> dict[str, float]:
    """Write the artifact at ``path``, and its input and eager's result beside it."""
    import torch
    from transformers import BertConfig, BertModel

    import fxstack

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = BertModel(BertConfig(num_hidden_layers=layers), add_pooling_layer=False).eval()
    ids = torch.arange(TOKENS).unsqueeze(0) + 1000

    def hidden(ids: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = model(input_ids=ids).last_hidden_state
        return found

    class Hidden(torch.nn.Module):
        """BERT's last hidden states, of token numbers."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.model(input_ids=ids).last_hidden_state
            return found

    with torch.no_grad():
        fxstack.aot_compile(Hidden(), (ids,), path=path)
        compiled = fxstack.compile(hidden)
        want, got = hidden(ids), compiled(ids)
        torch.save({"ids": ids, "want": want, "got": got}, f"{path}.pt")
        return {"eager": steps(lambda: hidden(ids)), "compiled in process": steps(lambda: compiled(ids))}


def load(path: str, remember: bool) -> dict[str, float]:
    """Load it in this fresh process and run it."""
    torch_import, torch = milliseconds(lambda: __import__("torch"))
    torch.set_num_threads(1)
    kept = torch.load(f"{path}.pt")
    before = resource.getrusage(resource.RUSAGE_SELF)
    loader_import, loader = milliseconds(lambda: __import__("fxstack_artifact"))
    loading, artifact = milliseconds(lambda: loader.load(path, remember=remember))
    with torch.no_grad():
        first, got = milliseconds(lambda: artifact(kept["ids"]))
        after = resource.getrusage(resource.RUSAGE_SELF)
        later = steps(lambda: artifact(kept["ids"]))
    assert torch.equal(got, kept["got"]), "the artifact's result is not that of the process that made it"
    torch.testing.assert_close(got, kept["want"], rtol=1e-4, atol=1e-5)
    return {
        "import torch": torch_import,
        "import the loader": loader_import,
        "load": loading,
        "first result": first,
        "a later step": later,
        "beyond import torch": loader_import + loading + first,
        "of it in the kernel": (after.ru_stime - before.ru_stime) * 1000,
        "pages mapped": after.ru_minflt - before.ru_minflt,
        "pages read from disk": after.ru_majflt - before.ru_majflt,
    }


def in_a_process(what: str, path: str, layers: int, folder: str) -> dict[str, float]:
    """What ``make`` or ``load`` found in a process of its own, whose caches are in ``folder``."""
    own = {"XDG_CACHE_HOME": folder, "FXSTACK_CACHE_DIR": folder, "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "benchmarks.artifacts", "--layers", str(layers)]
    done = subprocess.run(
        [*command, "--in-process", what, path],
        env=inherited | own | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def line(what: str, figures: dict[str, float]) -> str:
    """One line of the table."""
    return f"{what:<18} " + ", ".join(f"{name} {value:.0f}" for name, value in figures.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each process, and the medians of each kind."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.artifacts", description=__doc__)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5, help="fresh processes of each kind")
    parser.add_argument("--in-process", nargs=2, metavar=("WHAT", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.in_process:
        what, path = options.in_process
        print(json.dumps(make(path, options.layers) if what == "make" else load(path, what == "remember")))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "bert.fxa")
        print(line("make", in_a_process("make", path, options.layers, folder)), flush=True)
        for what in ("load", "remember"):
            in_a_process(
                what, path, options.layers, folder
            )  # writes bytecode, and the note of a checked file
            found = []
            for _ in range(options.rounds):
                found.append(in_a_process(what, path, options.layers, folder))
                print(line(what, found[-1]), flush=True)
            medians = {name: statistics.median(one[name] for one in found) for name in found[0]}
            print(line(f"{what}, median", medians), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
