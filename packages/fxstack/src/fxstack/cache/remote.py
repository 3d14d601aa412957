"""A cache at an address of fsspec's: a folder, ``memory://``, ``s3://``, ``https://`` (which is only read), ...

Each entry is a sealed file of its own, ``<first two characters>/<key>.fxc``, that names its key: a signed one is not
taken for another. Who can write to such a place can run code on every machine that reads it. So entries are taken if
the right key signed them, or if the user says that the place is trusted, and never otherwise.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from fxstack.cache.entries import FORMAT, sealed, unsealed
from fxstack.cache.errors import CacheError, no_word
from fxstack_artifact import ArtifactError
from fxstack_artifact.container.reading import archive_of
from fxstack_artifact.container.signing import KeyFiles
from inductor_codegen.cache import ArtifactStore

_LOG = logging.getLogger("fxstack")
_ENDING = ".fxc"
LARGEST_ENTRY = 1 << 30
"""Bytes of an entry; what is larger is not taken."""


class Listed(NamedTuple):
    """An entry as the place lists it; ``changed`` in seconds since the epoch."""

    key: str
    path: str
    size: int
    changed: float


class Remote:
    """The cache at ``url``. ``signed_by`` or ``trusted``: on whose word its entries are taken; neither is needed to
    write there. CacheError FXS704 without fsspec, or what it needs for that kind of address."""

    def __init__(
        self,
        url: str,
        *,
        signed_by: KeyFiles | None = None,
        trusted: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.url = url
        self._signed_by, self._trusted = signed_by, trusted
        try:
            import fsspec  # type: ignore[import-untyped]  # an optional package

            self._files, self._root = fsspec.core.url_to_fs(url, **(storage_options or {}))
        except (ImportError, ValueError) as error:
            raise CacheError(
                "FXS704",
                f"{url} cannot be used: {error}",
                action="pip install 'fxstack[remote]', or what it names",
            ) from error
        self._root = self._root.rstrip("/")

    def check_word(self) -> None:
        """CacheError FXS701 if nobody said whom to trust."""
        if self._signed_by is None and not self._trusted:
            raise no_word()

    def fetch(self, key: str) -> tuple[Any, Mapping[str, bytes]] | None:
        """The entry under ``key``, None if there is none. CacheError, ArtifactError for one that is refused; whatever
        the place raises."""
        self.check_word()
        self._files.invalidate_cache()
        try:
            with self._files.open(self._path(key), "rb") as file:
                data = bytearray(file.read(LARGEST_ENTRY + 1))
        except FileNotFoundError as error:
            if _is_no_answer(error):
                raise
            return None
        place = Path(f"{key}{_ENDING}")
        if len(data) > LARGEST_ENTRY:
            raise CacheError("FXS703", f"{place} is larger than an entry can be", action="remove it there")
        found = unsealed(archive_of(data, place, format=FORMAT), self._signed_by, self._trusted)
        if list(found) != [key]:
            raise CacheError("FXS703", f"{place} holds another entry", action="remove it there")
        return found[key]

    def find(self, key: str) -> tuple[Any, Mapping[str, bytes]] | None:
        """As ``fetch``; what goes wrong is a warning, and there is none."""
        try:
            return self.fetch(key)
        except Exception as error:  # the network, a server, a file system: compiling goes on without them
            _LOG.warning("%s from the cache %s is not used: %s", key, self.url, error)
            return None

    def store(self, key: str, local: ArtifactStore, sign_with: str | os.PathLike[str] | None) -> int:
        """Write an entry of a local store; its bytes, 0 if it is not whole."""
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "entry"
            if not sealed(made, local, [key], sign_with):
                return 0
            data = made.read_bytes()
        path = self._path(key)
        self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
        if "file" in (
            self._files.protocol if isinstance(self._files.protocol, tuple) else (self._files.protocol,)
        ):
            beside = f"{path}.{os.getpid()}.new"
            self._files.pipe_file(beside, data)
            self._files.mv(beside, path)
        else:  # object stores show an object when it is whole
            self._files.pipe_file(path, data)
        return len(data)

    def entries(self) -> list[Listed]:
        """What is there now, what was written last first; fsspec by itself tells what it saw when it looked last."""
        self._files.invalidate_cache()
        try:
            found: Mapping[str, Any] = self._files.find(self._root, detail=True)
        except FileNotFoundError:
            return []
        listed = []
        for path, info in found.items():
            name = path.rpartition("/")[2]
            if name.endswith(_ENDING):
                key = name.removesuffix(_ENDING)
                listed.append(Listed(key, path, int(info.get("size") or 0), _changed(info)))
        return sorted(listed, key=lambda entry: (entry.changed, entry.key), reverse=True)

    def drop(self, entries: Sequence[Listed]) -> None:
        """Remove entries there."""
        for entry in entries:
            self._files.rm_file(entry.path)

    def _path(self, key: str) -> str:
        return f"{self._root}/{key[:2]}/{key}{_ENDING}"


def refused(error: Exception) -> str | None:
    """The code of an entry that is refused, None for what the place raises."""
    return error.code if isinstance(error, (ArtifactError, CacheError)) else None


def _is_no_answer(error: FileNotFoundError) -> bool:
    """Whether a file is said to be missing because a server could not be asked: what it answers has a status."""
    cause = error.__cause__
    return cause is not None and not isinstance(cause, FileNotFoundError) and not hasattr(cause, "status")


def _changed(info: Mapping[str, Any]) -> float:
    for name in ("mtime", "LastModified", "last_modified", "created"):
        value = info.get(name)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, (int, float)):
            return float(value)
    return time.time()
