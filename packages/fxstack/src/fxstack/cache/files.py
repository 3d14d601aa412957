"""``export`` and ``import_``: the cache as one file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from fxstack.cache.entries import FORMAT, sealed, unsealed
from fxstack.options import default_cache_dir
from fxstack_artifact.container.reading import open_archive
from fxstack_artifact.container.signing import KeyFiles
from inductor_codegen.cache import ArtifactStore


def export(
    path: str | os.PathLike[str],
    *,
    keys: Iterable[str] | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    sign_with: str | os.PathLike[str] | None = None,
) -> list[str]:
    """Write what was compiled here to one file, which ``import_`` takes elsewhere; the keys of what was written.

    ``keys``: only these. ``sign_with``: a file with a private key (``fxstack.make_key``). An entry that is damaged is
    left out. OSError if the file cannot be written; ArtifactError FXA114 without a key.
    """
    store = ArtifactStore(default_cache_dir() if cache_dir is None else Path(cache_dir))
    return sealed(Path(path), store, store.keys() if keys is None else keys, sign_with)


def import_(
    path: str | os.PathLike[str],
    *,
    signed_by: KeyFiles | None = None,
    trusted: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
) -> list[str]:
    """Take what is in a file that ``export`` wrote into the cache; the keys of what was not there before.

    The file holds native code that later compilations run. So either ``signed_by`` names a file with the public key
    that must have signed it (or several), or ``trusted=True`` says that it comes from nobody else. All of it is checked
    before any is kept; nothing is executed.

    CacheError FXS701 to FXS703, ArtifactError FXA1xx for a damaged or changed file, OSError.
    """
    store = ArtifactStore(default_cache_dir() if cache_dir is None else Path(cache_dir))
    found = unsealed(open_archive(path, copy=True, format=FORMAT), signed_by, trusted)
    new = [key for key in found if not store.is_whole(key)]
    for key in new:
        store.put(key, *found[key])
    store.trim()
    return new
