"""Writing the file of an artifact, in the form that ``fxstack_artifact.container`` reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import torch

import fxstack
from fxstack_artifact.container.hashing import BLAKE3, CHECKSUM
from fxstack_artifact.container.manifest import Manifest, content_of, system, torch_version, version_for
from fxstack_artifact.container.writing import write_sealed
from inductor_codegen.runtime import ENTRY_ABI


def write_archive(
    path: Path,
    contents: Mapping[str, bytes],
    targets: tuple[str, ...],
    sign_with: str | os.PathLike[str] | None = None,
) -> None:
    """The artifact with these contents, in the place of whatever is at ``path``, at once. OSError if it cannot be
    written; ArtifactError FXA114 if ``sign_with`` is no file with a private key.

    What is signed has hashes that tell any change; otherwise checksums, which load faster, tell damage."""
    kind = CHECKSUM if sign_with is None else BLAKE3
    manifest = Manifest(
        {"fxstack": fxstack.__version__, "torch": torch.__version__},
        ENTRY_ABI,
        torch_version(torch.__version__),
        system(),
        targets,
        {name: content_of(data, kind) for name, data in contents.items()},
        kind,
        version_for(kind, targets),
    )
    write_sealed(path, manifest, contents, sign_with)
