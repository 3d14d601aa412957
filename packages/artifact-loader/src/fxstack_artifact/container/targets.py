"""What this machine runs: levels of its processor, or architectures of its GPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fxstack_artifact import _native
from fxstack_artifact.container.manifest import Manifest, has_both, is_of_gpu
from fxstack_artifact.errors import ArtifactError


def is_for_gpu(targets: Sequence[str]) -> bool:
    """Whether one of these is an architecture of GPUs."""
    return any(map(is_of_gpu, targets))


def targets_here(manifest: Manifest, device: str | torch.device | None = None) -> list[str]:
    """The targets that this machine runs, of the kind that is to be loaded, the best first.

    ``device``: ``"cpu"`` or ``"cuda"`` (GPU 0) says which; otherwise it is the artifact's only one, or, of an artifact
    for both, the GPU where one can be used. ArtifactError FXA115 for a GPU where torch can use none, FXA116 for a
    device that the artifact is not for, FXA105 where it has both and nothing for the GPU that is there.
    """
    both, on_gpu = has_both(manifest.targets), is_for_gpu(manifest.targets)
    if device is not None:
        on_gpu = _is_gpu(device, manifest.targets)
    elif both:
        return _best(manifest.targets)
    return gpu_targets() if on_gpu else _native.cpu_levels()


def _is_gpu(device: str | torch.device, targets: Sequence[str]) -> bool:
    """Whether the GPU is asked for."""
    try:
        asked = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ArtifactError("FXA116", f"{device!r} is no device", "pass 'cpu' or 'cuda'") from error
    on_gpu = asked.type == "cuda"
    if asked.type not in ("cpu", "cuda") or asked.index or on_gpu not in map(is_of_gpu, targets):
        raise ArtifactError(
            "FXA116",
            f"the artifact is for {', '.join(targets)}, and {asked} was asked for",
            "load it with another device ('cpu', or 'cuda' for GPU 0), or make it with a target for this one",
        )
    return on_gpu


def _best(targets: Sequence[str]) -> list[str]:
    """Of an artifact for both: those of the GPU where torch can use one, else the processor's."""
    try:
        there = gpu_targets()
    except ArtifactError:
        return _native.cpu_levels()
    if not set(there) & set(targets):
        raise ArtifactError(
            "FXA105",
            f"the artifact is for {', '.join(targets)}; GPU 0 is {there[0]}",
            f"load it with device='cpu', or make it with {there[0]} among its targets",
        )
    return there


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
    return [f"sm_{major}{number}" for number in range(minor, lowest - 1, -1)]


def _none(why: str, action: str) -> ArtifactError:
    return ArtifactError("FXA115", f"the artifact runs on a GPU, and none can be used here: {why}", action)
