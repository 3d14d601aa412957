"""``python -m benchmarks.artifacts``: BERT of the usual size as an artifact; what a fresh process pays for a result.

One process makes the file and times steps of it. Then fresh processes import torch and load it, with all hashes and
once more with ``remember=True``, bound to each number of processors in ``--processors``, which is also torch's number
of threads. Milliseconds: by the clock, and ``cpu`` of all threads, in which other processes count only in so far as
they share caches and memory. At the end the medians, with the kernel's share and the pages that were mapped.

``parts`` is a process on one processor that does alone what a load consists of: mapping pages, summing them as they are
mapped and once they are, what signed files have in its place (BLAKE3), what is in the cache for each level of
processors, copying (the memory's own speed), and a step.

Modules come from bytecode, as they do where a package was installed: the first process of each kind writes it, into a
folder of its own, and does not count.
"""

from __future__ import annotations

import argparse
import functools
import json
import mmap
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
    """By the clock, and what the call returned."""
    start = time.perf_counter()
    made = call()
    return (time.perf_counter() - start) * 1000, made


def steps(call: Callable[[], Any]) -> float:
    """The median of some calls."""
    return statistics.median(milliseconds(call)[0] for _ in range(STEPS))


def fastest(call: Callable[[], Any]) -> float:
    """The shortest of some calls: for parts, which no other process should disturb."""
    return min(milliseconds(call)[0] for _ in range(STEPS))


def make(path: str, layers: int, processors: Sequence[int]) -> dict[str, float]:
    """Write the artifact at ``path``, and beside it its input and the results of eager and of this process."""
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
        found = {"eager": steps(lambda: hidden(ids)), "compiled in process": steps(lambda: compiled(ids))}
        want, got = hidden(ids), {}
        for count in processors:
            torch.set_num_threads(count)
            got[count] = compiled(ids)
        torch.save({"ids": ids, "want": want, "got": got}, f"{path}.pt")
        return found


def load(path: str, processors: int, remember: bool) -> dict[str, float]:
    """Load it in this fresh process and run it."""
    torch_import, torch = milliseconds(lambda: __import__("torch"))
    torch.set_num_threads(processors)
    kept = torch.load(f"{path}.pt")
    before, cpu = resource.getrusage(resource.RUSAGE_SELF), time.process_time()
    loader_import, loader = milliseconds(lambda: __import__("fxstack_artifact"))
    loading, artifact = milliseconds(lambda: loader.load(path, remember=remember))
    with torch.no_grad():
        first, got = milliseconds(lambda: artifact(kept["ids"]))
        after, cpu = resource.getrusage(resource.RUSAGE_SELF), time.process_time() - cpu
        later = steps(lambda: artifact(kept["ids"]))
    assert torch.equal(got, kept["got"][processors]), (
        "the artifact's result is not that of the process that made it"
    )
    torch.testing.assert_close(got, kept["want"], rtol=1e-4, atol=1e-5)
    return {
        "import torch": torch_import,
        "import the loader": loader_import,
        "load": loading,
        "first result": first,
        "a later step": later,
        "beyond import torch": loader_import + loading + first,
        "cpu": cpu * 1000,
        "of it in the kernel": (after.ru_stime - before.ru_stime) * 1000,
        "pages mapped": after.ru_minflt - before.ru_minflt,
        "pages read from disk": after.ru_majflt - before.ru_majflt,
    }


def parts(path: str) -> dict[str, float]:
    """What a load and a step consist of, each alone."""
    import torch

    from fxstack_artifact import _native, load
    from fxstack_artifact.container.hashing import BLAKE3, CHECKSUM, digests

    torch.set_num_threads(1)
    size = os.path.getsize(path)

    def mapped(use: Callable[[mmap.mmap], Any]) -> None:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as pages:
            use(pages)

    def touch(pages: mmap.mmap) -> None:
        for start in range(0, size, mmap.PAGESIZE):
            pages[start]

    def hashed(data: mmap.mmap | bytes, kind: str = CHECKSUM) -> None:
        with memoryview(data) as view:
            digests(view, kind)

    content = Path(path).read_bytes()
    source, target = (
        torch.frombuffer(bytearray(content), dtype=torch.uint8),
        torch.empty(size, dtype=torch.uint8),
    )
    small = content[: 256 << 10]
    artifact, ids = load(path), torch.load(f"{path}.pt")["ids"]
    with torch.no_grad():
        found = {
            "map pages": fastest(lambda: mapped(touch)),
            "checksum as they are mapped": fastest(lambda: mapped(hashed)),
            "checksum in memory": fastest(lambda: hashed(content)),
            "BLAKE3 in memory": fastest(lambda: hashed(content, BLAKE3)),
            "copy": fastest(lambda: target.copy_(source)),
            "step": fastest(lambda: artifact(ids)),
        }
    for name, hash_of in (("checksum", _native.checksum), ("BLAKE3", _native.digest)):
        for level in _native.cpu_levels():
            by_level = functools.partial(hash_of, small, level)
            found[f"{name} in cache, {level}, GB/s"] = len(small) / fastest(by_level) / 1e6
    return found


def in_a_process(what: str, path: str, options: argparse.Namespace, count: int) -> dict[str, float]:
    """What ``make``, ``load``, ``remember`` or ``parts`` found in a process of its own on ``count`` processors, whose
    caches are beside the file."""
    folder = Path(path).parent
    own = {
        "XDG_CACHE_HOME": str(folder),
        "FXSTACK_CACHE_DIR": str(folder),
        "PYTHONPYCACHEPREFIX": f"{folder}/bytecode",
    }
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "benchmarks.artifacts", "--layers", str(options.layers)]
    command += ["--processors", *map(str, options.processors if what == "make" else [count])]
    allowed = sorted(os.sched_getaffinity(0))[:count]
    done = subprocess.run(
        [*command, "--in-process", what, path],
        env=inherited | own | {"OMP_NUM_THREADS": str(count)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run_in_process(what: str, path: str, options: argparse.Namespace) -> dict[str, float]:
    """What a process of ``in_a_process`` does."""
    match what:
        case "make":
            return make(path, options.layers, options.processors)
        case "parts":
            return parts(path)
        case _:
            return load(path, options.processors[0], what == "remember")


def line(what: str, figures: dict[str, float]) -> str:
    """One line of the table."""
    return f"{what:<18} " + ", ".join(f"{name} {value:.2f}" for name, value in figures.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each process, and the medians of each kind."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.artifacts", description=__doc__)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5, help="fresh processes of each kind")
    parser.add_argument("--processors", type=int, nargs="+", default=[1, 2], help="numbers of them (1 and 2)")
    parser.add_argument("--in-process", nargs=2, metavar=("WHAT", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.in_process:
        what, path = options.in_process
        print(json.dumps(run_in_process(what, path, options)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "bert.fxa")
        print(line("make", in_a_process("make", path, options, 1)), flush=True)
        print(line("parts", in_a_process("parts", path, options, 1)), flush=True)
        for count in options.processors:
            for what in ("load", "remember"):
                measure(what, path, options, count)
    return 0


def measure(what: str, path: str, options: argparse.Namespace, count: int) -> None:
    """Print what some processes found, and the medians."""
    in_a_process(what, path, options, count)  # writes bytecode, and the note of a checked file
    found, name = [], f"{what}, {count} processors" if count > 1 else f"{what}, 1 processor"
    for _ in range(options.rounds):
        found.append(in_a_process(what, path, options, count))
        print(line(name, found[-1]), flush=True)
    print(
        line(f"{name}, median", {key: statistics.median(one[key] for one in found) for key in found[0]}),
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
