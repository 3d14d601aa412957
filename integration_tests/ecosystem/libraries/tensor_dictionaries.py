"""tensordict: modules that read and write a ``TensorDict``, in a compiled training step."""

from __future__ import annotations

from typing import Any

import torch
from programs import Compile, Program, Step, training_step
from torch import nn


def modules(compile: Compile) -> Step:
    from tensordict import TensorDict
    from tensordict.nn import TensorDictModule, TensorDictSequential

    policy = TensorDictSequential(
        TensorDictModule(nn.Sequential(nn.Linear(16, 64), nn.Tanh()), ["observation"], ["hidden"]),
        TensorDictModule(nn.Linear(64, 4), ["hidden"], ["action"]),
    )

    @compile
    def loss(observation: Any) -> Any:
        made = policy(TensorDict({"observation": observation}, batch_size=[32]))
        return made["action"].square().mean()

    observation = torch.randn(32, 16)
    return training_step(policy, lambda: loss(observation))


PROGRAMS = (Program("tensordict, modules", modules, ("tensordict",)),)
