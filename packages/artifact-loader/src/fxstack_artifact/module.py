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
            if role not in (PARAMETER, BUFFER):
                continue
            *path, name = str(item["name"]).split(".")
            place: nn.Module = self
            for part in path:  # past add_module(), which refuses names of attributes
                found = place._modules.setdefault(part, nn.Module())
                assert found is not None
                place = found
            taken = place._parameters if role == PARAMETER else place._buffers
            if name in taken or name in place._modules:
                raise unreadable(f"two weights have the name {item['name']}")
            taken[name] = tensor  # type: ignore[assignment]

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
