"""A repro script: the shortest failing graph as a Python function, its inputs, and the comparison; it runs alone."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from fx_interface.graph import placeholders
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.verification.bisect import Culprit
from fxstack.verification.stored_inputs import READER, stored_inputs

_SCRIPT = '''\
"""{title}

{written_by} Exit status 1: the difference is still there.
"""

import base64
import zlib

import torch

import fxstack
{imports}
{reader}

MEMORIES = {memories}
INPUTS = {inputs}


{program}

if __name__ == "__main__":
{main}
'''


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a script does with its program: who wrote it, and the lines behind ``if __name__ == "__main__"``."""

    written_by: str
    main: str


VERIFY = Purpose(
    "Written by fxstack.verify.",
    """\
    report = fxstack.verify(program{backend})(*INPUTS)
    print(report)
    raise SystemExit(0 if report.ok else 1)""",
)
CHECK = Purpose(
    "Written under FXSTACK_CHECK=1.",
    """\
    torch.set_grad_enabled({grad})
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        fxstack.compile(program{backend}, options={{"check": True}})(*INPUTS)
    found = [one.message for one in heard if issubclass(one.category, fxstack.CheckWarning)]
    print(*found, sep="\\n")
    if found:
        print(fxstack.verify(program{backend})(*INPUTS))  # names the first operator that differs
    raise SystemExit(1 if found else 0)""",
)


def repro_script(culprit: Culprit, backend: str | Callable[..., Any]) -> str:
    """The text of a script that shows the difference again.

    A backend that cannot be imported by name is left out: the script then says where to put it.
    """
    title = f"{culprit.operator} differs: {culprit.difference}"
    return script_of(culprit.case.graph, culprit.case.inputs, title, backend, VERIFY)


def script_of(
    module: GraphModule,
    inputs: Sequence[Any],
    title: str,
    backend: str | Callable[..., Any],
    purpose: Purpose,
) -> str:
    """A script that defines the graph as ``program`` and its inputs as ``INPUTS``, and does what it is for."""
    names, program = _program(module)
    imports, argument = _backend(backend)
    memories, values = stored_inputs(inputs)
    extra = ["import warnings"] if purpose is CHECK else []
    return _SCRIPT.format(
        title=title.replace("\\", "/").replace('"', "'"),
        written_by=purpose.written_by,
        imports="\n".join([*extra, *names, *imports]),
        reader=READER,
        memories=memories,
        inputs=values,
        program=program,
        main=purpose.main.format(backend=argument, grad=torch.is_grad_enabled()),
    )


def _program(module: GraphModule) -> tuple[list[str], str]:
    """The imports that the graph's code needs, and the code as a function ``program``."""
    graph = module.graph
    code = graph.python_code("self")
    names = [node.name for node in placeholders(graph)]
    head, _, rest = code.src.partition("\n")
    while not head.startswith("def "):
        head, _, rest = rest.partition("\n")
    imports = []
    for name, value in sorted(code.globals.items()):
        text = _import_of(name, value) if re.search(rf"\b{re.escape(name)}\b", rest) else None
        if text is not None:
            imports.append(text)
    return imports, f"def program({', '.join(names)}):\n{rest.rstrip()}"


def _import_of(name: str, value: Any) -> str | None:
    """A line that binds ``name`` to ``value``; None where the script has it anyway."""
    if name == "torch":
        return None
    if isinstance(value, float):
        return f'{name} = float("{value}")'
    module = getattr(value, "__module__", None)
    attribute = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if hasattr(value, "__spec__"):
        return f"import {value.__name__} as {name}"
    if module is None or attribute is None:
        return f"{name} = type(None)" if value is type(None) else None
    if "." not in attribute and hasattr(importlib.import_module(module), attribute):
        return f"from {module} import {attribute} as {name}"
    return None


def _backend(backend: str | Callable[..., Any]) -> tuple[list[str], str]:
    if isinstance(backend, str):
        return [], f", backend={backend!r}"
    module, name = getattr(backend, "__module__", None), getattr(backend, "__qualname__", "")
    if module not in (None, "__main__") and name.isidentifier():
        try:
            if getattr(importlib.import_module(module), name, None) is backend:
                return [f"from {module} import {name}"], f", backend={name}"
        except ImportError:
            pass
    return [f"# The backend was {name or backend!r}: define it here, and pass it below."], ""
