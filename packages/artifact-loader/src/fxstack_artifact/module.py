"""The weights of an artifact as those of a module: found, saved, restored and trained by their names in the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from fxstack_artifact.errors import ArtifactError, unreadable
from fxstack_artifact.program.constants import BUFFER, PARAMETER


class WeightsModule(nn.Module):
    """A module with the tensors that the graphs compute with, in modules named as the model's were."""

    def __init__(self, described: Sequence[Mapping[str, Any]], tensors: Sequence[torch.Tensor]) -> None:
        super().__init__()
        for item, tensor in zip(described, tensors, strict=True):
            role = item.get("role")
            if role in (PARAMETER, BUFFER):
                for name in (item["name"], *item.get("aliases", ())):
                    self._add(str(name), tensor, role == PARAMETER)

    def _add(self, name: str, tensor: torch.Tensor, is_parameter: bool) -> None:
        *path, last = name.split(".")
        place: nn.Module = self
        for part in path:  # past add_module(), which refuses names of attributes
            found = place._modules.get(part)
            if found is None:
                found = place._modules[part] = nn.Module()
            place = found
        taken: dict[str, Any] = place._parameters if is_parameter else place._buffers
        if last in taken or last in place._modules:
            raise unreadable(f"two weights have the name {name}")
        taken[last] = tensor

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> WeightsModule:
        """``to()``, ``half()`` and the like. ArtifactError FXA203 where it would move or convert a tensor, which the
        graphs were not compiled for."""
        for name, tensor in (*self.named_parameters(), *self.named_buffers()):
            made = fn(tensor.detach())
            if made.dtype is not tensor.dtype or made.device != tensor.device:
                raise ArtifactError(
                    "FXA203",
                    f"{name} would become {made.dtype} on {made.device}, the artifact computes with {tensor.dtype} on "
                    f"{tensor.device}",
                    "convert the model and make another artifact",
                )
        return self
