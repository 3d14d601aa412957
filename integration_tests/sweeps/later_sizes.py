"""All of torch's operator database at sizes that a later call changes: what eager refuses there is refused compiled.

    python integration_tests/sweeps/later_sizes.py [--backend inductor] [--samples 2] [--changes 8] [PART OF A NAME ...]

Each sample is compiled with sizes that are symbols, called as it is, and called again with one dimension of one tensor
longer by one, shorter by one, or empty, wherever eager then raises: with the result used, and with a result that
nothing reads. The exception's type and message are eager's. Each operator runs in a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

import fxstack

LARGEST, SECONDS = 3000, 100
_ARBITRARY = (
    "empty rand normal bernoulli multinomial dropout poisson exponential geometric cauchy uniform svd eig pca"
)


def longer(tensor: torch.Tensor, dim: int, by: int) -> torch.Tensor:
    """``tensor`` with ``by`` slices more along ``dim``, which are its first ones again."""
    return tensor.index_select(dim, torch.arange(tensor.shape[dim] + by) % tensor.shape[dim])


def changes(tensors: Sequence[torch.Tensor], most: int) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """The tensors with one dimension of one of them changed, and how."""
    count = 0
    for place, tensor in enumerate(tensors):
        for dim, size in enumerate(tensor.shape):
            for by in (1, -1, -size):
                if count < most:
                    count += 1
                    changed = [*tensors[:place], longer(tensor, dim, by), *tensors[place + 1 :]]
                    yield f"dimension {dim} of tensor {place} by {by}", changed


def outcome(function: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> Any:
    """The result or the exception; the tensors are copied."""
    try:
        return function(*(tensor.clone() for tensor in tensors))
    except Exception as error:
        return error


def programs(info: Any, count: int) -> Iterator[tuple[list[torch.Tensor], Callable[..., Any]]]:
    """Calls of an operator that differ in more than sizes: its tensors, and a function of them."""
    seen = set()
    for sample in info.sample_inputs("cpu", torch.float32):
        leaves, form = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        tensors = [leaves[place].detach() for place in places]
        kind = tuple(leaf.dim() if isinstance(leaf, torch.Tensor) else type(leaf) for leaf in leaves)
        plain = all(t.layout is torch.strided and 0 < t.numel() < LARGEST for t in tensors)
        if not tensors or not plain or kind in seen or len(seen) == count:
            continue
        seen.add(kind)

        def call(*given: torch.Tensor, leaves: Any = leaves, form: Any = form, places: Any = places) -> Any:
            filled = list(leaves)
            for place, tensor in zip(places, given, strict=True):
                filled[place] = tensor
            first, args, kwargs = pytree.tree_unflatten(filled, form)
            return info.op(first, *args, **kwargs)

        yield tensors, call


def differing(info: Any, backend: str, samples: int, most: int) -> Iterator[str]:
    """What compiled does not refuse as eager does, in words; an empty text for each that it does."""
    for tensors, call in programs(info, samples):

        def unused(*given: torch.Tensor, call: Any = call) -> torch.Tensor:
            call(*given)
            return given[0] + 1

        if isinstance(outcome(call, tensors), Exception):
            continue
        for how, changed in changes(tensors, most):
            for program in (call, unused):
                eager = outcome(program, changed)
                if not isinstance(eager, Exception):
                    continue
                fxstack.reset()
                compiled = fxstack.compile(program, backend=backend, dynamic=True)
                outcome(compiled, tensors)
                ours = outcome(compiled, changed)
                same = type(ours) is type(eager) and str(ours) == str(eager)
                use = "" if program is call else " (unused)"
                got = repr(ours)[:200] if isinstance(ours, Exception) else "no exception"
                yield "" if same else f"{info.formatted_name}{use}, {how}: {eager!r:.200}, but {got}"


def _of_one(name: str, backend: str, samples: int, most: int, results: Any) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    (info,) = [info for info in op_db if info.formatted_name == name]
    for text in differing(info, backend, samples, most):
        results.put(text)


def main() -> int:
    """Prints what differs; the exit status tells whether something did."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--changes", type=int, default=8)
    options = parser.parse_args()
    start, calls, failures = multiprocessing.get_context("fork"), 0, 0
    for info in op_db:
        name = info.formatted_name
        if options.names and not any(part in name for part in options.names):
            continue
        if any(part in name for part in _ARBITRARY.split()) or not info.supports_dtype(torch.float32, "cpu"):
            continue
        results: Any = start.SimpleQueue()
        given = (name, options.backend, options.samples, options.changes, results)
        process = start.Process(target=_of_one, args=given)
        process.start()
        process.join(SECONDS)
        if process.exitcode != 0:
            process.kill()
            failures += 1
            print(f"{name}: the process ended with {process.exitcode}", flush=True)
        while not results.empty():
            text = results.get()
            calls += 1
            failures += bool(text)
            if text:
                print(text, flush=True)
    print(f"{calls} calls that eager refuses, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
