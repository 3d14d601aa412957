"""Runs every module of torch's own module database compiled, beside eager: results, gradients, state, random numbers.

``python integration_tests/sweeps/modules.py`` takes all modules, float32 and float64, in training and evaluation;
``--only nn.Linear,nn.LSTM``, ``--dtypes`` and ``--samples`` take fewer, ``--jobs`` uses several processes. Each sample
calls a fresh module twice. Exit code 1 for another result than eager's, or an exception that eager does not raise.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

os.environ.setdefault("FXSTACK_ON_INTERNAL_ERROR", "raise")

import torch
from mistakes import mistakes
from module_cases import Sample, names, samples
from torch import Tensor
from torch.utils import _pytree as pytree

import fxstack

SECONDS = 300
"""A sample that takes longer is an error."""

GOOD = ("same", "same, in several graphs", "eager refuses")
MODES = {"train": True, "eval": False}


@dataclass(frozen=True)
class Verdict:
    """How one sample fared."""

    case: str
    status: str
    detail: str = ""


@dataclass(frozen=True)
class Outcome:
    """What two calls leave behind, by name."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


def outcome(module: torch.nn.Module, sample: Sample, *, compiled: bool) -> tuple[Outcome, str]:
    """Results, gradients, the module's state and the random generator's; and a graph break, if there was one."""
    called = fxstack.compile(module) if compiled else module
    torch.manual_seed(5)
    tensors: dict[str, Tensor] = {}
    facts: dict[str, Any] = {}
    for number in range(2):
        args, kwargs = pytree.tree_map(_copied, (sample.args, sample.kwargs))
        result = called(*args, **kwargs)
        leaves = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, Tensor)]
        facts[f"structure of result {number}"] = str(pytree.tree_structure(result))
        losses = []
        for place, leaf in enumerate(leaves):
            tensors[f"result {number}.{place}"] = leaf.detach().clone()
            facts[f"form of result {number}.{place}"] = (leaf.stride(), leaf.requires_grad)
            if leaf.requires_grad:
                losses.append((leaf * torch.linspace(0.5, 1.5, leaf.numel()).view(leaf.shape).to(leaf)).sum())
        if losses:
            torch.stack([loss.real for loss in losses]).sum().backward()
        inputs = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        tensors |= {f"input {number}.{place}": leaf.detach() for place, leaf in enumerate(inputs)}
        for place, leaf in enumerate(inputs):
            if leaf.grad is not None:
                tensors[f"gradient of input {number}.{place}"] = leaf.grad
    state: dict[str, Tensor] = module.state_dict()
    tensors |= {f"state {name}": value.clone() for name, value in state.items()}
    for name, parameter in module.named_parameters():
        if parameter.grad is not None:
            tensors[f"gradient of {name}"] = parameter.grad
    tensors["random state"] = torch.get_rng_state()
    return Outcome(tensors, facts), _break_of(called) if compiled else ""


def _copied(leaf: Any) -> Any:
    """An input of its own: a leaf of autograd, laid out as the sample's."""
    if not isinstance(leaf, Tensor):
        return copy.deepcopy(leaf)
    return leaf.detach().clone(memory_format=torch.preserve_format).requires_grad_(leaf.requires_grad)


def _break_of(called: Any) -> str:
    report = called.__fxstack_capture__.report
    stopped = [str(one.stopped).splitlines()[0] for _, one in report.replacements if one.stopped]
    refused = [str(reason).splitlines()[0] for _, reason in report.eager]
    return next(iter(stopped + refused), "")


def difference(found: Outcome, expected: Outcome, others: Sequence[Outcome]) -> str:
    """The first difference; empty if there is none. ``others``, what eager also gives, decide about rounding."""
    if found.facts != expected.facts:
        name = next(name for name in expected.facts if found.facts.get(name) != expected.facts[name])
        return f"{name}: {found.facts.get(name)} for {expected.facts[name]}"
    if found.tensors.keys() != expected.tensors.keys():
        return f"other parts: {sorted(found.tensors.keys() ^ expected.tensors.keys())[:3]}"
    for name, value in expected.tensors.items():
        gauges = [other.tensors[name] for other in others if name in other.tensors]
        what = _tensor_difference(found.tensors[name], value, gauges)
        if what:
            return f"{name}: {what}"
    return ""


def _tensor_difference(found: Tensor, expected: Tensor, others: Sequence[Tensor]) -> str:
    """Values near by what is the largest of them; or, where numbers have cancelled, about as far off as eager's are.

    How far those are off, ``others`` tell: float64 is the truth about float32; of float64 there is none, but eager's
    rounding errors in it are those in float32 times the ratio of the dtypes' precisions; and inputs that differ in
    their last places give results that differ as much as rounding makes them differ.
    """
    facts = [(tensor.shape, tensor.dtype) for tensor in (found, expected)]
    if facts[0] != facts[1]:
        return f"{facts[0]} for {facts[1]}"
    if not expected.is_floating_point():
        return "" if torch.equal(found, expected) else "other values"
    scale = float(expected.abs().nan_to_num(0.0, 0.0, 0.0).max()) if expected.numel() else 0.0
    near = 64 * torch.finfo(expected.dtype).eps
    if torch.allclose(found, expected, rtol=near, atol=near * scale, equal_nan=True):
        return ""
    eps = torch.finfo(expected.dtype).eps
    ours = float((found - expected).abs().max())
    eagers = max(
        (_distance(expected, other) * min(1.0, eps / torch.finfo(other.dtype).eps) for other in others),
        default=0.0,
    )
    return "" if ours <= 8 * eagers else f"off by {ours:.2e} where eager is off by {eagers:.2e}"


def _distance(one: Tensor, other: Tensor) -> float:
    return float((one.double() - other.double()).abs().max())


def verdict(sample: Sample) -> Verdict:
    """Run a sample in eager, compiled, and in eager in another dtype and with other last places."""
    fxstack.reset()
    try:
        expected, _ = outcome(sample.module(), sample, compiled=False)
    except Exception as error:
        return Verdict(sample.case, "eager refuses", f"{type(error).__name__}: {error}".splitlines()[0])
    try:
        with mistakes() as logged:
            found, stopped = outcome(sample.module(), sample, compiled=True)
    except Exception as error:
        return Verdict(sample.case, "error", f"{type(error).__name__}: {error}"[:400])
    if logged:
        return Verdict(sample.case, "error", logged[0])
    is_wide = any(t.dtype is torch.float64 for t in expected.tensors.values())
    others = []
    for gauge in (sample.retyped(torch.float32 if is_wide else torch.float64), sample.nudged()):
        try:
            others.append(outcome(gauge.module(), gauge, compiled=False)[0])
        except Exception:  # some modules fix a dtype
            continue
    what = difference(found, expected, others)
    if what:
        return Verdict(sample.case, "wrong", what)
    return Verdict(sample.case, "same, in several graphs" if stopped else "same", stopped)


def work(chosen: Sequence[str], dtypes: Sequence[str], count: int) -> None:
    """A worker's share, one line of JSON a verdict."""
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    for name in chosen:
        for dtype in dtypes:
            for mode, training in MODES.items():
                for sample in samples(name, getattr(torch, dtype), mode, training, count):
                    signal.alarm(SECONDS)
                    print(json.dumps({"begin": sample.case}), flush=True)
                    print(json.dumps(asdict(verdict(sample))), flush=True)


def verdicts(options: argparse.Namespace) -> Iterator[Verdict]:
    """All verdicts, from ``--jobs`` processes, as they come."""
    chosen = [name for name in names() if not options.only or name in options.only.split(",")]
    shares = [share for job in range(options.jobs) if (share := chosen[job :: options.jobs])]
    arriving: queue.SimpleQueue[Verdict | None] = queue.SimpleQueue()
    for share in shares:
        threading.Thread(target=_worker, args=(share, options, arriving)).start()
    for _ in shares:
        yield from iter(arriving.get, None)


def _worker(
    share: list[str], options: argparse.Namespace, arriving: queue.SimpleQueue[Verdict | None]
) -> None:
    """Hand over the verdicts of a process, then None; what it was at when it died is an error."""
    command = [sys.executable, __file__, "--dtypes", options.dtypes, "--samples", str(options.samples)]
    with subprocess.Popen(
        [*command, "--worker", ",".join(share)], stdout=subprocess.PIPE, text=True
    ) as process:
        begun = ""
        for line in process.stdout or ():
            record = json.loads(line)
            begun = record.get("begin", "")
            if not begun:
                arriving.put(Verdict(**record))
    if process.returncode:
        arriving.put(Verdict(begun or share[0], "error", f"the process ended with {process.returncode}"))
    arriving.put(None)


def main() -> int:
    """Print what was not the same and how many were; 1 if a result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="names of modules, with commas between them")
    parser.add_argument("--dtypes", default="float32,float64", help="dtypes, with commas between them")
    parser.add_argument(
        "--samples", type=int, default=100, help="at most so many samples of each module, spread evenly"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--worker", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker.split(","), options.dtypes.split(","), options.samples)
        return 0
    counts: Counter[str] = Counter()
    for found in verdicts(options):
        counts[found.status] += 1
        if found.status != "same":
            print(f"{found.status}: {found.case}: {found.detail}", flush=True)
    print(", ".join(f"{status}: {count}" for status, count in counts.most_common()))
    return 0 if all(status in GOOD for status in counts) else 1


if __name__ == "__main__":
    sys.exit(main())
