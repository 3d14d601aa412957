"""The one gate to files of the cache: folders that only this user, or root, can change, worked on through descriptors.

``open_folder`` walks a path from the root, one name at a time, and opens each folder relative to the one before, so
that nobody can put another in its place in between. Every folder on the way, and every symbolic link that is followed
to get there, belongs to this user or to root; nobody else may write to a folder, unless it is sticky (as ``/tmp`` is),
where only owners rename their entries. Files are opened relative to a folder's descriptor, never through a link, and
must be regular files under the same rule. The root of the file system itself is not looked at: whoever owns it owns
Python too.

All that this package reads from or writes to a cache or a temporary folder goes through ``Folder``.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

_LINKS = 40
"""Symbolic links that are followed on the way to a folder, as the kernel does."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PASSING = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""A folder on the way need not be readable."""
_SHARED = stat.S_IWGRP | stat.S_IWOTH


class UntrustedError(PermissionError):
    """A folder or file that somebody else could have written, or could change."""


class Folder:
    """An open folder that passed the gate. ``path`` names it for programs that take names (a compiler, ``dlopen``)."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self.path = path

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor; the folder stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def folder(self, name: str, *, create: bool = False) -> Folder:
        """A folder inside; made for this user alone if it is missing and ``create`` is set."""
        path = self.path / name
        return Folder(_enter(self._descriptor, name, path, _DIRECTORY, create=create), path)

    def read(self, name: str) -> bytes:
        """A file's content. UntrustedError for a link, anything but a regular file, and what others may write."""
        descriptor = self._open(name, os.O_RDONLY)
        with open(descriptor, "rb") as file:
            return file.read()

    def write(self, name: str, data: bytes) -> None:
        """Make a new file; FileExistsError if there is anything of that name, be it a link to nowhere."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(name, flags, 0o600, dir_fd=self._descriptor), "wb") as file:
            file.write(data)

    def replace(self, name: str, data: bytes) -> None:
        """Make a file, or put another in its place by one rename."""
        fresh = _fresh_name(".new-")
        try:
            self.write(fresh, data)
            os.replace(fresh, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(fresh, dir_fd=self._descriptor)
            raise

    def move(self, name: str, target: Folder, new_name: str) -> None:
        """Rename an entry into another folder of the same file system."""
        os.rename(name, new_name, src_dir_fd=self._descriptor, dst_dir_fd=target._descriptor)

    def remove(self, name: str) -> None:
        """Remove an entry with all that is in it, if it is there."""
        try:
            os.unlink(name, dir_fd=self._descriptor)
        except FileNotFoundError:
            return
        except OSError:
            shutil.rmtree(name, ignore_errors=True, dir_fd=self._descriptor)

    def touch(self, name: str) -> None:
        """Say that a file was used now."""
        os.utime(name, dir_fd=self._descriptor, follow_symlinks=False)

    def status(self, name: str) -> os.stat_result:
        """What ``lstat`` says of an entry."""
        return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)

    def names(self) -> list[str]:
        """The names of all entries."""
        return os.listdir(self._descriptor)

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Hold the lock file of that name, against other threads and processes; a process that dies gives it back."""
        descriptor = self._open(name, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def scratch(self, prefix: str) -> Iterator[Folder]:
        """A new folder inside, with a name that nobody can foretell, removed at the end.

        It is locked as long as it is in use; ``sweep`` removes those of processes that were killed.
        """
        made = self.fresh(prefix)
        try:
            yield made
        finally:
            made.close()
            self.remove(made.path.name)

    def fresh(self, prefix: str) -> Folder:
        """A new folder inside that stays, locked until it is closed."""
        while True:
            name = _fresh_name(prefix)
            os.mkdir(name, 0o700, dir_fd=self._descriptor)
            made = self.folder(name)
            with contextlib.suppress(OSError):  # a file system without locks: nothing is swept there
                fcntl.flock(made._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                if self.status(name).st_ino == os.fstat(made._descriptor).st_ino:
                    return made
            made.close()  # a sweep came between

    def sweep(self, prefix: str) -> None:
        """Remove the scratch folders of that prefix that no process holds."""
        for name in self.names():
            if not name.startswith(prefix):
                continue
            with contextlib.suppress(OSError), self.folder(name) as left:
                fcntl.flock(left._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.remove(name)

    def _open(self, name: str, flags: int) -> int:
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            descriptor = os.open(name, flags, 0o600, dir_fd=self._descriptor)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise UntrustedError(errno.EPERM, "it is a symbolic link", str(self.path / name)) from None
            raise
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and _is_ours(status):
            return descriptor
        os.close(descriptor)
        reason = "it is no regular file, or another user may change it"
        raise UntrustedError(errno.EPERM, reason, str(self.path / name))


def open_folder(path: Path, *, create: bool = False) -> Folder:
    """The folder at ``path``, if nobody else can change it or what leads to it. UntrustedError otherwise.

    ``create``: make what is missing on the way, for this user alone. A sticky folder that others may write to is good
    for passing through, and for scratch folders (``temporary.py``), not for files.
    """
    made = passable(path, create=create)
    status = os.fstat(made._descriptor)
    if status.st_mode & _SHARED:
        made.close()
        raise UntrustedError(errno.EPERM, "another user may write to it", str(path))
    return made


def passable(path: Path, *, create: bool = False) -> Folder:
    """As ``open_folder``, but the folder itself may be one that is sticky and that others write to."""
    absolute = os.path.abspath(path)
    pending = absolute.split(os.sep)[:0:-1]
    descriptor, links = os.open(os.sep, _PASSING), 0
    so_far = Path(os.sep)
    try:
        while pending:
            name = pending.pop()
            if name in ("", "."):
                continue
            target = _link(descriptor, name, so_far / name)
            if target is not None:
                links += 1
                if links > _LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
                if target.startswith(os.sep):
                    os.close(descriptor)
                    descriptor, so_far = os.open(os.sep, _PASSING), Path(os.sep)
                pending += target.split(os.sep)[::-1]
                continue
            inner = _enter(descriptor, name, so_far / name, _PASSING, create=create)
            os.close(descriptor)
            descriptor, so_far = inner, (so_far.parent if name == ".." else so_far / name)
        return Folder(os.open(".", _DIRECTORY, dir_fd=descriptor), so_far)
    finally:
        os.close(descriptor)


def _link(parent: int, name: str, path: Path) -> str | None:
    """Where a symbolic link of an owner that we trust points to; None for what is no link."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISLNK(status.st_mode):
        return None
    if status.st_uid not in (0, os.geteuid()):
        raise UntrustedError(errno.EPERM, "it is another user's symbolic link", str(path))
    return os.readlink(name, dir_fd=parent)


def _enter(parent: int, name: str, path: Path, flags: int, *, create: bool) -> int:
    try:
        descriptor = os.open(name, flags, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=parent)
        descriptor = os.open(name, flags, dir_fd=parent)
    status = os.fstat(descriptor)
    if _is_ours(status) or (status.st_mode & stat.S_ISVTX and status.st_uid in (0, os.geteuid())):
        return descriptor
    os.close(descriptor)
    raise UntrustedError(errno.EPERM, "it belongs to or may be changed by another user", str(path))


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & _SHARED


def _fresh_name(prefix: str) -> str:
    return f"{prefix}{os.urandom(8).hex()}"
