"""A checkout of its own: a clone that shares the objects of a repository and writes nothing to it.

A worktree (``git worktree add``) would be registered in the repository, and stay there if the process is killed.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from fxstack_dashboard.errors import DashboardError


class Checkout:
    """A clone in a folder, at one commit at a time; ``git bisect`` runs in it."""

    def __init__(self, repository: Path, folder: Path) -> None:
        self.folder = folder
        top = _run(repository, "rev-parse", "--show-toplevel")
        if top.returncode:
            why = f"{str(repository)!r} is in no repository of git: {top.stderr.strip()}"
            raise DashboardError("DSH301", why, action="use --repository")
        self.repository = Path(top.stdout.strip())
        made = _run(
            folder.parent, "clone", "--quiet", "--shared", "--no-checkout", str(self.repository), str(folder)
        )
        if made.returncode:
            raise DashboardError(
                "DSH301", f"{str(self.repository)!r} cannot be cloned: {made.stderr.strip()}"
            )

    def resolve(self, revision: str) -> str:
        """The commit that a name means in the user's repository. DashboardError DSH301 if it means none."""
        found = _run(self.repository, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        if found.returncode:
            raise DashboardError("DSH301", f"{revision!r} is no commit of {str(self.repository)!r}")
        return found.stdout.strip()

    def at(self, commit: str) -> None:
        """Check out a commit; what was built for another one stays where git ignores it."""
        self._git("checkout", "--quiet", "--force", "--detach", commit)

    def is_ancestor(self, one: str, other: str) -> bool:
        """Whether the first commit comes before the second."""
        return _run(self.folder, "merge-base", "--is-ancestor", one, other).returncode == 0

    def begin(self, good: str, bad: str) -> str | None:
        """Begin bisecting; the commit to judge next, None if none is left."""
        self._git("bisect", "start", "--no-checkout", bad, good)
        return self._next()

    def judge(self, commit: str, verdict: str) -> str | None:
        """Say what a commit is: ``good``, ``bad`` or ``skip``; the one to judge next, or None."""
        _run(self.folder, "bisect", verdict, commit)  # its status says when none but skipped ones are left
        return self._next()

    def outcome(self) -> tuple[str, list[str]]:
        """The first commit that is known to be bad, and earlier ones that may be it, since they could not be judged."""
        bad = self._git("rev-parse", "refs/bisect/bad")
        good = self._refs("refs/bisect/good-*")
        left = self._git("rev-list", bad, "--not", *good).split()
        return bad, [commit for commit in left if commit != bad]

    def subject(self, commit: str) -> str:
        """The first line of its message."""
        return self._git("log", "-1", "--format=%s", commit)

    def files_changed(self, one: str, other: str) -> list[str]:
        """Paths that differ between two commits."""
        return self._git("diff", "--name-only", one, other).splitlines()

    def _next(self) -> str | None:
        skipped = set(self._refs("refs/bisect/skip-*"))
        head = _run(self.folder, "rev-parse", "--verify", "--quiet", "BISECT_HEAD")
        commit = head.stdout.strip()
        bad = self._git("rev-parse", "refs/bisect/bad")
        if head.returncode or commit == bad or commit in skipped:
            return None
        known = {*self._refs("refs/bisect/good-*"), *skipped}
        return None if commit in known else commit

    def _refs(self, pattern: str) -> list[str]:
        return self._git("for-each-ref", "--format=%(objectname)", pattern).split()

    def _git(self, *arguments: str) -> str:
        done = _run(self.folder, *arguments)
        if done.returncode:
            raise DashboardError(
                "DSH301", f"git {arguments[0]} failed: {done.stderr.strip() or done.stdout.strip()}"
            )
        return done.stdout.strip()


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
