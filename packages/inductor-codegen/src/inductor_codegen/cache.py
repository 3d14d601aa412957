"""The artifact store: JSON records with files, under content keys, in one folder that processes share.

An entry is a folder ``<first two characters>/<key>`` with ``entry.json`` and the entry's files. It appears by one
rename, so nobody sees half of it, and everything in it is hashed: what does not fit its hash is logged, removed and
made again. The store's folder must belong to the user and be writable by nobody else: libraries are loaded out of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock
from platformdirs import user_cache_path

_LOG = logging.getLogger("inductor_codegen")
_FORMAT = 1
_ENTRY = "entry.json"
DEFAULT_MAX_BYTES = 4 << 30
"""Entries beyond this many bytes are dropped, least recently used first."""


def default_folder() -> Path:
    """The platform's cache folder for this package."""
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


class ArtifactStore:
    """A folder of artifacts. Safe to use from several threads and processes at once."""

    def __init__(self, folder: Path | None = None, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.folder = default_folder() if folder is None else folder
        self.max_bytes = max_bytes
        self._written = 0
        self._usable: bool | None = None

    def get(self, key: str) -> Artifact | None:
        """The entry under ``key``, or None. A damaged entry is logged and removed, and counts as none."""
        path = self._path(key)
        if not self._trusted():
            return None
        try:
            text = (path / _ENTRY).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            _LOG.warning("cache entry %s cannot be read (%s); compiling again", path, error)
            return None
        try:
            found = _check(key, path, text)
        except (OSError, ValueError, KeyError, TypeError) as error:
            _LOG.warning("cache entry %s is damaged (%s); removed, compiling again", path, error)
            self.remove(key)
            return None
        with contextlib.suppress(OSError):
            os.utime(path / _ENTRY)
        return found

    def put(self, key: str, metadata: Any, files: Mapping[str, bytes | Path] | None = None) -> Artifact:
        """Store an entry and return it; one that is there already is replaced. A file given as a path is copied.

        OSError if the folder cannot be written.
        """
        target = self._path(key)
        self._prepare()
        staging = Path(tempfile.mkdtemp(prefix=".new-", dir=self.folder))
        try:
            listing = {name: _copy(content, staging / name) for name, content in (files or {}).items()}
            body = _canonical(metadata)
            seal = _seal(key, body, listing)
            entry = {"format": _FORMAT, "key": key, "metadata": metadata, "files": listing, "seal": seal}
            (staging / _ENTRY).write_text(json.dumps(entry, separators=(",", ":")))
            self._written += sum(item["size"] for item in listing.values()) + len(body)
            target.parent.mkdir(exist_ok=True)
            self._swap(staging, target)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        if self._written > self.max_bytes // 16:
            self._written = 0
            self.trim()
        return Artifact(key, json.loads(body), {name: target / name for name in listing})

    def get_or_create(
        self, key: str, create: Callable[[Path], tuple[Any, Mapping[str, bytes | Path]]]
    ) -> Artifact:
        """The entry under ``key``; if there is none, ``create(scratch folder)`` makes its metadata and files.

        Under a lock, so that processes that want the same entry at the same time make it once. Where the folder
        cannot be used, the entry is made in a temporary folder of this process instead, and a warning says so.
        """
        found = self.get(key)
        if found is not None:
            return found
        try:
            self._prepare()
        except OSError as error:
            _LOG.warning("the cache folder %s cannot be used (%s); nothing is kept", self.folder, error)
            return _make_unkept(key, create)
        with FileLock(self.folder / f".lock-{key[:2]}"):
            found = self.get(key)
            if found is not None:
                return found
            with tempfile.TemporaryDirectory(prefix="fxstack-") as scratch:
                metadata, files = create(Path(scratch))
                return self.put(key, metadata, files)

    def remove(self, key: str) -> None:
        """Drop an entry if it is there. A library of it that is loaded stays usable."""
        if not self._path(key).exists():
            return
        with (
            contextlib.suppress(OSError),
            tempfile.TemporaryDirectory(prefix=".old-", dir=self.folder) as doomed,
        ):
            os.replace(self._path(key), Path(doomed) / "entry")

    def keys(self) -> list[str]:
        """Every key, most recently used first."""
        return [path.parent.name for _, _, path in sorted(self._entries(), reverse=True)]

    def trim(self) -> int:
        """Drop the least recently used entries until the rest fit ``max_bytes``; returns the bytes that remain."""
        total = 0
        for _, size, path in sorted(self._entries(), reverse=True):
            total += size
            if total > self.max_bytes:
                self.remove(path.parent.name)
                total -= size
        return total

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        for path in self.folder.glob(f"[0-9a-f][0-9a-f]/*/{_ENTRY}"):
            with contextlib.suppress(OSError):
                size = sum(item.stat().st_size for item in path.parent.iterdir())
                yield path.stat().st_mtime, size, path

    def _path(self, key: str) -> Path:
        if not key or not all(c in "0123456789abcdef" for c in key):
            raise ValueError(f"a key consists of hexadecimal digits, got {key!r}")
        return self.folder / key[:2] / key

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._usable = None
        if not self._trusted():
            raise PermissionError(f"{self.folder} belongs to or may be changed by another user")

    def _trusted(self) -> bool:
        if self._usable is None:
            try:
                status = self.folder.stat()
            except OSError:
                return False
            foreign = hasattr(os, "getuid") and status.st_uid != os.getuid()
            shared = bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
            self._usable = not foreign and not shared
            if not self._usable:
                _LOG.warning(
                    "the cache folder %s may be changed by another user and is not used", self.folder
                )
        return self._usable

    def _swap(self, staging: Path, target: Path) -> None:
        """Rename ``staging`` to ``target``; whoever comes second wins, and the loser's open files stay valid."""
        for _ in range(8):
            try:
                os.replace(staging, target)
                return
            except OSError:
                self.remove(target.name)
        raise OSError(f"cannot write the cache entry {target}")


def _canonical(metadata: Any) -> str:
    return json.dumps(metadata, sort_keys=True, allow_nan=False, separators=(",", ":"))


def _seal(key: str, body: str, listing: Mapping[str, Any]) -> str:
    return content_key(str(_FORMAT), key, body, _canonical(listing))


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=20).hexdigest()


def _copy(content: bytes | Path, target: Path) -> dict[str, Any]:
    data = content.read_bytes() if isinstance(content, Path) else content
    target.write_bytes(data)
    return {"size": len(data), "digest": _digest(data)}


def _check(key: str, path: Path, text: bytes) -> Artifact:
    entry = json.loads(text)
    if entry["format"] != _FORMAT or entry["key"] != key:
        raise ValueError("it is of another format or key")
    metadata, listing = entry["metadata"], entry["files"]
    if entry["seal"] != _seal(key, _canonical(metadata), listing):
        raise ValueError("its record was changed")
    for name, wanted in listing.items():
        data = (path / name).read_bytes()
        if len(data) != wanted["size"] or _digest(data) != wanted["digest"]:
            raise ValueError(f"{name} was changed")
    return Artifact(key, metadata, {name: path / name for name in listing})


def _make_unkept(key: str, create: Callable[[Path], tuple[Any, Mapping[str, bytes | Path]]]) -> Artifact:
    folder = Path(tempfile.mkdtemp(prefix="fxstack-"))
    metadata, files = create(folder)
    for name, content in files.items():
        if content != folder / name:
            _copy(content, folder / name)
    return Artifact(key, metadata, {name: folder / name for name in files})
