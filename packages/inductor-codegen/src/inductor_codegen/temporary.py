"""Temporary folders that nobody else can reach, in the first place where one can be made; those left behind go."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from inductor_codegen.trusted import Folder, passable

_PREFIX = "fxstack-tmp-"
_PROBE = bytes(4096)
_SWEPT: set[tuple[int, Path]] = set()
"""Process and folder; a child that was forked sweeps again."""


def places() -> list[str]:
    """Where temporary folders may be, in the order in which they are tried."""
    named = [os.environ[name] for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)]
    return [*named, "/tmp", "/var/tmp", "/usr/tmp", "/dev/shm"]


@contextlib.contextmanager
def temporary_folder() -> Iterator[Folder]:
    """A temporary folder of this user alone, removed at the end. OSError if there is no place for one."""
    with _parent() as parent:
        sweep_once(parent, _PREFIX)
        with parent.scratch(_PREFIX) as folder:
            yield folder


def lasting_folder(prefix: str) -> Folder:
    """A new temporary folder of this user alone, which stays until somebody removes it."""
    with _parent() as parent:
        return parent.fresh(prefix)


def sweep_once(folder: Folder, prefix: str) -> None:
    """Remove the scratch folders of that prefix that killed processes left, the first time in a process."""
    if (os.getpid(), folder.path) not in _SWEPT:
        _SWEPT.add((os.getpid(), folder.path))
        with contextlib.suppress(OSError):
            folder.sweep(prefix)


def _parent() -> Folder:
    reasons = []
    for place in places():
        try:
            return _tried(place)
        except OSError as error:
            reasons.append(f"{place}: {error.strerror or error}")
    raise OSError(errno.ENOSPC, f"no temporary folder can be used ({'; '.join(reasons)})")


def _tried(place: str) -> Folder:
    """The folder, if a file can be written in a scratch folder in it."""
    parent = passable(Path(place))
    try:
        with parent.scratch(_PREFIX) as probe:
            probe.write("probe", _PROBE)
    except BaseException:
        parent.close()
        raise
    return parent
