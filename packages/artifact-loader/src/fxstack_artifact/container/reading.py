"""Opening a file: it is mapped, and nothing of it is given out before all of it has been checked."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

from fxstack_artifact.container import remembered as notes
from fxstack_artifact.container import signing
from fxstack_artifact.container.hashing import CHECKSUM, digest, fits, is_of_version_1
from fxstack_artifact.container.layout import (
    END_LENGTH,
    Entry,
    directory,
    local_header,
    tail,
)
from fxstack_artifact.container.manifest import FORMAT, NAME, Manifest, read_manifest
from fxstack_artifact.errors import ArtifactError, changed, damaged


class Archive(NamedTuple):
    """A file whose structure and manifest are right; ``contents`` checks the rest."""

    path: Path
    buffer: mmap.mmap | bytearray
    manifest: Manifest
    entries: Mapping[str, Entry]
    state: list[int]

    def contents(
        self,
        wanted: Callable[[str], bool] = lambda name: False,
        *,
        remembered: Callable[[str], bool] | None = None,
    ) -> dict[str, bytes]:
        """Check every content against its hash; copies of those that are ``wanted``, made before they were checked.

        ``remembered``: contents that need not be checked again if the whole file was before, in its present state
        (``remembered.py``). ArtifactError FXA103 names the first one that was changed.
        """
        copies: dict[str, bytes] = {}
        known = remembered is not None and notes.was_checked(self.state, self.manifest_bytes())
        for name, stated in self.manifest.contents.items():
            if known and remembered is not None and remembered(name):
                continue
            data: bytes | memoryview = self.view(name)
            if wanted(name):
                data = copies[name] = bytes(data)
            if not fits(data, stated.digests, self.manifest.kind):
                raise changed(f"{name} in the file")
        if remembered is not None and not known and self.state:
            notes.note(self.state, self.manifest_bytes())
        return copies

    def check_signature(self, keys: signing.KeyFiles) -> str:
        """The key of those in the files ``keys`` that signed it. ArtifactError FXA111 to FXA114 if none did."""
        return signing.check_signature(self.manifest_bytes(), self.signature(), keys)

    def manifest_bytes(self) -> bytes:
        """The manifest as it is in the file."""
        return bytes(self.view(NAME))

    def signature(self) -> bytes | None:
        """The content of the signature's entry, if there is one."""
        return bytes(self.view(signing.NAME)) if signing.NAME in self.entries else None

    def place(self, name: str) -> tuple[int, int]:
        """Where a content begins in ``buffer``, and its size. ArtifactError FXA102 if there is none."""
        self.view(name)
        return self.entries[name].start, self.entries[name].size

    def view(self, name: str) -> memoryview:
        """A content where it is, unchecked. ArtifactError FXA102 if there is none."""
        entry = self.entries.get(name)
        if entry is None:
            raise damaged(f"{name} is missing")
        return memoryview(self.buffer)[entry.start : entry.start + entry.size]


def open_archive(path: str | os.PathLike[str], *, copy: bool = False, format: str = FORMAT) -> Archive:
    """The sealed file at ``path``, mapped privately or, with ``copy``, read.

    OSError if it cannot be opened; ArtifactError FXA101 for another file, FXA102 for a damaged or cut one, FXA103 for a
    changed manifest, FXA104 for another version of the format, FXA113 for a signature of checksums. No content is
    checked yet but the manifest.
    """
    place = Path(path)
    with open(place, "rb") as file:
        state = notes.state_of(file.fileno())
        return archive_of(_buffer(file, copy), place, format=format, state=state)


def archive_of(
    buffer: mmap.mmap | bytearray, place: Path, *, format: str = FORMAT, state: list[int] | None = None
) -> Archive:
    """As ``open_archive``, for the content of a file that ``place`` names in errors."""
    view = memoryview(buffer)
    if bytes(view[:4]) != b"PK\3\4":
        raise ArtifactError("FXA101", f"{place} is no {format}")
    try:
        entries, stated = directory(view)
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        reason = error if type(error) is ValueError else "its directory is broken"
        raise damaged(f"{place} was cut off or changed ({reason})") from error
    if not entries or entries[0].name != NAME:
        raise ArtifactError("FXA101", f"{place} is a zip file and no {format}")
    _check_layout(view, entries, stated)
    found = {entry.name: entry for entry in entries}
    archive = Archive(place, buffer, None, found, state or [])  # type: ignore[arg-type]
    if signing.NAME in found and entries[-1].name != signing.NAME:
        raise damaged("its signature is not at its end")
    content = archive.manifest_bytes()
    if digest(content + (archive.signature() or b"")) != stated:
        if is_of_version_1(content, stated):
            read_manifest(content, format)  # which tells of the version
        raise changed("the manifest of the file")
    manifest = read_manifest(content, format)
    if signing.NAME in found and manifest.kind == CHECKSUM:
        raise ArtifactError(
            "FXA113", "it is signed, and has checksums, which show no intent", "sign it again"
        )
    sizes = {name: entry.size for name, entry in found.items() if name not in (NAME, signing.NAME)}
    if sizes != {name: content.size for name, content in manifest.contents.items()}:
        raise damaged("its manifest lists other contents than it has")
    return archive._replace(manifest=manifest)


def _buffer(file: BinaryIO, copy: bool) -> mmap.mmap | bytearray:
    if copy:
        return bytearray(file.read())
    try:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except ValueError as error:
        raise ArtifactError("FXA101", f"{file.name} is empty") from error


def _check_layout(view: memoryview, entries: list[Entry], stated: str) -> None:
    """Whether every byte that is no content is what it must be."""
    offset = 0
    names = set()
    for entry in entries:
        header = local_header(entry)
        fits_here = entry.offset == offset and view[offset : offset + len(header)] == header
        if not fits_here or entry.name in names:
            raise damaged(f"the header of {entry.name} was changed")
        names.add(entry.name)
        offset += len(header) + entry.size
    if offset > len(view) - END_LENGTH or view[offset:] != tail(entries, offset, stated):
        raise damaged("its directory was changed")
