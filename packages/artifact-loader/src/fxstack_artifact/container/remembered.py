"""Files whose weights were checked before: an option, for those that take longer to hash than to use.

A note says of a file that this user checked all of it, and which state of it: device, inode, size, the times of its
last change, and the hash of its manifest. Whoever writes to a file changes the time that the system keeps for that, and
no program can set it back. So a changed file is hashed and refused as ever; what is not noticed is a disk that returns
other bytes than were written, and a system that keeps no such times (some network file systems).

Only weights, which are numbers, are believed on such a note: programs and native objects are hashed in any case.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from pathlib import Path
from typing import Any

from fxstack_artifact.container.hashing import digest

_SETTLED = 2 * 10**9
"""Nanoseconds that a file must be left alone before it is noted: a later change has another time for certain."""


def state_of(file: int) -> list[int]:
    """What changes with every change of an open file."""
    found = os.fstat(file)
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def was_checked(state: list[int], manifest: bytes) -> bool:
    """Whether there is a note of a file in this state."""
    folder = _folder()
    if folder is None:
        return False
    try:
        with open(os.open(_note(folder, state), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as note:
            return _is_own(os.fstat(note.fileno())) and bool(json.load(note) == _content(state, manifest))
    except (OSError, RecursionError, ValueError):
        return False


def note(state: list[int], manifest: bytes) -> None:
    """Note that all of a file in this state was checked, where that can be noted and is certain to stay true."""
    folder = _folder(create=True)
    if folder is None or time.time_ns() - max(state[3:]) < _SETTLED:
        return
    target = _note(folder, state)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(json.dumps(_content(state, manifest)).encode())
        os.replace(beside, target)


def _content(state: list[int], manifest: bytes) -> dict[str, Any]:
    return {"state": state, "manifest": digest(manifest)}


def _note(folder: Path, state: list[int]) -> Path:
    return folder / f"{state[0]:x}-{state[1]:x}.json"


def _folder(*, create: bool = False) -> Path | None:
    """Where notes are kept; None if another user could write there."""
    root = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(root) if root else Path.home() / ".cache") / "fxstack" / "checked"
    try:
        if create:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        parents = [folder, *folder.parents[:2]]
        return folder if all(_is_own(os.lstat(place), folder=True) for place in parents) else None
    except OSError:
        return None


def _is_own(found: os.stat_result, *, folder: bool = False) -> bool:
    is_kind = stat.S_ISDIR if folder else stat.S_ISREG
    return is_kind(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
