"""Finds uses of the parts of torch that this project is an implementation of, which none of its code may stand on.

And of ``dataclasses.dataclass``: ``fx_interface.python_runtime.quick_dataclasses`` has one that makes a class in a
fifteenth of the time, which the import of the packages needs some 270 times.

Adapters that combine our parts with stock's are the exception. Benchmarks, where stock is the peer, are in no package.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from source_check import check, violations_of

FORBIDDEN = (
    "torch._dynamo",
    "torch._inductor",
    "torch._functorch",
    "torch._decomp",
    "torch._refs",
    "torch._prims",
    "torch._prims_common",
    "torch._export",
    "torch.export",
    "torch.compile",
    "torch.fx.experimental",
    "functorch",
    "sympy",
    "dataclasses.dataclass",
)
"""Modules and functions; everything below them is meant too."""

EXEMPT = (
    "packages/fxstack/src/fxstack/adapters/",
    "packages/fxstack-dashboard/src/fxstack_dashboard/adapters/",
    "packages/fx-interface/src/fx_interface/python_runtime/quick_dataclasses.py",
    "packages/dynamo-capture/src/dynamo_capture/semantics/calls/builtins/texts.py",
    "packages/dynamo-capture/src/dynamo_capture/bytecode/",
    "packages/dynamo-capture/src/dynamo_capture/interpreter/opcodes/not_handled.py",
)
"""The folders whose files combine our parts with stock's, or compare them, and are loaded only when asked for; what
makes data classes; what asks how the standard library's show themselves; and the layer that imports nothing but the
standard library."""

_IMPORTERS = {"import_module", "__import__", "find_spec"}


def is_forbidden(name: str) -> bool:
    """Whether the dotted name is a forbidden one or lies below one."""
    return any(name == bad or name.startswith(bad + ".") for bad in FORBIDDEN)


def uses(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each forbidden use in Python source text."""
    tree = ast.parse(source)
    aliases = _aliases(tree)
    inner: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            inner.add(node.value)
        for name in _names(node, aliases, node in inner):
            if is_forbidden(name):
                yield getattr(node, "lineno", 0), name


def _aliases(tree: ast.AST) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(
                {
                    (a.asname or a.name.split(".")[0]): (a.name if a.asname else a.name.split(".")[0])
                    for a in node.names
                }
            )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.update({(a.asname or a.name): f"{node.module}.{a.name}" for a in node.names})
    return found


def _names(node: ast.AST, aliases: dict[str, str], is_inner: bool) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=str(module), names=names, level=0):
            yield from (f"{module}.{alias.name}" for alias in names)
        case ast.Attribute() if not is_inner:
            dotted = _dotted(node)
            if dotted is not None:
                root, _, rest = dotted.partition(".")
                yield f"{aliases.get(root, root)}.{rest}"
        case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]):
            called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if called in _IMPORTERS:
                yield name


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None


def violations() -> list[str]:
    """Every forbidden use in the packages, as ``path:line: name``."""
    return violations_of(uses, EXEMPT)


def main(argv: Sequence[str] | None = None) -> int:
    """Print what was found; the exit status is 1 if anything was."""
    return check(__doc__, violations(), "no package uses a forbidden import", argv)


if __name__ == "__main__":
    raise SystemExit(main())
