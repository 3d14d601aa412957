"""``push``, ``pull`` and ``verify``: entries between the local cache and a remote one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.cache.errors import CacheError
from fxstack.cache.remote import Listed, Remote, refused
from fxstack.options import Options, default_cache_dir
from fxstack_artifact.container.signing import KeyFiles
from inductor_codegen.cache import ArtifactStore


@dataclass(frozen=True, slots=True)
class Moved:
    """What was copied (``keys``, ``bytes``), ``refused`` (key to reason) and ``dropped`` because of size or age."""

    keys: Sequence[str]
    bytes: int
    refused: Mapping[str, str]
    dropped: Sequence[str] = ()


Each = Callable[[Sequence[str]], Any]
"""Wraps the keys that are worked on, to show progress."""


def push(
    url: str,
    *,
    sign_with: str | os.PathLike[str] | None = None,
    max_bytes: int | None = None,
    max_age: float | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    each: Each = iter,
) -> Moved:
    """Copy what the cache at ``url`` does not have to it, signed with the private key in ``sign_with``.

    Then entries that were written more than ``max_age`` seconds ago are dropped there, and the oldest until the rest
    has ``max_bytes``. CacheError FXS704, FXS705; ArtifactError FXA114 without a key.
    """
    store, remote = _store(cache_dir), Remote(url, storage_options=storage_options)
    with _told(url):
        there = {entry.key for entry in remote.entries()}
        missing = [entry.key for entry in store.entries() if entry.key not in there]
        sizes = {key: remote.store(key, store, sign_with) for key in each(missing)}
        doomed = _too_much(remote.entries(), max_bytes, max_age)
        remote.drop(doomed)
    written = [key for key, size in sizes.items() if size]
    return Moved(written, sum(sizes.values()), {}, [entry.key for entry in doomed])


def pull(
    url: str,
    *,
    signed_by: KeyFiles | None = None,
    trusted: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    each: Each = iter,
) -> Moved:
    """Copy what the cache at ``url`` has and the local one has not, each entry checked before it is kept.

    ``signed_by``, ``trusted``: as for ``import_``. An entry that is refused is left there and reported. CacheError
    FXS701, FXS704, FXS705 (a place that cannot be listed, as most web servers: use the option ``remote_cache``).
    """
    store = _store(cache_dir)
    remote = Remote(url, signed_by=signed_by, trusted=trusted, storage_options=storage_options)
    remote.check_word()
    with _told(url):
        listed = {entry.key: entry for entry in remote.entries()}
        kept: dict[str, int] = {}
        bad: dict[str, str] = {}
        for key in each([key for key in listed if not store.is_whole(key)]):
            found = _tried(remote, key, bad)
            if found is not None:
                store.put(key, *found)
                kept[key] = _size(listed[key], found)
    store.trim()
    return Moved(list(kept), sum(kept.values()), bad)


def verify(
    url: str,
    *,
    signed_by: KeyFiles | None = None,
    trusted: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    each: Each = iter,
) -> Moved:
    """Check every entry of the cache at ``url`` as ``pull`` would, and keep none. ``refused`` has those that are not
    taken; ``keys`` the others. Entries for another torch or system are refused too, with FXS702."""
    remote = Remote(url, signed_by=signed_by, trusted=trusted, storage_options=storage_options)
    remote.check_word()
    bad: dict[str, str] = {}
    with _told(url):
        listed = {entry.key: entry for entry in remote.entries()}
        tried = ((key, _tried(remote, key, bad)) for key in each(list(listed)))
        good = {key: _size(listed[key], found) for key, found in tried if found is not None}
    return Moved(list(good), sum(good.values()), bad)


def opened_store(options: Options) -> ArtifactStore:
    """The local store of a compilation, which asks the remote cache of the options for what it has not."""
    assert options.remote_cache is not None
    remote = Remote(
        options.remote_cache, signed_by=options.remote_cache_key, trusted=options.remote_cache_trusted
    )
    remote.check_word()
    return ArtifactStore(options.cache_dir, beyond=remote.find)


def _tried(remote: Remote, key: str, bad: dict[str, str]) -> tuple[Any, Mapping[str, bytes]] | None:
    try:
        return remote.fetch(key)
    except Exception as error:
        if refused(error) is None:
            raise
        bad[key] = str(error)
        return None


def _size(listed: Listed, entry: tuple[Any, Mapping[str, bytes]]) -> int:
    """The bytes of an entry there; of its files alone where the place tells no sizes, as web servers do not."""
    return listed.size or sum(map(len, entry[1].values()))


def _too_much(entries: Sequence[Listed], max_bytes: int | None, max_age: float | None) -> list[Listed]:
    since = None if max_age is None else time.time() - max_age
    doomed, kept = [], 0
    for entry in entries:
        kept += entry.size
        if (max_bytes is not None and kept > max_bytes) or (since is not None and entry.changed < since):
            doomed.append(entry)
            kept -= entry.size
    return doomed


def _store(cache_dir: str | os.PathLike[str] | None) -> ArtifactStore:
    return ArtifactStore(default_cache_dir() if cache_dir is None else Path(cache_dir))


class _told:
    """What a place raises becomes CacheError FXS705."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and refused(error) is None:
            raise CacheError(
                "FXS705",
                f"{self._url} cannot be read or written: {type(error).__name__}: {error}",
                action="check the address and its rights",
            ) from error
