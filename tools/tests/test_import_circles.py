"""Modules that import each other are found, whatever kind of import it is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import import_circles
from workspace import PACKAGES

FOR_TYPES = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.b import B\n"
IN_A_FUNCTION = "def f():\n    from p.b import B\n"


def circles_of(folder: Path, files: dict[str, str]) -> tuple[list[list[str]], list[list[str]]]:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    known = import_circles.modules(folder)
    return (
        import_circles.circles(import_circles.imports(known)),
        import_circles.circles(import_circles.first_imports(known)),
    )


def test_this_repository_has_none() -> None:
    for package in PACKAGES:
        known = import_circles.modules(package.folder / "src")
        assert import_circles.circles(import_circles.imports(known)) == []
        assert import_circles.circles(import_circles.first_imports(known)) == []
        for members in import_circles.folder_imports(known).values():
            assert import_circles.circles(members) == []
        assert import_circles.crowded(known) == {}


@pytest.mark.parametrize("text", [FOR_TYPES, IN_A_FUNCTION, "from p.b import B\n", "import p.b\n"])
def test_files_that_import_each_other(tmp_path: Path, text: str) -> None:
    files, _ = circles_of(tmp_path, {"p/__init__.py": "", "p/a.py": text, "p/b.py": "from p.a import A\n"})
    assert files == [["p.a", "p.b"]]


def test_a_face_that_needs_a_module_that_needs_the_face(tmp_path: Path) -> None:
    texts = {
        "p/__init__.py": "",
        "p/a.py": "import p.part.y\n",
        "p/part/__init__.py": "from p.part.x import x\n",
        "p/part/x.py": "import p.b\n",
        "p/part/y.py": "",
        "p/b.py": "from p.a import A\n",
    }
    files, first = circles_of(tmp_path, texts)
    assert files == []
    assert first == [["p.a", "p.b", "p.part", "p.part.x"]]


def test_a_package_may_give_out_what_is_in_it(tmp_path: Path) -> None:
    texts = {"p/__init__.py": "from p.a import A\n", "p/a.py": "from p.b import B\n", "p/b.py": ""}
    assert circles_of(tmp_path, texts) == ([], [])


def test_folders_that_import_each_other(tmp_path: Path) -> None:
    texts = {
        "p/__init__.py": "",
        "p/low/__init__.py": "",
        "p/low/a.py": "from p.high.b import B\n",
        "p/low/c.py": "",
        "p/high/__init__.py": "",
        "p/high/b.py": "",
        "p/high/d.py": "from p.low.c import C\n",
    }
    assert circles_of(tmp_path, texts) == ([], [])
    members = import_circles.folder_imports(import_circles.modules(tmp_path))
    assert import_circles.circles(members["p"]) == [["high", "low"]]


def test_a_file_that_imports_the_face_of_a_folder_that_imports_it(tmp_path: Path) -> None:
    texts = {
        "p/__init__.py": "",
        "p/a.py": "from p.part import x\n",
        "p/part/__init__.py": "",
        "p/part/b.py": "from p.a import A\n",
    }
    files, _ = circles_of(tmp_path, texts)
    assert files == []
    members = import_circles.folder_imports(import_circles.modules(tmp_path))
    assert import_circles.circles(members["p"]) == [["a", "part"]]


def test_folders_with_many_modules(tmp_path: Path) -> None:
    circles_of(tmp_path, {f"p/m{place}.py": "" for place in range(13)} | {"q/a.py": ""})
    assert import_circles.crowded(import_circles.modules(tmp_path)) == {"p": 13}
