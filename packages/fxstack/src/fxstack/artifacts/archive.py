"""Writing the file of an artifact, in the form that ``fxstack_artifact.container`` reads, and its weights beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

import fxstack
from fxstack_artifact.container.hashing import BLAKE3, CHECKSUM
from fxstack_artifact.container.manifest import Manifest, content_of, system, torch_version, version_for
from fxstack_artifact.container.writing import write_sealed, write_whole
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


def beside_of(artifact: Path) -> Path:
    """The file of weights beside an artifact."""
    return artifact.with_name(f"{artifact.name}.safetensors")


def write_beside(artifact: Path, tensors: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """Write ``tensors`` to the safetensors file beside an artifact, at once in the place of one that is there; what its
    programs say of the file. OSError if it cannot be written.

    The hashes tell any change, so that an artifact that is signed later holds for its weights too."""
    file = beside_of(artifact)
    data = safetensors.torch.save(
        {name: tensor.cpu().contiguous().clone() for name, tensor in tensors.items()}
    )
    write_whole(file, data)
    content = content_of(data, BLAKE3)
    return {"beside": {"file": file.name, "size": content.size, BLAKE3: list(content.digests)}}
