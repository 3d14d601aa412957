"""The sweep over architectures in training: who runs it, and its table."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from forked import forked
from training import Trained, trained

LONGEST = 200
"""Characters of a failure in the table."""


def sweep(names: Sequence[str], limit: float, jobs: int, output: Path, earlier: Sequence[Path]) -> int:
    """Train each architecture, report, and write all results, those in ``earlier`` files too; 1 if one failed."""
    import torch
    import transformers

    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    records = [record for path in earlier for record in json.loads(path.read_text())]
    found = {record["name"]: Trained(**record) for record in records}
    output.mkdir(exist_ok=True)
    for name, record, ended in forked(trained, names, limit, jobs):
        found[name] = Trained(name, failure=ended) if record is None else Trained(**record)
        print(_row(found[name]), flush=True)
        (output / "training.json").write_text(json.dumps([asdict(one) for one in found.values()], indent=1))
    text = table(list(found.values()))
    (output / "training.md").write_text(text + "\n")
    print(text)
    return int(any(is_failure(one) for one in found.values()))


def is_failure(one: Trained) -> bool:
    """Whether eager trains it and compiled is not as good."""
    return bool(one.failure) and not one.failure.startswith("left out")


def table(found: Sequence[Trained]) -> str:
    """How many there are, and a row for each that failed or was left out."""
    left = [one for one in found if one.failure.startswith("left out")]
    failed = [one for one in found if is_failure(one)]
    good = len(found) - len(left) - len(failed)
    lines = [
        f"- tried: {len(found)} architectures; {len(left)} are left out",
        f"- as good as eager against float64 at each size, results, loss, gradients and buffers: {good}",
        f"- at two sizes: {sum(one.sizes == 2 for one in found)}",
        f"- not as good, or raised: {len(failed)}",
        "",
        "| architecture | inputs | what |",
        "|---|---|---|",
    ]
    for one in [*sorted(failed, key=lambda o: o.name), *sorted(left, key=lambda o: o.name)]:
        lines.append(f"| {one.name} | {', '.join(one.inputs)} | {_short(one.failure)} |")
    return "\n".join(lines)


def _row(one: Trained) -> str:
    return (
        f"{one.name:32} {one.sizes} sizes {one.seconds:6.1f} s  {_short(one.failure) or 'as good as eager'}"
    )


def _short(text: str) -> str:
    return " ".join(text.split())[:LONGEST].replace("|", "\\|")
