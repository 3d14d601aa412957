"""Runs programs in several processes of one gloo group, and tells what each found.

A program is a function of the rank that compares compiled code with eager, and returns facts. Each runs in all
processes at the same time; one that raises is told.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

PATIENCE = 240
"""Seconds for all programs of a module."""


def run(module: str, folder: Path, count: int = 2) -> dict[str, list[dict[str, Any]]]:
    """What each program of ``module`` gave, by name, one record for each rank."""
    command = [sys.executable, "-m", __name__, module, str(folder), str(count)]
    root = Path(__file__).resolve().parent.parent.parent
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(root), *sys.path]),
        "FXSTACK_CACHE_DIR": str(folder / "cache"),
    }
    started = [
        subprocess.Popen([*command, str(rank)], env=environment, stderr=subprocess.PIPE, text=True)
        for rank in range(count)
    ]
    told = []
    try:
        for process in started:
            _, errors = process.communicate(timeout=PATIENCE)
            told.append(errors)
    finally:
        for process in started:
            process.kill()
    records: dict[str, list[dict[str, Any]]] = {}
    for rank, errors in enumerate(told):
        written = folder / f"rank{rank}.json"
        assert written.exists(), errors
        for name, record in json.loads(written.read_text()).items():
            records.setdefault(name, []).append(record)
    return records


def _work(
    programs: Mapping[str, Callable[[int], Mapping[str, Any]]], folder: Path, count: int, rank: int
) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder / 'rendezvous'}",
        rank=rank,
        world_size=count,
        timeout=datetime.timedelta(seconds=120),
    )
    records: dict[str, Any] = {}
    for name, program in programs.items():
        torch.manual_seed(rank)
        try:
            records[name] = dict(program(rank))
        except Exception as error:
            records[name] = {"raised": "".join(traceback.format_exception(error))[-2000:]}
        (folder / f"rank{rank}.json").write_text(json.dumps(records))
        dist.barrier()
    dist.destroy_process_group()


def _main(arguments: Sequence[str]) -> None:
    module, folder, count, rank = arguments
    programs = __import__(module, fromlist=["PROGRAMS"]).PROGRAMS
    _work(programs, Path(folder), int(count), int(rank))


if __name__ == "__main__":
    _main(sys.argv[1:])
