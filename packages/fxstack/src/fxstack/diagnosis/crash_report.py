"""A report of a defect of the compiler: where it failed, for which graph, with which versions.

It holds no values of tensors, and by default nothing else of the program: names of variables are replaced, lines of the
program, texts of errors and paths are left out. ``FXSTACK_CRASH_REPORT=full`` keeps them; ``off`` writes no report.
"""

from __future__ import annotations

import os
import platform
import re
import traceback
from importlib.metadata import version
from pathlib import Path

import torch
from torch.fx import GraphModule

from fx_interface import print_graph
from inductor_codegen.temporary import lasting_folder

_WRITTEN: set[tuple[str, str, int | None]] = set()
"""Defects of this process that there is a report of: one that comes with each graph fills no disk."""
_OURS = (
    "fx_interface",
    "fx_guards",
    "dynamo_capture",
    "aot_autograd",
    "primtorch_decomps",
    "inductor_codegen",
    "fxstack",
)


def write_crash_report(error: BaseException, graph: GraphModule | None) -> Path | None:
    """Write a report to a new folder of temporary files; None where there is one already, or none can be written."""
    choice = os.environ.get("FXSTACK_CRASH_REPORT", "")
    place = traceback.extract_tb(error.__traceback__)[-1]
    defect = (type(error).__name__, place.filename, place.lineno)
    if choice == "off" or defect in _WRITTEN:
        return None
    _WRITTEN.add(defect)
    try:
        text = crash_report(error, graph, full=choice == "full")
        with lasting_folder("fxstack-crash-") as folder:
            folder.write("report.txt", text.encode("utf-8", "backslashreplace"))
            return folder.path / "report.txt"
    except Exception:  # the program goes on without
        return None


def crash_report(error: BaseException, graph: GraphModule | None, *, full: bool = False) -> str:
    """The text of the report. ``full``: with the error's words, names of variables, and lines of the program."""
    lines = [
        "A defect of the fxstack compiler. Please look through this report, and file it as an issue.",
        "",
    ]
    lines += [f"error: {type(error).__name__}" + (f": {error}" if full else "")]
    lines += [f"fxstack {version('fxstack')}, torch {torch.__version__}, Python {platform.python_version()}"]
    lines += [
        f"{platform.system()} {platform.machine()}, GPU: {torch.cuda.is_available()}",
        "",
        "traceback, innermost last:",
    ]
    for frame, number in traceback.walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", "?"))
        if full or module.partition(".")[0] in (*_OURS, "torch"):
            lines.append(f"  {module}:{number} in {frame.f_code.co_qualname}")
    if graph is not None:
        text = print_graph(graph, locations=full)
        lines += ["", text if full else anonymous(text)]
    return "\n".join(lines)


def anonymous(text: str) -> str:
    """The text of a graph without names of variables and lines of the program."""
    names: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"%{len(names)}")

    lines = []
    for line in text.splitlines():
        line = re.sub(r"\s+# .*$", "", line)
        if line.startswith("where "):
            line = re.sub(r"\(([^,]*), .*\)$", r"(\1)", line)  # what a symbol is read from
        lines.append(re.sub(r"%\w+", number, line))
    return "\n".join(lines)
