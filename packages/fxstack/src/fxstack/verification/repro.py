"""A repro script: the shortest failing graph as a Python function, its inputs, and the comparison; it runs alone."""

from __future__ import annotations

import base64
import importlib
import io
import re
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule

from fx_interface.graph import placeholders
from fxstack.verification.bisect import Culprit

_SCRIPT = '''\
"""{title}

Written by fxstack.verify. Exit status 1: the difference is still there.
"""

import base64
import io

import torch

import fxstack
{imports}
INPUTS = torch.load(io.BytesIO(base64.b64decode("""
{data}
""")))


{program}

if __name__ == "__main__":
    report = fxstack.verify(program{backend})(*INPUTS)
    print(report)
    raise SystemExit(0 if report.ok else 1)
'''


def repro_script(culprit: Culprit, backend: str | Callable[..., Any]) -> str:
    """The text of a script that shows the difference again.

    A backend that cannot be imported by name is left out: the script then says where to put it.
    """
    names, program = _program(culprit.case.graph)
    imports, argument = _backend(backend)
    buffer = io.BytesIO()
    torch.save([_plain(value) for value in culprit.case.inputs], buffer)
    data = base64.b64encode(buffer.getvalue()).decode()
    lines = "\n".join(data[i : i + 100] for i in range(0, len(data), 100))
    title = f"{culprit.operator} differs: {culprit.difference}".replace("\\", "/").replace('"', "'")
    return _SCRIPT.format(
        title=title, imports="\n".join([*names, *imports, ""]), data=lines, program=program, backend=argument
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


def _plain(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    copied = value.detach().clone()
    if value.stride() != copied.stride():
        copied = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype).copy_(value)
    return copied.requires_grad_(value.requires_grad)
