"""Generates one reference page a package from its facade: each public name with its signature and docstring."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from workspace import PACKAGES, Package

_BY_MODULE = {package.module: package for package in PACKAGES}


def module_path(name: str) -> Path | None:
    """The file of a module of one of the packages, or None for a module of someone else."""
    package = _BY_MODULE.get(name.partition(".")[0])
    if package is None:
        return None
    base = package.source.parent.joinpath(*name.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py", base.with_suffix(".pyi")):
        if path.exists():
            return path
    return None


def facade(package: Package) -> list[tuple[str, str]]:
    """Public names of the package in order, each with the module that it is imported from."""
    path = package.source / "__init__.py"
    if not path.exists():
        return []
    tree = ast.parse(path.read_text())
    public = [name for name in exported(tree) if not name.startswith("__")]
    return [(name, package.module) for name in public]


def exported(tree: ast.Module) -> list[str]:
    """The names in ``__all__``."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "__all__" for t in node.targets):
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def _imports(tree: ast.Module, otherwise: str) -> dict[str, tuple[str, str]]:
    """The module that each imported name comes from, and its name there; a table of lazy names counts as imports."""
    found = {
        alias.asname or alias.name: (node.module or otherwise, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and not node.level
        for alias in node.names
    }
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "_EXPORTS" and node.value:
            found |= {name: (module, name) for name, module in ast.literal_eval(node.value).items()}
    return found


def describe(name: str, module: str) -> Iterator[str]:
    """The Markdown lines of one public name."""
    yield f"### `{name}`"
    yield ""
    found = definition(name, module)
    if found is None:
        yield f"From `{module}`."
    else:
        signature, text, methods = found
        if signature:
            yield from ("```python", signature, "```", "")
        yield text or "(no description)"
        yield from methods
    yield ""


def definition(name: str, module: str) -> tuple[str, str, list[str]] | None:
    """Signature, docstring and methods of a name, in the module that defines it; None if it is someone else's."""
    path = module_path(module)
    if path is None:
        return None
    tree = ast.parse(path.read_text())
    found = _definition(tree, name)
    if found is not None:
        return found
    if module_path(f"{module}.{name}") is not None:
        return _submodule(f"{module}.{name}")
    further, there = _imports(tree, module).get(name, (module, name))
    return None if further == module else definition(there, further)


def _submodule(name: str) -> tuple[str, str, list[str]]:
    """What a module that is itself a public name says, and what it gives out."""
    path = module_path(name)
    assert path is not None
    tree = ast.parse(path.read_text())
    members = []
    for public in exported(tree):
        found = definition(public, name)
        if found is not None:
            signature, text, _ = found
            members.append(f"- `{signature or public}`: {' '.join(text.split())}")
    return f"import {name}", ast.get_docstring(tree) or "", ["", *members] if members else []


def _definition(tree: ast.Module, name: str) -> tuple[str, str, list[str]] | None:
    for position, node in enumerate(tree.body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            if any(ast.unparse(mark) == "overload" for mark in node.decorator_list):
                continue
            return _signature(node), ast.get_docstring(node) or "", []
        if isinstance(node, ast.ClassDef) and node.name == name:
            bases = f"({', '.join(map(ast.unparse, node.bases))})" if node.bases else ""
            return f"class {name}{bases}", ast.get_docstring(node) or "", list(_members(node))
        if _assigns(node, name):
            after = tree.body[position + 1] if position + 1 < len(tree.body) else None
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                return "", str(after.value.value), []
            return "", "", []
    return None


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    returns = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    return f"def {node.name}({ast.unparse(node.args)}){returns}"


def _members(node: ast.ClassDef) -> Iterator[str]:
    """The fields of a record, and the methods that say what they do."""
    fields = [
        f"- `{ast.unparse(part)}`"
        for part in node.body
        if isinstance(part, ast.AnnAssign) and not ast.unparse(part.target).startswith("_")
    ]
    methods = [
        f"- `{_signature(part)[4:]}`: {' '.join((ast.get_docstring(part) or '').split())}"
        for part in node.body
        if isinstance(part, ast.FunctionDef) and not part.name.startswith("_") and ast.get_docstring(part)
    ]
    if fields or methods:
        yield from ("", *fields, *methods)


def _assigns(node: ast.stmt, name: str) -> bool:
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def page(package: Package) -> str:
    """The reference page of one package."""
    lines = [f"# {package.name} {package.version}", "", package.metadata["project"]["description"], ""]
    for name, module in facade(package):
        lines.extend(describe(name, module))
    return "\n".join(lines)


def main(argv: Sequence[str]) -> int:
    """Write the pages and an index into the folder that is named."""
    folder = Path(argv[0])
    folder.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        (folder / f"{package.name}.md").write_text(page(package))
    index = ["# Reference", "", *(f"- [{package.name}]({package.name}.md)" for package in PACKAGES), ""]
    (folder / "index.md").write_text("\n".join(index))
    print(f"{len(PACKAGES)} pages in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
