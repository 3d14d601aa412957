"""A distribution that lacks a file, or holds one too many, is told."""

from __future__ import annotations

import base64
import hashlib
import io
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from check_wheels import problems_of
from workspace import BY_NAME

PACKAGE = BY_NAME["fx-interface"]
STEM = f"fx_interface-{PACKAGE.version}"
ABOUT = f"{STEM}.dist-info"


def contents() -> dict[str, bytes]:
    source = PACKAGE.source.parent
    files = {path.relative_to(source).as_posix(): path.read_bytes() for path in PACKAGE.source.rglob("*.py")}
    return files | {"fx_interface/py.typed": b"", f"{ABOUT}/licenses/LICENSE": b"", f"{ABOUT}/METADATA": b""}


def wheel(folder: Path, files: dict[str, bytes], tag: str = "py3-none-any") -> None:
    rows = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
        for name, data in files.items()
    ]
    record = f"{ABOUT}/RECORD"
    with zipfile.ZipFile(folder / f"{STEM}-{tag}.whl", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.writestr(record, "\n".join([*rows, f"{record},,"]))


def sdist(folder: Path, names: set[str]) -> None:
    with tarfile.open(folder / f"{STEM}.tar.gz", "w:gz") as archive:
        for name in sorted(names):
            archive.addfile(tarfile.TarInfo(f"{STEM}/{name}"), io.BytesIO())


SDIST = {
    "PKG-INFO",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "src/fx_interface/py.typed",
}


def test_whole_distributions_pass(tmp_path: Path) -> None:
    wheel(tmp_path, contents())
    sdist(tmp_path, SDIST)
    assert problems_of(PACKAGE, tmp_path) == []


@pytest.mark.parametrize(
    "change, words",
    [
        ({"fx_interface/py.typed": None}, "lacks fx_interface/py.typed"),
        ({f"{ABOUT}/licenses/LICENSE": None}, "lacks"),
        ({"fx_interface/verifier.py": None}, "lacks fx_interface/verifier.py"),
        ({"tests/test_a.py": b""}, "does not belong"),
        ({"fx_interface/tests/test_a.py": b""}, "does not belong"),
        ({"fx_interface/notes.orig": b""}, "does not belong"),
        ({"fx_interface/_native.so": b""}, "1 libraries, not 0"),
        ({f"{ABOUT}/entry_points.txt": b"[console_scripts]\nfxi = fx_interface:main\n"}, "entry points"),
    ],
)
def test_what_is_wrong_with_a_wheel(tmp_path: Path, change: dict[str, bytes | None], words: str) -> None:
    files = {name: data for name, data in (contents() | change).items() if data is not None}
    wheel(tmp_path, files)
    assert any(words in problem for problem in problems_of(PACKAGE, tmp_path))


def test_a_changed_file_is_told(tmp_path: Path) -> None:
    wheel(tmp_path, contents())
    with zipfile.ZipFile(tmp_path / f"{STEM}-py3-none-any.whl", "a") as archive:
        archive.writestr("fx_interface/late.py", "")
    assert any("records other files" in problem for problem in problems_of(PACKAGE, tmp_path))


def test_no_wheel_and_wrong_tags_are_told(tmp_path: Path) -> None:
    assert "0 wheels" in problems_of(PACKAGE, tmp_path)[0]
    wheel(tmp_path, contents(), "cp311-cp311-linux_x86_64")
    assert any("wrong platforms" in problem for problem in problems_of(PACKAGE, tmp_path))


@pytest.mark.parametrize(
    "extra, words", [("src/a.so", "belong"), ("build/x.py", "belong"), (None, "lacks LICENSE")]
)
def test_what_is_wrong_with_an_sdist(tmp_path: Path, extra: str | None, words: str) -> None:
    wheel(tmp_path, contents())
    sdist(tmp_path, SDIST | {extra} if extra else SDIST - {"LICENSE"})
    assert any(words in problem for problem in problems_of(PACKAGE, tmp_path))
