"""Image classifiers of timm and torchvision with random weights, at sizes that a CPU steps through in 10 to 300 ms."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fxstack_dashboard.suites.importing import import_torchvision
from fxstack_dashboard.suites.workload import Workload


class Row(NamedTuple):
    """A model's name in its library, the height and width of its images, and arguments that its constructor needs."""

    name: str
    size: int = 96
    values: tuple[tuple[str, Any], ...] = ()


_SIZED = (("img_size", 96),)
TIMM = (
    Row("convnext_atto"),
    Row("densenet121"),
    Row("efficientnet_b0"),
    Row("ghostnet_100"),
    Row("mixer_s32_224", 224),
    Row("mobilenetv3_small_100"),
    Row("regnety_002"),
    Row("resnet18"),
    Row("resnext50_32x4d", 64),
    Row("vit_tiny_patch16_224", 96, _SIZED),
    Row("xcit_nano_12_p16_224", 96),
)
TORCHVISION = (
    Row("convnext_tiny", 64),
    Row("densenet121"),
    Row("efficientnet_b0"),
    Row("mnasnet0_5"),
    Row("mobilenet_v2"),
    Row("mobilenet_v3_small"),
    Row("regnet_y_400mf"),
    Row("resnet18"),
    Row("shufflenet_v2_x0_5"),
    Row("squeezenet1_1"),
    Row("swin_t", 64),
)


def _timm(row: Row) -> nn.Module:
    import_torchvision()  # which timm imports
    import timm

    module: nn.Module = timm.create_model(row.name, pretrained=False, num_classes=10, **dict(row.values))
    return _without_random_depth(module)


def _torchvision(row: Row) -> nn.Module:
    import_torchvision()
    import torchvision

    module: nn.Module = torchvision.models.get_model(
        row.name, weights=None, num_classes=10, **dict(row.values)
    )
    return _without_random_depth(module)


_PROBABILITIES = {"DropPath": "drop_prob", "StochasticDepth": "p"}
"""Classes of layers that skip a block at random in training, and the attribute that says how often."""


def _without_random_depth(module: nn.Module) -> nn.Module:
    """All blocks are kept, as dropout is switched off."""
    for part in module.modules():
        name = _PROBABILITIES.get(type(part).__name__)
        if name is not None:
            setattr(part, name, 0.0)
    return module


def _images(size: int) -> tuple[Tensor, ...]:
    return (torch.randn(4, 3, size, size),)


def timm_workloads() -> list[Workload]:
    """The suite of timm."""
    return [Workload(row.name, partial(_timm, row), partial(_images, row.size)) for row in TIMM]


def torchvision_workloads() -> list[Workload]:
    """The suite of torchvision."""
    return [Workload(row.name, partial(_torchvision, row), partial(_images, row.size)) for row in TORCHVISION]
