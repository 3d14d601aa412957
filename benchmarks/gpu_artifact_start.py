"""``python -m benchmarks.gpu_artifact_start``: BERT as an artifact for a GPU; what a fresh process pays for a result.

One process makes the file (bfloat16, 8 sequences of 128 tokens) and times steps of eager, of the process's own compiled
function and of the loaded file. Then fresh processes import torch, begin to use the GPU, load the file and run it; at
the end their medians. Milliseconds by the clock, each until the GPU has done what was asked of it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.artifacts import line, milliseconds

SEQUENCES, TOKENS = 8, 128
STEPS = 30


def on_gpu(call: Callable[[], Any]) -> tuple[float, Any]:
    """Until the GPU has done it, and what the call returned."""
    import torch

    def run() -> Any:
        made = call()
        torch.cuda.synchronize()
        return made

    return milliseconds(run)


def steps(call: Callable[[], Any]) -> float:
    """The median of some calls."""
    return statistics.median(on_gpu(call)[0] for _ in range(STEPS))


def make(path: str) -> dict[str, float]:
    """Write the file, and beside it its input and eager's result."""
    import torch
    from transformers import BertConfig, BertModel

    import fxstack

    torch.manual_seed(0)

    class Hidden(torch.nn.Module):
        """BERT's last hidden states, of token numbers."""

        def __init__(self) -> None:
            super().__init__()
            self.model = BertModel(BertConfig(), add_pooling_layer=False).eval()

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.model(input_ids=ids).last_hidden_state
            return found

    model = Hidden().to("cuda", torch.bfloat16)
    ids = torch.randint(30000, (SEQUENCES, TOKENS), device="cuda")
    with torch.no_grad():
        making = on_gpu(lambda: fxstack.aot_compile(model, (ids,), path=path))[0]
        compiled, loaded = fxstack.compile(model), fxstack.load(path)
        steps(lambda: compiled(ids))
        steps(lambda: loaded(ids))
        torch.save({"ids": ids, "want": compiled(ids)}, f"{path}.pt")
        return {
            "making the file": making,
            "a step of eager": steps(lambda: model(ids)),
            "compiled in the process": steps(lambda: compiled(ids)),
            "of the file": steps(lambda: loaded(ids)),
        }


def load(path: str) -> dict[str, float]:
    """Load it in this fresh process and run it."""
    importing, torch = milliseconds(lambda: __import__("torch"))
    begin = on_gpu(lambda: torch.zeros(1, device="cuda"))[0]
    kept = torch.load(f"{path}.pt")
    loader_import, loader = milliseconds(lambda: __import__("fxstack_artifact"))
    loading, artifact = on_gpu(lambda: loader.load(path))
    with torch.no_grad():
        first, got = on_gpu(lambda: artifact(kept["ids"]))
        later = steps(lambda: artifact(kept["ids"]))
    assert torch.equal(got, kept["want"]), "the file's result is not that of the process that made it"
    return {
        "import torch": importing,
        "begin to use the GPU": begin,
        "import the loader": loader_import,
        "load": loading,
        "first result": first,
        "a later step": later,
    }


def in_a_process(what: str, path: str) -> dict[str, float]:
    """What ``make`` or ``load`` found in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.gpu_artifact_start", "--in-process", what, path]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print a line for each process, and the medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="fresh processes")
    parser.add_argument("--in-process", nargs=2, metavar=("WHAT", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_process:
        what, path = options.in_process
        print(json.dumps(make(path) if what == "make" else load(path)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "bert.fxa")
        print(line("make", in_a_process("make", path)), flush=True)
        in_a_process("load", path)  # writes bytecode
        found = [in_a_process("load", path) for _ in range(options.rounds)]
        for one in found:
            print(line("load", one), flush=True)
        print(line("median", {key: statistics.median(one[key] for one in found) for key in found[0]}))


if __name__ == "__main__":
    main()
