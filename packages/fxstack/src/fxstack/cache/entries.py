"""Entries of a store as contents of a sealed file, and back. Every hash and signature is checked before one is kept."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import torch

from fxstack.__about__ import __version__
from fxstack.cache.errors import CacheError, no_word
from fxstack_artifact.container.hashing import BLAKE3
from fxstack_artifact.container.layout import is_name
from fxstack_artifact.container.manifest import Manifest, content_of, system, torch_version, version_for
from fxstack_artifact.container.reading import Archive
from fxstack_artifact.container.signing import KeyFiles
from fxstack_artifact.container.writing import write_sealed
from inductor_codegen.cache import ArtifactStore
from inductor_codegen.runtime import ENTRY_ABI

FORMAT = "fxstack cache"
_METADATA = "metadata.json"
Found: TypeAlias = dict[str, tuple[Any, dict[str, bytes]]]
"""Metadata and files by key."""


def sealed(
    path: Path, store: ArtifactStore, keys: Iterable[str], sign_with: str | os.PathLike[str] | None
) -> list[str]:
    """Write the entries of these keys that are whole to a sealed file; their keys."""
    contents: dict[str, bytes] = {}
    written = []
    for key in keys:
        found = store.content(key)
        if found is None:
            continue
        metadata, files = found
        names = {f"{key}/files/{name}": data for name, data in files.items()}
        if all(map(is_name, names)):
            contents[f"{key}/{_METADATA}"] = json.dumps(metadata, separators=(",", ":")).encode()
            contents.update(names)
            written.append(key)
    manifest = Manifest(
        {"fxstack": __version__, "torch": torch.__version__},
        ENTRY_ABI,
        torch_version(torch.__version__),
        system(),
        (),
        {name: content_of(data, BLAKE3) for name, data in contents.items()},
        BLAKE3,
        version_for(BLAKE3),
        format=FORMAT,
    )
    write_sealed(path, manifest, contents, sign_with)
    return written


def unsealed(archive: Archive, signed_by: KeyFiles | None, trusted: bool) -> Found:
    """What a sealed file holds. CacheError FXS701 without a key or the user's word, FXS702 for entries that this
    installation cannot use, FXS703; ArtifactError FXA1xx where hashes or the signature do not fit."""
    if signed_by is not None:
        archive.check_signature(signed_by)
    elif not trusted:
        raise no_word()
    manifest = archive.manifest
    ours = (ENTRY_ABI, torch_version(torch.__version__), system())
    if (manifest.entry_abi, manifest.torch, manifest.system) != ours:
        raise CacheError(
            "FXS702",
            f"the entries are of version {manifest.entry_abi}, for torch {manifest.torch} on {manifest.system}; this "
            f"is version {ours[0]}, torch {ours[1]} on {ours[2]}",
            action="compile here, or export the cache of such a machine",
        )
    return _entries(archive.contents(lambda name: True))


def _entries(copies: Mapping[str, bytes]) -> Found:
    found: Found = {}
    for name, data in copies.items():
        match name.split("/"):
            case [key, file] if file == _METADATA and _is_key(key):
                found.setdefault(key, (None, {}))
                found[key] = (_json(data), found[key][1])
            case [key, "files", file] if _is_key(key) and f"{key}/{_METADATA}" in copies:
                found.setdefault(key, (None, {}))[1][file] = data
            case _:
                raise CacheError("FXS703", f"{name} is no part of a cache", action="export it again")
    return found


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (RecursionError, ValueError) as error:
        raise CacheError(
            "FXS703", "the metadata of an entry cannot be read", action="export it again"
        ) from error


def _is_key(name: str) -> bool:
    return bool(name) and all(c in "0123456789abcdef" for c in name)
