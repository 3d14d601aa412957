"""Opening a file: it is mapped, and nothing of it is given out before all of it has been checked."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from fxstack_artifact.container.hashing import digest, fits
from fxstack_artifact.container.layout import (
    END_LENGTH,
    Entry,
    directory,
    local_header,
    tail,
)
from fxstack_artifact.container.manifest import NAME, Manifest, read_manifest
from fxstack_artifact.errors import ArtifactError, damaged


class Archive(NamedTuple):
    """A file whose structure and manifest are right; ``contents`` checks the rest."""

    path: Path
    buffer: mmap.mmap | bytearray
    manifest: Manifest
    entries: Mapping[str, Entry]

    def contents(self, wanted: Callable[[str], bool] = lambda name: False) -> dict[str, bytes]:
        """Check every content against its hash; copies of those that are ``wanted``, made before they were checked.

        ArtifactError FXA103 names the first one that was changed.
        """
        copies: dict[str, bytes] = {}
        for name, stated in self.manifest.contents.items():
            data: bytes | memoryview = self._view(name)
            if wanted(name):
                data = copies[name] = bytes(data)
            if not fits(data, stated.sha256):
                raise ArtifactError("FXA103", f"{name} in the artifact was changed", "copy or make it again")
        return copies

    def place(self, name: str) -> tuple[int, int]:
        """Where a content begins in ``buffer``, and its size. ArtifactError FXA102 if there is none."""
        self._view(name)
        return self.entries[name].start, self.entries[name].size

    def _view(self, name: str) -> memoryview:
        entry = self.entries.get(name)
        if entry is None:
            raise damaged(f"{name} is missing")
        return memoryview(self.buffer)[entry.start : entry.start + entry.size]


def open_archive(path: str | os.PathLike[str], *, copy: bool = False) -> Archive:
    """The file at ``path``, mapped privately or, with ``copy``, read.

    OSError if it cannot be opened; ArtifactError FXA101 for another file, FXA102 for a damaged or cut one, FXA103 for a
    changed manifest, FXA104 for another version of the format. No content is checked yet but the manifest.
    """
    place = Path(path)
    buffer = _buffer(place, copy)
    view = memoryview(buffer)
    if bytes(view[:4]) != b"PK\3\4":
        raise ArtifactError("FXA101", f"{place} is no artifact of fxstack")
    try:
        entries, stated = directory(view)
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        reason = error if type(error) is ValueError else "its directory is broken"
        raise damaged(f"{place} was cut off or changed ({reason})") from error
    if not entries or entries[0].name != NAME:
        raise ArtifactError("FXA101", f"{place} is a zip file and no artifact of fxstack")
    _check_layout(view, entries, stated)
    first = entries[0]
    content = bytes(view[first.start : first.start + first.size])
    if digest(content) != stated:
        raise ArtifactError("FXA103", "the manifest of the artifact was changed", "copy or make it again")
    manifest = read_manifest(content)
    found = {entry.name: entry for entry in entries}
    sizes = {name: entry.size for name, entry in found.items() if name != NAME}
    if sizes != {name: content.size for name, content in manifest.contents.items()}:
        raise damaged("its manifest lists other contents than it has")
    return Archive(place, buffer, manifest, found)


def _buffer(place: Path, copy: bool) -> mmap.mmap | bytearray:
    with open(place, "rb") as file:
        if copy:
            return bytearray(file.read())
        try:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        except ValueError as error:
            raise ArtifactError("FXA101", f"{place} is empty") from error


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
