"""Weights in a file beside the artifact, which says its name, its size and its hashes.

The file is safetensors with the names and sizes of the model's tensors, so that other programs can read it too. It is
checked whole before any of it is used, and mapped as the artifact is.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from fxstack_artifact.container.hashing import BLAKE3, fits
from fxstack_artifact.errors import ArtifactError, changed, unreadable
from fxstack_artifact.program.constants import device_of, stored_tensors


def weights_beside(
    artifact: str | os.PathLike[str],
    stated: Mapping[str, Any],
    described: Sequence[Mapping[str, Any]],
    *,
    copy: bool = False,
) -> dict[str, torch.Tensor]:
    """Tensors by the names of the ``described`` constants, out of the file that ``stated`` names.

    ``stated`` is ``{"file", "size", "blake3"}``. ``copy``: it is read, not mapped. ArtifactError FXA201 if it is not
    there, FXA103 if it is another one.
    """
    name = str(stated["file"])
    if name != os.path.basename(name) or name in ("", ".", ".."):
        raise unreadable(f"its weights are in {name!r}")
    file = Path(artifact).parent / name
    buffer = _content(file, copy)
    if len(buffer) != stated["size"] or not fits(memoryview(buffer), stated[BLAKE3], BLAKE3):
        raise changed(f"{name}, which holds its weights,")
    stored = stored_tensors(buffer, 0, len(buffer))
    made = {}
    for item in described:
        found = stored.get(str(item["name"]))
        sizes = [int(size) for size in item["sizes"]]
        if found is not None and found.elements == math.prod(sizes):
            flat = torch.empty(0, dtype=found.dtype)
            if found.elements:
                flat = torch.frombuffer(buffer, dtype=found.dtype, count=found.elements, offset=found.start)
            made[str(item["name"])] = flat.reshape(sizes).to(device_of(item))
    return made


def _content(file: Path, copy: bool) -> mmap.mmap | bytearray:
    try:
        with open(file, "rb") as opened:
            return (
                bytearray(opened.read()) if copy else mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY)
            )
    except ValueError as error:  # an empty file
        raise changed(f"{file.name}, which holds its weights,") from error
    except OSError as error:
        raise ArtifactError(
            "FXA201",
            f"its weights are in {file.name}, which cannot be read beside it ({error.strerror})",
            "put it there, or pass them: load(path, weights=...)",
        ) from error
