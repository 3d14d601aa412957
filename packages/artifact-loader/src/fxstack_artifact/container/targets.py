"""What this machine runs: levels of its processor, or architectures of its GPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fxstack_artifact import _native
from fxstack_artifact.container.manifest import Manifest
from fxstack_artifact.errors import ArtifactError

_PREFIX = "sm_"


def is_for_gpu(targets: Sequence[str]) -> bool:
    """Whether these are architectures of GPUs."""
    return any(target.startswith(_PREFIX) for target in targets)


def targets_here(manifest: Manifest) -> list[str]:
    """The targets that this machine runs, of the kind that the artifact is for, the best first.

    ArtifactError FXA115 for an artifact for GPUs where torch can use none.
    """
    return gpu_targets() if is_for_gpu(manifest.targets) else _native.cpu_levels()


def gpu_targets() -> list[str]:
    """The architectures that GPU 0 runs, the best first: its own, and below 9.0 those of a lower minor number.
    ArtifactError FXA115 if there is none."""
    if torch.version.cuda is None:
        raise _none("this torch was built without CUDA", "install a build of torch for CUDA")
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
        major, minor = torch.cuda.get_device_capability(0)
    except (AssertionError, RuntimeError) as error:
        raise _none(str(error).splitlines()[0], "use a machine with a GPU and its driver") from error
    lowest = 0 if major < 9 else minor
    return [f"{_PREFIX}{major}{number}" for number in range(minor, lowest - 1, -1)]


def _none(why: str, action: str) -> ArtifactError:
    return ArtifactError("FXA115", f"the artifact runs on a GPU, and none can be used here: {why}", action)
