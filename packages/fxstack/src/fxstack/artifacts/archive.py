"""Writing the file: contents one after the other, in the form that ``fxstack_artifact.container`` reads."""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import torch

import fxstack
from fxstack.artifacts.errors import ExportError
from fxstack_artifact.container.hashing import digest, digests
from fxstack_artifact.container.layout import LARGEST, Entry, local_header, tail
from fxstack_artifact.container.manifest import NAME, Content, Manifest, system, torch_version
from inductor_codegen.runtime import ENTRY_ABI


def write_archive(path: Path, contents: Mapping[str, bytes], targets: tuple[str, ...]) -> None:
    """The artifact with these contents, in the place of whatever is at ``path``, at once: a reader sees the old file or
    the new one. ExportError FXS510 if it is too large; OSError if it cannot be written."""
    manifest = Manifest(
        {"fxstack": fxstack.__version__, "torch": torch.__version__},
        ENTRY_ABI,
        torch_version(torch.__version__),
        system(),
        targets,
        {name: Content(len(data), tuple(digests(data))) for name, data in contents.items()},
    ).to_bytes()
    everything = {NAME: manifest, **contents}
    if sum(map(len, everything.values())) > LARGEST:
        raise ExportError(
            "FXS510", "the artifact would be larger than 4 GB", action="keep the weights beside it"
        )
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            entries = []
            for entry_name, data in everything.items():
                entry = Entry(entry_name, len(data), zlib.crc32(data), file.tell())
                entries.append(entry)
                file.write(local_header(entry))
                file.write(data)
            file.write(tail(entries, file.tell(), digest(manifest)))
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
