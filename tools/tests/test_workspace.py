"""The repository's metadata agree with its architecture."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import compatibility_table
import import_arrows
import workspace


def test_all_seven_packages_are_found() -> None:
    assert {package.name for package in workspace.PACKAGES} == set(import_arrows.ALLOWED)


def test_closure_names_what_is_needed_first() -> None:
    assert [package.name for package in workspace.closure("dynamo-capture")] == [
        "fx-interface",
        "guards",
        "dynamo-capture",
    ]


@pytest.mark.parametrize("package", workspace.PACKAGES, ids=lambda package: package.name)
def test_every_package_is_complete(package: workspace.Package) -> None:
    for name in ("README.md", "CHANGELOG.md", "LICENSE", f"src/{package.module}/py.typed"):
        assert (package.folder / name).exists(), name
    assert package.version in (package.folder / "CHANGELOG.md").read_text()


def test_declared_dependencies_are_those_of_the_architecture() -> None:
    assert import_arrows.wrong_dependencies() == []


def test_sibling_ranges_hold_for_the_siblings_here() -> None:
    assert compatibility_table.unsatisfied() == []


def test_the_compatibility_page_is_up_to_date() -> None:
    assert compatibility_table.main(["--check"]) == 0


@pytest.mark.parametrize(
    "span, version, inside",
    [
        (">=0.1,<0.2", "0.1.0", True),
        (">=0.1,<0.2", "0.2.0", False),
        (">=0.1,<0.2", "0.0.9", False),
        (">=0.1.1", "0.1.1", True),
    ],
)
def test_version_ranges(span: str, version: str, inside: bool) -> None:
    assert compatibility_table.contains(span, version) is inside


def test_the_fingerprint_follows_its_inputs() -> None:
    assert workspace.fingerprint(["a"]) == workspace.fingerprint(["a"])
    assert workspace.fingerprint(["a"]) != workspace.fingerprint(["b"])


def test_what_is_said_to_be_tested_is_supported_and_has_a_session() -> None:
    text = (workspace.ROOT / "noxfile.py").read_text()
    assert workspace.TESTED[0].session == "tests"
    for row in workspace.TESTED[1:]:
        assert row.session == f"tests-python-{row.python}"
    assert 'name=f"tests-python-{_version}"' in text
    assert all(f"| {row.python} | {row.torch} |" in compatibility_table.page() for row in workspace.TESTED)
