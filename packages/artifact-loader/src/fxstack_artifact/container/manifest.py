"""The manifest: what the file is, what it requires, and the hash of each of its contents."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fxstack_artifact.container.hashing import BLAKE3, CHECKSUM, digests
from fxstack_artifact.errors import ArtifactError, damaged

FORMAT = "fxstack artifact"
VERSION = (2, 2)
"""Of the format that is described here. A file of the same major version and no later minor one is read; one is written
with the first version that has what it needs."""
_CHECKSUMS_SINCE, _BOTH_SINCE = (2, 1), (2, 2)
_GPU_PREFIX = "sm_"
NAME = "manifest.json"


class Content(NamedTuple):
    """Size, and hashes of the pieces, of one entry."""

    size: int
    digests: tuple[str, ...]


def content_of(data: bytes | memoryview, kind: str) -> Content:
    """What a manifest says of a content by hashes of this kind."""
    return Content(len(data), tuple(digests(data, kind)))


def is_of_gpu(target: str) -> bool:
    """Whether a target is an architecture of GPUs, and not a level of processors."""
    return target.startswith(_GPU_PREFIX)


def has_both(targets: Sequence[str]) -> bool:
    """Whether these are levels of processors and architectures of GPUs."""
    return len(set(map(is_of_gpu, targets))) > 1


def version_for(kind: str, targets: Sequence[str] = ()) -> tuple[int, int]:
    """The first version of the format whose files have hashes of this kind, and targets of these kinds."""
    if has_both(targets):
        return _BOTH_SINCE
    return _CHECKSUMS_SINCE if kind == CHECKSUM else (VERSION[0], 0)


class Manifest(NamedTuple):
    """``made_by``: versions, for people. ``entry_abi``, ``torch`` (major and minor version), ``system``: what running
    the artifact requires. ``targets``: levels of processors (``x86-64-v3``) or architectures of
    GPUs (``sm_90``) that it has native objects for. ``kind``: of the contents' hashes."""

    made_by: Mapping[str, str]
    entry_abi: int
    torch: str
    system: str
    targets: tuple[str, ...]
    contents: Mapping[str, Content]
    kind: str
    version: tuple[int, int]
    format: str = FORMAT

    def to_bytes(self) -> bytes:
        """The entry's content: JSON in one form."""
        data = {
            "format": self.format,
            "version": list(self.version),
            "made_by": dict(self.made_by),
            "requires": {"entry_abi": self.entry_abi, "torch": self.torch, "system": self.system},
            "targets": list(self.targets),
            "contents": {
                name: {"size": content.size, self.kind: list(content.digests)}
                for name, content in self.contents.items()
            },
        }
        return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def read_manifest(content: bytes, format: str = FORMAT) -> Manifest:
    """What ``to_bytes`` made. ArtifactError FXA101 for a file of another kind than ``format``, FXA102, or FXA104 for
    another version."""
    try:
        data = json.loads(content)
        if data["format"] != format:
            raise ArtifactError("FXA101", f"this is no {format}")
        version = _checked(data["version"])
        requires, listed = data["requires"], data["contents"]
        has_checksums = version >= version_for(CHECKSUM) and any(CHECKSUM in item for item in listed.values())
        kind = CHECKSUM if has_checksums else BLAKE3
        contents = {
            str(name): Content(int(item["size"]), tuple(map(str, item[kind])))
            for name, item in listed.items()
        }
        return Manifest(
            {str(key): str(value) for key, value in data["made_by"].items()},
            int(requires["entry_abi"]),
            str(requires["torch"]),
            str(requires["system"]),
            tuple(map(str, data["targets"])),
            contents,
            kind,
            version,
            format,
        )
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise damaged(f"the manifest cannot be read ({error!r})") from error


def _checked(version: Any) -> tuple[int, int]:
    major, minor = version
    if not isinstance(major, int) or not isinstance(minor, int):
        raise TypeError("a version consists of two integers")
    if major == VERSION[0] and 0 <= minor <= VERSION[1]:
        return major, minor
    ours = ".".join(map(str, VERSION))
    is_newer = (major, minor) > VERSION
    raise ArtifactError(
        "FXA104",
        f"the artifact is of version {major}.{minor} of the format, this loader reads {VERSION[0]}.0 to {ours}",
        "update fxstack-artifact"
        if is_newer
        else "make the artifact again, or use an older fxstack-artifact",
    )


def system() -> str:
    """What native objects are made for besides the processor's level."""
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    return f"{sys.platform}-{machine}"


def torch_version(version: str) -> str:
    """The part of torch's version on which compiled code depends."""
    return ".".join(version.split(".")[:2])


def check_requirements(manifest: Manifest, entry_abi: int, torch: str, levels: list[str]) -> str:
    """The target to load: the first of ``levels`` that the artifact is for. ArtifactError FXA104 to FXA106 if there is
    none."""
    if manifest.system != system():
        raise ArtifactError(
            "FXA105", f"the artifact is for {manifest.system}, this is {system()}", "make it on such a system"
        )
    if manifest.entry_abi != entry_abi:
        raise ArtifactError(
            "FXA104",
            f"its native objects are of version {manifest.entry_abi}, this loader runs {entry_abi}",
            "install the fxstack-artifact that belongs to the fxstack it was made with, or make it again",
        )
    if manifest.torch != torch_version(torch):
        raise ArtifactError(
            "FXA106",
            f"the artifact is for torch {manifest.torch}, this is {torch}",
            "install that version of torch, or make the artifact with this one",
        )
    found = next((level for level in levels if level in manifest.targets), None)
    if found is None:
        raise ArtifactError(
            "FXA105",
            f"the artifact is for {', '.join(manifest.targets)}; this machine runs {', '.join(levels) or 'none'}",
            f"make it with target={levels[0]!r}" if levels else "",
        )
    return found
