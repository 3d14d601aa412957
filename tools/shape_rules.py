"""``python tools/shape_rules.py``: what each shape rule costs, and whether what it says is so.

The calls are those that the samples of torch's operator database make. A rule is asked for the spec of each call, with
plain and with symbolic sizes; both are compared with the real result: sizes, strides, dtype, device. ``--layouts``
asks again with each call's tensors laid out in other ways: transposed, with gaps, stretched (stride 0). Time is the
best of several rounds for each call, averaged over an operator's calls, without a compilation's memo.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils import _pytree as pytree

from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import ShapeEnv
from fx_interface.torch_internals.dispatch_mode import DispatchMode
from operator_sweep.cases import cases, samples
from primtorch_decomps import DECOMPOSITIONS, LIBRARY, RULES
from primtorch_decomps.prims import freeze
from primtorch_decomps.testing import check_spec, check_symbolic_spec, specs_of

DTYPES = (torch.float32, torch.int64, torch.complex64)
ROUNDS = 25


def _with_gaps(x: torch.Tensor) -> torch.Tensor:
    wide = x.new_zeros((*x.shape[:-1], 2 * x.shape[-1]))
    made = wide[..., ::2]
    made.copy_(x)
    return made


def _in_order(order: tuple[int, ...]) -> Callable[[torch.Tensor], torch.Tensor]:
    """A copy whose dimensions lie in memory in ``order``, outermost first (counted from the end where negative)."""

    def copied(x: torch.Tensor) -> torch.Tensor:
        rank = x.dim()
        dims = list(dict.fromkeys(d % rank for d in order if -rank <= d < rank))
        dims += [d for d in range(rank) if d not in dims]
        return x.permute(dims).contiguous().permute([dims.index(d) for d in range(rank)])

    return copied


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "transposed": _in_order((-1, -2, -3, -4, -5)),
    "inner swapped": _in_order((0, -1)),
    "channels last": _in_order((0, 2, 3, 4, 1)),
    "gaps": _with_gaps,
    "stretched": lambda x: x[..., :1].expand(x.shape) if x.shape[-1] else x,
    "stretched outside": lambda x: x[:1].expand(x.shape) if x.shape[0] else x,
}
"""Other layouts of a tensor with dimensions: same sizes; the same values but for the stretched ones."""


@dataclass
class Measured:
    """One operator: microseconds of each distinct call, and what was wrong."""

    times: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def cost(self) -> float:
        """Microseconds a call."""
        return sum(self.times) / max(len(self.times), 1)


class _Calls(DispatchMode):
    """Logs the operators that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.logged: list[tuple[Any, Any, Any]] = []

    def dispatch(self, func: Any, args: Any, kwargs: Any) -> Any:
        self.logged.append((func, args, kwargs))
        return func(*args, **kwargs)


def calls(operators: Sequence[str], count: int, device: str = "cpu") -> Iterator[tuple[OpOverload, Any, Any]]:
    """The distinct calls of operators with a rule."""
    seen: set[Any] = set()
    for case in cases(operators, DTYPES, device=device):
        if case.in_place:
            continue
        for sample in _samples(case, count):
            for op, args, kwargs in _logged(sample):
                if not _is_usable(op, args, kwargs):
                    continue
                key = (op, freeze(specs_of(tuple(args))), freeze(specs_of(kwargs)))
                if key not in seen:
                    seen.add(key)
                    yield op, args, kwargs


def _samples(case: Any, count: int) -> list[Any]:
    try:
        return list(samples(case, count))
    except Exception:  # some cannot be made without a library that is not there
        return []


def _logged(sample: Any) -> list[tuple[Any, Any, Any]]:
    """What a sample calls, forward and backward."""
    with _Calls() as log:
        try:
            result = sample.finish(sample.function(*sample.args, **sample.kwargs))
            wanted = [
                t for t in pytree.tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad
            ]
            torch.autograd.backward(wanted, [torch.ones_like(t) for t in wanted])
        except Exception:  # eager refuses the call, or has no gradient for it: what came before counts
            pass
    logged: list[tuple[Any, Any, Any]] = log.logged
    return logged


def _is_usable(op: Any, args: Any, kwargs: Any) -> bool:
    if not isinstance(op, OpOverload) or op._schema.is_mutable or not op._schema.returns:
        return False
    if op not in RULES and op not in DECOMPOSITIONS:
        return False
    return not any(
        isinstance(leaf, torch.Tensor)
        and (leaf.layout is not torch.strided or leaf.is_conj() or leaf.is_neg())
        for leaf in pytree.tree_leaves((args, kwargs))
    )


def measure(
    operators: Sequence[str], count: int, *, check: bool, layouts: bool, device: str = "cpu"
) -> dict[str, Measured]:
    """Every operator with a rule that the samples reach."""
    found: dict[str, Measured] = defaultdict(Measured)
    for op, args, kwargs in calls(operators, count, device):
        cost = _cost(op, specs_of(tuple(args)), specs_of(kwargs))
        if cost is None:
            continue  # the rule leaves such a call to the kernel
        found[str(op)].times.append(cost)
        if check:
            try:
                check_spec(op, args, kwargs)
                check_symbolic_spec(op, args, kwargs)
            except UnsupportedProgramError:
                pass
            except Exception as error:
                text = " ".join(str(error).split())[:300]
                found[str(op)].wrong.append(f"{type(error).__name__}: {text}")
        if layouts:
            found[str(op)].wrong += check_layouts(op, args, kwargs)
    return found


_READS_BEYOND = frozenset({"aten._embedding_bag.default", "aten._embedding_bag_forward_only.default"})
"""Their kernels in torch read integers as if they lay side by side, and so other memory behind stretched ones."""


def check_layouts(op: OpOverload, args: Any, kwargs: Any) -> Iterator[str]:
    """What is wrong with the spec when the call's tensors are laid out otherwise: all of them, or the first only."""
    for name, layout in LAYOUTS.items():
        if "stretched" in name and str(op) in _READS_BEYOND:
            continue
        for only_first in (False, True):
            taken = [0]

            def changed(
                leaf: Any, layout: Any = layout, only_first: bool = only_first, taken: Any = taken
            ) -> Any:
                if not _has_layout(leaf) or (only_first and taken[0]):
                    return leaf
                taken[0] += 1
                return layout(leaf)

            given, named = pytree.tree_map(changed, (tuple(args), kwargs))
            try:
                op(*given, **named)
            except Exception:  # not every operator takes every layout
                continue
            try:
                check_spec(op, given, named)
            except UnsupportedProgramError:
                pass
            except Exception as error:
                text = " ".join(str(error).split())[:300]
                yield f"{name}{' (first tensor)' if only_first else ''}: {type(error).__name__}: {text}"


def _has_layout(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided and leaf.dim() > 0


def _cost(op: OpOverload, args: Any, kwargs: Any) -> float | None:
    env = ShapeEnv()
    best = float("inf")
    try:
        for _ in range(ROUNDS):
            started = time.thread_time()
            answer = LIBRARY.infer_by_rule(op, args, kwargs, env)
            best = min(best, time.thread_time() - started)
    except Exception:
        return None
    return None if answer is NotImplemented else 1e6 * best


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report; 1 if a rule is wrong or, with ``--limit``, costs more."""
    parser = argparse.ArgumentParser(prog="python tools/shape_rules.py", description=__doc__)
    parser.add_argument("--only", default="", help="entries of the database, with commas between them")
    parser.add_argument("--samples", type=int, default=3, help="samples of each entry")
    parser.add_argument("--limit", type=float, default=10.0, help="microseconds above which a rule is listed")
    parser.add_argument(
        "--layouts", action="store_true", help="ask again with other layouts of each call's tensors"
    )
    parser.add_argument("--device", default="cpu", help="where the tensors are")
    parser.add_argument("--no-check", action="store_true", help="only measure")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = [name for name in options.only.split(",") if name]
        found = measure(
            names,
            options.samples,
            check=not options.no_check,
            layouts=options.layouts,
            device=options.device,
        )
    slow = {name: row for name, row in found.items() if row.cost > options.limit}
    wrong = {name: row.wrong for name, row in found.items() if row.wrong}
    print(f"{len(found)} rules, {sum(len(row.times) for row in found.values())} calls")
    print(f"mean of all rules: {sum(r.cost for r in found.values()) / max(len(found), 1):.1f} us")
    print(f"above {options.limit:g} us: {len(slow)}")
    for name, row in sorted(slow.items(), key=lambda item: -item[1].cost):
        print(f"  {row.cost:6.1f} us  {name}  ({len(row.times)} calls)")
    print(f"wrong: {len(wrong)}")
    for name, texts in sorted(wrong.items()):
        print(f"  {name}: {len(texts)}, first: {texts[0]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
