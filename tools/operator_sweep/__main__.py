"""``python -m operator_sweep``: all of torch's operator database through the stack, and a report.

python -m operator_sweep --jobs 2 --state build/operator-sweep     # everything; goes on where it was stopped
python -m operator_sweep --only add,nn.functional.gelu --dtypes float32
python -m operator_sweep --how transposed --samples 10             # arguments laid out otherwise; see ``HOW``
python -m operator_sweep --kernels --samples 1                     # generated C++ instead of interpreted primitives
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from inductor_codegen.cache import ArtifactStore
from operator_sweep import page, report
from operator_sweep.cases import DTYPES, Case, cases
from operator_sweep.variations import HOW
from operator_sweep.verdict import Status, Verdict, verdict_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sweep; 1 if a result is wrong, an exception is new, or the share that passes is below ``--at-least``."""
    options = _parser().parse_args(arguments)
    if options.worker:
        number, workers = map(int, options.worker.split("/"))
        _work(_chosen(options)[number::workers], options, options.state / f"{number}.jsonl")
        return 0
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        records = _run_workers(options, options.state or Path(folder))
    print("\n".join(report.lines(records)))
    if options.page:
        options.page.write_text(page.markdown(records, options.samples))
    print(f"\n{len(records)} pairs in {time.perf_counter() - started:.0f} s with {options.jobs} processes")
    failed = report.failures(records)
    return 1 if failed or 100 * report.share_passed(records) < options.at_least else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m operator_sweep", description=__doc__)
    parser.add_argument("--only", default="", help="names of operators, with commas between them")
    parser.add_argument("--dtypes", default="", help="dtypes, with commas between them (default: all seven)")
    parser.add_argument("--samples", type=int, default=3, help="samples of each pair")
    parser.add_argument("--device", default="cpu", help="where the tensors are")
    parser.add_argument("--how", choices=HOW, default="plain", help="how the calls are made")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--state", type=Path, help="folder that keeps the verdicts, to go on after an interruption"
    )
    parser.add_argument("--at-least", type=float, default=0.0, help="percentage of pairs that must pass")
    parser.add_argument("--kernels", action="store_true", help="run generated kernels, as users do")
    parser.add_argument(
        "--page", type=Path, help="write what does not compile as a whole to this Markdown file"
    )
    parser.add_argument("--worker", default="", help=argparse.SUPPRESS)
    return parser


def _chosen(options: argparse.Namespace) -> list[Case]:
    dtypes = [getattr(torch, name) for name in options.dtypes.split(",") if name] or DTYPES
    names = [name for name in options.only.split(",") if name]
    return list(cases(names, dtypes, options.how, options.device))


def _work(chosen: Sequence[Case], options: argparse.Namespace, file: Path) -> None:
    """Append the verdicts that the file does not hold yet; a pair that killed an earlier process is an error."""
    torch.set_num_threads(1)
    logging.getLogger("dynamo_capture").setLevel(logging.ERROR)  # that a program breaks is in the verdict
    known = {record["key"] for record in _records(file)}  # among them those that an earlier process died of
    with tempfile.TemporaryDirectory() as folder, file.open("a") as stream:
        store = ArtifactStore(Path(folder)) if options.kernels else None
        for case in chosen:
            if case.key in known:
                continue
            stream.write(json.dumps({"started": case.key}) + "\n")
            stream.flush()
            stream.write(json.dumps(verdict_of(case, options.samples, store).as_data()) + "\n")
            stream.flush()


def _records(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    read = [json.loads(line) for line in file.read_text().splitlines()]
    done = {entry["key"]: entry for entry in read if "key" in entry}
    for entry in read:
        key = entry.get("started")
        if key is not None and key not in done:
            died = Verdict(key, Status.ERROR, "the process died")
            done[key] = died.as_data()
    return list(done.values())


def _run_workers(options: argparse.Namespace, state: Path) -> list[dict[str, Any]]:
    state.mkdir(parents=True, exist_ok=True)
    running = {number: _worker(options, state, number) for number in range(options.jobs)}
    while running:
        for number, process in list(running.items()):
            status = process.wait()
            if status == 0 or status > 0:
                running.pop(number)
                if status:
                    raise SystemExit(f"worker {number} failed")
            else:  # killed by a signal: go on behind the pair that did it
                running[number] = _worker(options, state, number)
    return [record for number in range(options.jobs) for record in _records(state / f"{number}.jsonl")]


def _worker(options: argparse.Namespace, state: Path, number: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "operator_sweep", "--worker", f"{number}/{options.jobs}"]
    command += ["--only", options.only, "--dtypes", options.dtypes, "--samples", str(options.samples)]
    command += ["--how", options.how, "--device", options.device]
    command += ["--kernels"] if options.kernels else []
    folder = str(Path(__file__).resolve().parent.parent)
    path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen([*command, "--state", str(state)], env=os.environ | {"PYTHONPATH": path})


if __name__ == "__main__":
    sys.exit(main())
