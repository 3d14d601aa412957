"""What the installed package must do at least; ``nox -s release-check`` runs it outside of the repository."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import fxstack_artifact
from fxstack_artifact import _native


def main() -> None:
    """The native loader is there, and a file that is no artifact is refused with a code.

    An artifact itself, which only the stack can make, is loaded by the smoke test of ``fxstack``."""
    assert _native.__file__.endswith(".so")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.fxa"
        path.write_bytes(b"PK no artifact")
        try:
            fxstack_artifact.load(path)
        except fxstack_artifact.ArtifactError as refused:
            if "FXA101" not in str(refused):
                sys.exit(f"refused with another code: {refused}")
        else:
            sys.exit("a file that is no artifact was loaded")


if __name__ == "__main__":
    main()
