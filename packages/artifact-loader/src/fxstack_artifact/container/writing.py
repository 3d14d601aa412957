"""Writing a sealed file: contents one after the other, at once in the place of whatever was there."""

from __future__ import annotations

import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from fxstack_artifact.container import signing
from fxstack_artifact.container.hashing import BLAKE3, digest, digests, fits, pieces_of
from fxstack_artifact.container.layout import LARGEST_NARROW, Entry, local_header, tail
from fxstack_artifact.container.manifest import NAME, Content, Manifest, version_for
from fxstack_artifact.container.reading import Archive, open_archive
from fxstack_artifact.errors import changed

_CHUNK = 16 << 20


def write_sealed(
    path: Path,
    manifest: Manifest,
    contents: Mapping[str, bytes | memoryview],
    sign_with: str | os.PathLike[str] | None = None,
) -> None:
    """The file with these contents: a reader sees the old file or the new one.

    ``sign_with``: a file with a private key. OSError if it cannot be written; ArtifactError FXA114 without a key.
    """
    first = manifest.to_bytes()
    everything = {NAME: first, **contents}
    signature = b"" if sign_with is None else signing.signature_of(first, sign_with)
    if signature:
        everything[signing.NAME] = signature
    wide = sum(map(len, everything.values())) > LARGEST_NARROW

    def write(file: BinaryIO) -> None:
        entries: list[Entry] = []
        for name, data in everything.items():
            entries.append(Entry(name, len(data), zlib.crc32(data), file.tell(), wide))
            file.write(local_header(entries[-1]))
            file.write(data)
        file.write(tail(entries, file.tell(), digest(first + signature)))

    _replace(path, write)


def write_whole(path: Path, data: bytes) -> None:
    """A file with this content: a reader sees the old file or the new one. OSError if it cannot be written."""
    _replace(path, lambda file: file.write(data))


def sign(path: str | os.PathLike[str], key: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Sign the artifact at ``path`` with the private key in the file ``key``; another signature is replaced.

    ArtifactError FXA1xx if the file is refused: what is signed was whole. FXA114 without a key.
    """
    archive = open_archive(path) if format is None else open_archive(path, format=format)
    contents = {name: archive.view(name) for name in archive.entries if name in archive.manifest.contents}
    write_sealed(Path(path), _manifest_to_sign(archive), contents, key)


def _manifest_to_sign(archive: Archive) -> Manifest:
    """The archive's, with BLAKE3 of the contents that its own hashes were checked against."""
    manifest = archive.manifest
    if manifest.kind == BLAKE3:
        archive.contents()
        return manifest
    made = {name: _signable(archive, name, content) for name, content in manifest.contents.items()}
    return manifest._replace(contents=made, kind=BLAKE3, version=version_for(BLAKE3, manifest.targets))


def _signable(archive: Archive, name: str, content: Content) -> Content:
    """What is hashed is what was checked: a copy of each piece, as another process may write to the file."""
    found, pieces = [], pieces_of(archive.view(name))
    for i, piece in enumerate(pieces):
        data = bytes(piece)
        if len(content.digests) != len(pieces) or not fits(data, [content.digests[i]], archive.manifest.kind):
            raise changed(f"{name} in the file")
        found += digests(data, BLAKE3)
    return Content(content.size, tuple(found))


def _replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """``write`` a file beside ``path`` and move it there. An OSError names ``path``, whatever file it was about."""
    try:
        _write_beside(path, write)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _write_beside(path: Path, write: Callable[[BinaryIO], object]) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            write(file)
        if path.exists():
            shutil.copymode(path, name)
        else:
            os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
