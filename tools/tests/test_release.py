"""Versions and changelogs from change files, in a copy of the repository's metadata."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import release
import workspace


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, workspace.Package]:
    """Packages that were all released today; ``requirements`` and versions are read from the copies."""
    for package in workspace.PACKAGES:
        folder = tmp_path / package.folder.name
        shutil.copytree(
            package.folder, folder, ignore=lambda where, names: {n for n in names if _is_left_out(n)}
        )
        log = folder / "CHANGELOG.md"
        log.write_text(f"# Changelog\n\n## {package.version} (2026-01-01)\n\n- First.\n")
    copies = tuple(workspace.Package(path.parent) for path in sorted(tmp_path.glob("*/pyproject.toml")))
    monkeypatch.setattr(release, "PACKAGES", copies)
    by_name = {package.name: package for package in copies}
    monkeypatch.setattr(workspace, "BY_NAME", by_name)
    monkeypatch.setattr(release, "BY_NAME", by_name)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    return by_name


def _is_left_out(name: str) -> bool:
    return not (name in {"src", "pyproject.toml", "__about__.py"} or "." not in name) or name in {
        "tests",
        "csrc",
        "cpp",
    }


def change(package: workspace.Package, name: str, text: str = "A thing.\n") -> None:
    (package.folder / "changes").mkdir(exist_ok=True)
    (package.folder / "changes" / name).write_text(text)


def test_without_change_files_nothing_is_released(packages: dict[str, workspace.Package]) -> None:
    assert release.plan() == []


def test_what_was_never_released_is_released_as_it_is(packages: dict[str, workspace.Package]) -> None:
    log = packages["guards"].folder / "CHANGELOG.md"
    log.write_text(log.read_text().replace("(2026-01-01)", "(unreleased)"))
    (step,) = release.plan()
    assert (step.package.name, step.version, step.ranges) == ("guards", packages["guards"].version, {})


def test_a_fix_of_one_package_releases_no_other(packages: dict[str, workspace.Package]) -> None:
    change(packages["fx-interface"], "+a.fixed.md")
    (step,) = release.plan()
    assert step.version == release.following(packages["fx-interface"].version, {"fixed"})


def test_a_breaking_change_reaches_all_that_need_the_package(packages: dict[str, workspace.Package]) -> None:
    change(packages["guards"], "+a.breaking.md")
    steps = {step.package.name: step for step in release.plan()}
    assert set(steps) == {"guards", "dynamo-capture", "fxstack"}
    wanted = release.span(steps["guards"].version)
    assert steps["dynamo-capture"].ranges == {"guards": wanted}
    assert wanted != packages["dynamo-capture"].requirements["guards"]


def test_a_release_is_written(
    packages: dict[str, workspace.Package], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("towncrier", reason="the session `tests` installs it")
    change(packages["guards"], "+a.breaking.md", "Guards of one kind\nare gone.\n")
    change(packages["guards"], "12.fixed.md", "A fix.\n")
    template = workspace.ROOT / "tools" / "changelog_entry.jinja"
    text = (
        (workspace.ROOT / "towncrier.toml")
        .read_text()
        .replace("../../tools/changelog_entry.jinja", str(template))
    )
    (packages["guards"].folder.parent / "towncrier.toml").write_text(text)
    for step in release.plan():
        release.make(step, "2026-02-03")
    guards = workspace.Package(packages["guards"].folder)
    log = (guards.folder / "CHANGELOG.md").read_text()
    assert log.startswith(
        f"# Changelog\n\n## {guards.version} (2026-02-03)\n\n"
        "- **Breaking**: Guards of one kind\n  are gone.\n- A fix.\n\n## "
    )
    assert release.change_files(guards) == []
    capture = workspace.Package(packages["dynamo-capture"].folder)
    assert capture.requirements["guards"] == release.span(guards.version)
    assert f"Needs guards {release.span(guards.version)}." in (capture.folder / "CHANGELOG.md").read_text()
    assert release.plan() == []


@pytest.mark.parametrize(
    "version, kinds, expected",
    [
        ("0.1.0", {"fixed"}, "0.1.1"),
        ("0.1.3", {"added", "fixed"}, "0.1.4"),
        ("0.1.3", {"added", "breaking"}, "0.2.0"),
        ("1.2.3", {"added"}, "1.3.0"),
        ("1.2.3", {"breaking"}, "2.0.0"),
    ],
)
def test_the_kind_decides_the_version(version: str, kinds: set[str], expected: str) -> None:
    assert release.following(version, kinds) == expected


def test_items_before_change_files_join_the_first_release() -> None:
    made = "\n\n# Changelog\n\n## 0.1.0 (2026-02-03)\n\n- New.\n\n## 0.1.0 (unreleased)\n\n- Old.\n"
    assert release.joined(made, "0.1.0") == "# Changelog\n\n## 0.1.0 (2026-02-03)\n\n- New.\n- Old.\n"
    empty = "# Changelog\n\n## 0.1.0 (2026-02-03)\n\n\n## 0.1.0 (unreleased)\n\n- Old.\n"
    assert release.joined(empty, "0.1.0") == "# Changelog\n\n## 0.1.0 (2026-02-03)\n\n- Old.\n"


@pytest.mark.parametrize(
    "name, text, words",
    [("a.fixed.txt", "A.", "called"), ("a.fixed.md", " \n", "empty"), ("a.added.md", "- A.", "one item")],
)
def test_wrong_change_files_are_told(
    packages: dict[str, workspace.Package], name: str, text: str, words: str
) -> None:
    assert list(release.problems()) == []
    change(packages["guards"], name, text)
    (problem,) = release.problems()
    assert re.search(words, problem)
