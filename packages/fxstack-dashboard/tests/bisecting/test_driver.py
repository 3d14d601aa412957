"""The search over commits, in repositories made for it: the right commit is found and the repository is not touched."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fxstack_dashboard.bisecting.checkout import Checkout
from fxstack_dashboard.bisecting.driver import Found, Measured, bisect
from fxstack_dashboard.errors import DashboardError

IDENTITY = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *IDENTITY, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def commit(folder: Path, **files: str) -> str:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", f"sets {files}")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository without commits."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    return folder


def _search(repository: Path, good: str, bad: str, metric: str, measure: Callable[[Path], Measured]) -> Found:
    checkout = Checkout(repository, repository.parent / "clone")
    return bisect(checkout, good, bad, metric, lambda _: measure(checkout.folder), lambda _: None)


def _value(folder: Path) -> Measured:
    text = (folder / "value.py").read_text()
    return Measured((float(text),)) if text != "broken" else Measured((), "broken")


@pytest.mark.parametrize("first_bad", range(1, 9))
def test_each_commit_is_found(repository: Path, first_bad: int) -> None:
    drawn = random.Random(first_bad)
    made = []
    for number in range(9):
        level = 1.0 if number >= first_bad else 2.0
        made.append(commit(repository, value=str(level * drawn.uniform(0.97, 1.03))))
    found = _search(repository, made[0], made[-1], "speedup", _value)
    assert found.commit == made[first_bad]
    assert found.subject == git(repository, "log", "-1", "--format=%s", made[first_bad])
    assert found.possible == ()
    assert len(found.trials) <= 2 + 4


def test_less_is_better_for_a_time(repository: Path) -> None:
    made = [commit(repository, value=text) for text in ("1.0", "1.1", "3.0", "2.9")]
    assert _search(repository, made[0], "HEAD", "cold", _value).commit == made[2]


def test_counts_that_are_none_at_first(repository: Path) -> None:
    made = [commit(repository, value=text, other=str(n)) for n, text in enumerate(("0", "0", "2", "2"))]
    assert _search(repository, made[0], "HEAD", "breaks", _value).commit == made[2]


def test_commits_that_cannot_be_measured_are_named(repository: Path) -> None:
    values = ("1", "broken", "broken", "3", "3")
    made = [commit(repository, value=text, other=str(n)) for n, text in enumerate(values)]
    found = _search(repository, made[0], "HEAD", "cold", _value)
    assert found.commit == made[3]
    assert set(found.possible) == {made[1], made[2]}
    assert {trial.verdict for trial in found.trials} == {"good", "bad", "skip"}


def test_a_branch_that_was_merged_is_searched(repository: Path) -> None:
    base = commit(repository, value="1")
    git(repository, "checkout", "--quiet", "-b", "side")
    bad = commit(repository, value="3")
    git(repository, "checkout", "--quiet", "-")
    commit(repository, other="1")
    git(repository, "merge", "--quiet", "--no-edit", "side")
    assert _search(repository, base, "HEAD", "cold", _value).commit == bad


def test_the_repository_is_not_touched(repository: Path) -> None:
    made = [commit(repository, value=text) for text in ("1.0", "1.1", "3.0", "2.9")]
    (repository / "value.py").write_text("edited, not committed")
    (repository / "untracked.txt").write_text("mine")
    git(repository, "add", "untracked.txt")

    def state() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in sorted(repository.rglob("*")) if path.is_file()}

    before = state()
    _search(repository, made[0], made[-1], "cold", _value)
    assert state() == before


def test_ends_that_do_not_differ_are_refused(repository: Path) -> None:
    made = [commit(repository, value=text) for text in ("1.0", "2.0", "0.9")]
    for bad, code in ((made[2], "DSH304"), (made[0], "DSH302"), ("none", "DSH301")):
        with pytest.raises(DashboardError) as caught:
            _search(repository, made[0], bad, "cold", _value)
        assert caught.value.code == code
        subprocess.run(["rm", "-rf", str(repository.parent / "clone")], check=True)
    with pytest.raises(DashboardError, match="DSH302"):
        _search(repository, made[2], made[0], "cold", _value)


def test_an_end_that_cannot_be_measured_is_refused(repository: Path) -> None:
    made = [commit(repository, value=text) for text in ("broken", "2.0")]
    with pytest.raises(DashboardError, match=r"DSH303.*broken"):
        _search(repository, made[0], made[1], "cold", _value)


def test_a_folder_without_a_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DashboardError, match="DSH301"):
        Checkout(tmp_path, tmp_path / "clone")
