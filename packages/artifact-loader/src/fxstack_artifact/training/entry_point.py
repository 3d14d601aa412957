"""An entry point whose results lead back to its arguments and to the artifact's parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from fxstack_artifact.program.entry_point import EntryPoint, compiled_graph
from fxstack_artifact.program.sizes import reader
from fxstack_artifact.training.differentiable import Differentiable


class TrainingEntryPoint(EntryPoint):
    """A compiled function with a compiled backward. While gradients are off it is an ``EntryPoint``."""

    def __init__(
        self,
        name: str,
        data: Mapping[str, Any],
        constants: Sequence[torch.Tensor],
        constant_names: Sequence[str],
        content: bytes,
        backward: bytes,
    ) -> None:
        self._constant_names, self._backward = constant_names, backward
        super().__init__(name, data, constants, content)
        del self._backward

    def _build(
        self, name: str, data: Mapping[str, Any], constants: Sequence[torch.Tensor], content: bytes
    ) -> None:
        super()._build(name, data, constants, content)
        described, numbers = data["backward"], data["graph"]["constants"]
        names = [f"value {n} of the backward" for n in range(int(described["leaves"]))]
        names += map(str, data["symbols"]["names"])
        self._run = Differentiable(
            described,
            self._run,
            compiled_graph(described["graph"], names, (), self._backward),
            [constants[index] for index in numbers],
            self._parameters.leaf_names,
            [self._constant_names[index] for index in numbers],
            reader(data["symbols"]["sources"]),
        )
