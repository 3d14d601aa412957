"""The report: counts, the exceptions by reason, and the share of operators that run through the decompositions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from operator_sweep.verdict import Status
from primtorch_decomps.library_calls import library_reason

Record = dict[str, Any]
FAILURES = (Status.WRONG, Status.ERROR, Status.LAYOUT)


def lines(records: Sequence[Record]) -> list[str]:
    """The whole report as lines of text."""
    tried = [r for r in records if r["status"] != Status.EAGER_REFUSES.name]
    return [*_counts(tried, len(records) - len(tried)), *_exceptions(tried), *_operators(records)]


def failures(records: Iterable[Record]) -> list[Record]:
    """Pairs that are not right."""
    names = {status.name for status in FAILURES}
    return [r for r in records if r["status"] in names]


def share_passed(records: Sequence[Record]) -> float:
    """Pairs that agree with eager, of those that eager has."""
    tried = [r for r in records if r["status"] != Status.EAGER_REFUSES.name]
    passed = [r for r in tried if r["status"] in (Status.PASS.name, Status.BREAKS.name)]
    return len(passed) / max(len(tried), 1)


def _counts(tried: Sequence[Record], left_out: int) -> list[str]:
    by_status = Counter(r["status"] for r in tried)
    made = [
        f"pairs of operator and dtype: {len(tried)} ({left_out} more have no sample, or eager refuses it)"
    ]
    made += [f"  {status.value}: {by_status[status.name]}" for status in Status if by_status[status.name]]
    whole = 100 * by_status[Status.PASS.name] / max(len(tried), 1)
    made.append(
        f"passed: {100 * share_passed(tried):.2f}% ({whole:.2f}% compiled as a whole, the rest in pieces)"
    )
    made.append(f"wrong results: {by_status[Status.WRONG.name]}")
    return made


def _exceptions(tried: Sequence[Record]) -> list[str]:
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for record in tried:
        if record["status"] != Status.PASS.name:
            groups[record["status"], record["detail"]].append(record["key"])
    order = [status.name for status in Status]
    made = ["", "exceptions, each with its reason:"] if groups else []
    for (status, detail), keys in sorted(groups.items(), key=lambda g: (-order.index(g[0][0]), g[0][1])):
        made.append(f"  {Status[status].name.lower()}: {detail}")
        made.append(f"    {len(keys)}: {', '.join(keys)}")
    return made


def coverage(records: Sequence[Record]) -> tuple[list[str], list[str], dict[str, list[str]]]:
    """ATen operators met that are decomposed in every call without complex numbers, those that are not though they
    are no library calls, and library calls by reason.
    """
    totals: dict[str, Counter[str]] = {kind: Counter() for kind in ("decomposed", "left", "left_complex")}
    for record in records:
        for kind, counts in record["operators"].items():
            totals[kind].update(counts)
    ours, fallback = [], []
    library: dict[str, list[str]] = defaultdict(list)
    for name in sorted(set(totals["decomposed"]) | set(totals["left"]) | set(totals["left_complex"])):
        reason = library_reason(name)
        if not totals["left"][name] and totals["decomposed"][name]:
            ours.append(name)
        elif reason is not None or not name.startswith("aten."):
            library[reason or "custom operators"].append(name)
        else:
            fallback.append(name)
    return ours, fallback, library


def _operators(records: Sequence[Record]) -> list[str]:
    ours, fallback, library = coverage(records)
    share = 100 * len(ours) / max(len(ours) + len(fallback), 1)
    deliberate = sum(map(len, library.values()))
    made = ["", f"ATen operators met: {len(ours) + len(fallback) + deliberate}"]
    made.append(f"  deliberately library calls: {deliberate}")
    made += [f"    {reason}: {len(names)}" for reason, names in sorted(library.items())]
    made.append(
        f"  of the other {len(ours) + len(fallback)}: decomposed in every real call {len(ours)} ({share:.1f}%)"
    )
    if fallback:
        made.append(f"  not, or not always: {', '.join(fallback)}")
    return made
