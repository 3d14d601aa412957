"""The artifact store: JSON records with files, under content keys, in one folder that processes share.

An entry is a folder ``<first two characters>/<key>`` with ``entry.json`` and the entry's files. It appears by one
rename, so nobody sees half of it, and everything in it is hashed: what does not fit its hash is logged, removed and
made again. Libraries are loaded out of the store, so that nothing is read from or written to a folder that others can
change (``trusted``): what would be kept there is made in a temporary folder of this process.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.native_errors import CompilationError
from inductor_codegen.temporary import sweep_once, temporary_folder
from inductor_codegen.trusted import Folder, open_folder

_LOG = logging.getLogger("inductor_codegen")
_FORMAT = 1
_ENTRY = "entry.json"
_NEW = ".new-"
_DAMAGE = (OSError, ValueError, KeyError, TypeError, RecursionError)
"""What reading an entry raises that is not what was put there (the last one: JSON that is nested too deeply)."""
DEFAULT_MAX_BYTES = 4 << 30
"""Entries beyond this many bytes are dropped, least recently used first."""


def default_folder() -> Path:
    """The platform's cache folder for this package."""
    from platformdirs import user_cache_path  # only where no folder is named

    return user_cache_path("fxstack", appauthor=False) / "codegen"


def content_key(*parts: str | bytes) -> str:
    """A key for content: 40 hexadecimal digits that depend on every part and on where one ends and the next begins."""
    digest = hashlib.blake2b(digest_size=20)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Artifact:
    """One entry, checked. ``metadata`` is JSON data; ``files`` are paths inside the store, by name."""

    key: str
    metadata: Any
    files: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class Kept:
    """What a listing says of an entry: when it was last ``used`` (seconds since the epoch), its ``size`` in bytes."""

    key: str
    used: float
    size: int


Create: TypeAlias = Callable[[Folder], tuple[Any, Mapping[str, bytes]]]
"""Makes an entry's metadata and files, in a scratch folder."""


Beyond: TypeAlias = Callable[[str], "tuple[Any, Mapping[str, bytes]] | None"]
"""Finds an entry's metadata and files somewhere else; None where there is none. Does not raise."""


class ArtifactStore:
    """A folder of artifacts. Safe to use from several threads and processes at once. ``beyond`` is asked once for each
    entry that is not there, which is kept then."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        beyond: Beyond | None = None,
    ) -> None:
        self.folder = default_folder() if folder is None else folder
        self.max_bytes = max_bytes
        self._written = 0
        self._beyond = beyond
        self._asked: set[str] = set()

    def get(self, key: str) -> Artifact | None:
        """The entry under ``key``, or None. A damaged entry is logged and removed, and counts as none."""
        found = self._local(key)
        if found is not None or self._beyond is None or key in self._asked:
            return found
        self._asked.add(key)
        entry = self._beyond(key)
        if entry is None:
            return None
        try:
            return self.put(key, *entry)
        except OSError as error:
            _warn_once(f"the cache folder {self.folder} cannot be used ({_reason(error)}); nothing is kept")
            return None

    def content(self, key: str) -> tuple[Any, dict[str, bytes]] | None:
        """The metadata and files of a whole entry of this folder, or None. Does not count as a use."""
        try:
            with (
                open_folder(self.folder) as top,
                top.folder(_shelf(key)) as shelf,
                shelf.folder(key) as entry,
            ):
                found = _check(key, entry, entry.read(_ENTRY))
                files = {name: entry.read(name) for name in found.files}
                return (found.metadata, files) if _check(key, entry, entry.read(_ENTRY)) else None
        except _DAMAGE:
            return None

    def _local(self, key: str) -> Artifact | None:
        name, path = _shelf(key), self.path(key)
        try:
            with open_folder(self.folder) as top, top.folder(name) as shelf, shelf.folder(key) as entry:
                text = entry.read(_ENTRY)
                try:
                    found = _check(key, entry, text)
                except _DAMAGE as error:
                    _LOG.warning("cache entry %s is damaged (%s); removed, compiling again", path, error)
                else:
                    with contextlib.suppress(OSError):
                        entry.touch(_ENTRY)
                    return found
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            _warn_once(f"the cache folder {self.folder} is not used: {_reason(error)}")
            return None
        self.remove(key)
        return None

    def put(self, key: str, metadata: Any, files: Mapping[str, bytes] | None = None) -> Artifact:
        """Store an entry and return it; one that is there already is replaced.

        OSError if the folder cannot be written, UntrustedError (one of them) if another user could.
        """
        body = _canonical(metadata)
        with self._opened() as top, top.folder(_shelf(key), create=True) as shelf:
            with top.scratch(_NEW) as staging:
                listing = {name: _keep(data, name, staging) for name, data in (files or {}).items()}
                seal = _seal(key, body, listing)
                entry = {"format": _FORMAT, "key": key, "metadata": metadata, "files": listing, "seal": seal}
                staging.write(_ENTRY, json.dumps(entry, separators=(",", ":")).encode())
                self._swap(top, staging.path.name, shelf, key)
            target = shelf.path / key
        self._written += sum(item["size"] for item in listing.values()) + len(body)
        if self._written > self.max_bytes // 16:
            self._written = 0
            self.trim()
        return Artifact(key, json.loads(body), {name: target / name for name in listing})

    def get_or_create(self, key: str, create: Create) -> Artifact:
        """The entry under ``key``; if there is none, ``create(scratch folder)`` makes its metadata and files.

        Under a lock, so that processes that want the same entry at the same time make it once. Where the folder cannot
        be used, or has no room, the entry is made in a temporary folder of this process, and a warning says so.
        CompilationError IND115 where there is no such folder either.
        """
        found = self.get(key)
        if found is not None:
            return found
        try:
            return self._create(key, create)
        except OSError as error:
            _warn_once(f"the cache folder {self.folder} cannot be used ({_reason(error)}); nothing is kept")
        try:
            return process_store()._create(key, create)
        except OSError as error:
            raise no_room(error) from error

    def _create(self, key: str, create: Create) -> Artifact:
        with self._opened() as top, top.locked(f".lock-{_shelf(key)}"):
            found = self.get(key)
            if found is not None:
                return found
            with top.scratch(_NEW) as scratch:
                metadata, files = create(scratch)
                return self.put(key, metadata, files)

    def remove(self, key: str) -> None:
        """Drop an entry if it is there. A library of it that is loaded stays usable."""
        with (
            contextlib.suppress(OSError),
            open_folder(self.folder) as top,
            top.folder(_shelf(key)) as shelf,
            top.scratch(_NEW) as doomed,
        ):
            shelf.move(key, doomed, "entry")

    def clear(self) -> None:
        """Drop every entry."""
        for key in self.keys():
            self.remove(key)

    def size(self) -> int:
        """The bytes that all entries take."""
        return sum(entry.size for entry in self._entries())

    def keys(self) -> list[str]:
        """Every key, most recently used first."""
        return [entry.key for entry in self.entries()]

    def entries(self) -> list[Kept]:
        """Every entry, most recently used first."""
        return sorted(self._entries(), key=lambda entry: (entry.used, entry.size, entry.key), reverse=True)

    def is_whole(self, key: str) -> bool:
        """Whether the entry is what was put there. Does not count as a use."""
        try:
            with (
                open_folder(self.folder) as top,
                top.folder(_shelf(key)) as shelf,
                shelf.folder(key) as entry,
            ):
                _check(key, entry, entry.read(_ENTRY))
        except _DAMAGE:
            return False
        return True

    def trim(self) -> int:
        """Drop the least recently used entries until the rest fit ``max_bytes``; returns the bytes that remain."""
        total = 0
        for entry in self.entries():
            total += entry.size
            if total > self.max_bytes:
                self.remove(entry.key)
                total -= entry.size
        return total

    def _entries(self) -> Iterator[Kept]:
        with contextlib.suppress(OSError), open_folder(self.folder) as top:
            for shelf_name in [name for name in top.names() if _is_key(name)]:
                with contextlib.suppress(OSError), top.folder(shelf_name) as shelf:
                    for key in filter(_is_key, shelf.names()):
                        with contextlib.suppress(OSError), shelf.folder(key) as entry:
                            size = sum(entry.status(name).st_size for name in entry.names())
                            yield Kept(key, entry.status(_ENTRY).st_mtime, size)

    def path(self, key: str) -> Path:
        """The folder of an entry, if it is there."""
        return self.folder / _shelf(key) / key

    def _opened(self) -> Folder:
        """The folder, made if it is missing; what killed processes left there is removed the first time."""
        top = open_folder(self.folder, create=True)
        sweep_once(top, _NEW)
        return top

    def _swap(self, top: Folder, staging: str, shelf: Folder, key: str) -> None:
        """Rename ``staging`` to the entry; whoever comes second wins, and the loser's open files stay valid."""
        for _ in range(8):
            try:
                top.move(staging, shelf, key)
                return
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise
                self.remove(key)
        raise OSError(errno.EBUSY, f"cannot write the cache entry {self.path(key)}")


@contextlib.contextmanager
def temporary_store() -> Iterator[ArtifactStore]:
    """A store in a temporary folder, removed at the end: a loaded library outlives its file.

    CompilationError IND115 where no temporary folder can be used.
    """
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(temporary_folder())
        except OSError as error:
            raise no_room(error) from error
        yield ArtifactStore(folder.path)


def process_store() -> ArtifactStore:
    """The store of this process alone, in a temporary folder that is removed when it ends."""
    return _process_store(os.getpid())


@functools.cache
def _process_store(process: int) -> ArtifactStore:
    stack = contextlib.ExitStack()
    folder = stack.enter_context(temporary_folder())

    def remove() -> None:
        if os.getpid() == process:  # not in a child that was forked
            stack.close()

    atexit.register(remove)
    return ArtifactStore(folder.path)


@functools.cache
def _warn_once(text: str) -> None:
    _LOG.warning("%s", text)


def no_room(error: OSError) -> CompilationError:
    """IND115: there is no folder to compile in."""
    return CompilationError(
        "IND115",
        f"no folder can be written to compile in: {_reason(error)}",
        action="free some space, or name a folder of your own in $TMPDIR; the graph runs eagerly",
    )


def _reason(error: OSError) -> str:
    place = "" if error.filename is None else f"{error.filename}: "
    return f"{place}{error.strerror or error}"


def _shelf(key: str) -> str:
    if not _is_key(key):
        raise ValueError(f"a key consists of hexadecimal digits, got {key!r}")
    return key[:2]


def _is_key(name: str) -> bool:
    return bool(name) and all(c in "0123456789abcdef" for c in name)


def _canonical(metadata: Any) -> str:
    return json.dumps(metadata, sort_keys=True, allow_nan=False, separators=(",", ":"))


def _seal(key: str, body: str, listing: Mapping[str, Any]) -> str:
    return content_key(str(_FORMAT), key, body, _canonical(listing))


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=20).hexdigest()


def _keep(data: bytes, name: str, folder: Folder) -> dict[str, Any]:
    folder.write(name, data)
    return {"size": len(data), "digest": _digest(data)}


def _check(key: str, folder: Folder, text: bytes) -> Artifact:
    entry = json.loads(text)
    if entry["format"] != _FORMAT or entry["key"] != key:
        raise ValueError("it is of another format or key")
    metadata, listing = entry["metadata"], entry["files"]
    if entry["seal"] != _seal(key, _canonical(metadata), listing):
        raise ValueError("its record was changed")
    for name, wanted in listing.items():
        data = folder.read(name)
        if len(data) != wanted["size"] or _digest(data) != wanted["digest"]:
            raise ValueError(f"{name} was changed")
    return Artifact(key, metadata, {name: folder.path / name for name in listing})
