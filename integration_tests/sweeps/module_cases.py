"""Samples of modules: those of torch's module database, and a few of our own for modules that it lacks."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.testing._internal.common_modules import ModuleInfo, module_db
from torch.utils import _pytree as pytree

_DATABASE: dict[str, ModuleInfo] = {info.name: info for info in module_db}


@dataclass(frozen=True)
class Sample:
    """One module with arguments for its call. ``make`` returns a module; all it returns are alike."""

    case: str
    make: Callable[[], nn.Module]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    training: bool
    change: Callable[[Tensor], Tensor] | None = None

    def module(self) -> nn.Module:
        """A fresh module, always with the same parameters."""
        torch.manual_seed(7)
        module = self.make().train(self.training)
        return module if self.change is None else module._apply(self.change)

    def retyped(self, dtype: torch.dtype) -> Sample:
        """The same in another floating dtype."""
        return self._changed(lambda tensor: tensor.to(dtype))

    def nudged(self) -> Sample:
        """The same with numbers that differ from these in their last places, as if they had been rounded otherwise."""
        dice = torch.Generator().manual_seed(3)

        def nudge(tensor: Tensor) -> Tensor:
            ways = 2 * torch.randint(2, tensor.shape, generator=dice) - 1
            return tensor * (1 + torch.finfo(tensor.dtype).eps * ways.to(tensor.dtype))

        return self._changed(nudge)

    def _changed(self, change: Callable[[Tensor], Tensor]) -> Sample:
        def floats(tensor: Tensor) -> Tensor:
            return change(tensor) if tensor.is_floating_point() else tensor

        def argument(leaf: Any) -> Any:
            return (
                floats(leaf.detach()).requires_grad_(leaf.requires_grad) if isinstance(leaf, Tensor) else leaf
            )

        args, kwargs = pytree.tree_map(argument, (self.args, self.kwargs))
        return replace(self, args=args, kwargs=kwargs, change=floats)


def names() -> list[str]:
    """All modules that there are samples of."""
    return [*_DATABASE, *OWN]


def samples(name: str, dtype: torch.dtype, mode: str, training: bool, count: int) -> Iterator[Sample]:
    """At most ``count`` samples of a module, spread evenly over what there is; inputs of floats require grad."""
    label = f"{name} {str(dtype).removeprefix('torch.')} {mode}"
    if name in OWN:
        make, shapes = OWN[name]
        torch.manual_seed(1)
        args = tuple(
            torch.randn(shape, dtype=dtype).requires_grad_() if isinstance(shape, tuple) else shape()
            for shape in shapes
        )
        yield Sample(label, lambda: make().to(dtype), args, {}, training)
        return
    info = _DATABASE[name]
    if dtype not in info.dtypes:
        return
    torch.manual_seed(1)
    found = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
    for number, sample in list(enumerate(found))[:: -(-len(found) // count)]:
        if sample.forward_input is not None:
            constructor, forward = sample.constructor_input, sample.forward_input
            make = _maker(info.module_cls, constructor.args, constructor.kwargs, dtype)
            yield Sample(
                f"{label} #{number} {sample.desc}", make, tuple(forward.args), dict(forward.kwargs), training
            )


def _maker(
    cls: type[nn.Module], args: Any, kwargs: dict[str, Any], dtype: torch.dtype
) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            return cls(*copy.deepcopy(args), **copy.deepcopy(kwargs)).to(dtype)
        finally:
            torch.set_default_dtype(before)

    return make


def _indices(high: int, *shape: int) -> Callable[[], Tensor]:
    return lambda: torch.randint(high, shape, generator=torch.Generator().manual_seed(2))


OWN: dict[str, tuple[Callable[[], nn.Module], tuple[Any, ...]]] = {
    "nn.AdaptiveLogSoftmaxWithLoss": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10]),
        ((6, 8), _indices(20, 6)),
    ),
    "nn.AlphaDropout": (lambda: nn.AlphaDropout(0.3), ((5, 6),)),
    "nn.ChannelShuffle": (lambda: nn.ChannelShuffle(2), ((2, 4, 3, 3),)),
    "nn.CosineSimilarity": (lambda: nn.CosineSimilarity(1), ((3, 5), (3, 5))),
    "nn.Dropout": (lambda: nn.Dropout(0.3), ((5, 6),)),
    "nn.Dropout1d": (lambda: nn.Dropout1d(0.3), ((2, 5, 6),)),
    "nn.Dropout2d": (lambda: nn.Dropout2d(0.3), ((2, 5, 3, 3),)),
    "nn.Dropout3d": (lambda: nn.Dropout3d(0.3), ((2, 5, 3, 3, 3),)),
    "nn.EmbeddingBag": (lambda: nn.EmbeddingBag(9, 4, mode="mean"), (_indices(9, 3, 5),)),
    "nn.EmbeddingBag max": (lambda: nn.EmbeddingBag(9, 4, mode="max"), (_indices(9, 3, 5),)),
    "nn.FeatureAlphaDropout": (lambda: nn.FeatureAlphaDropout(0.3), ((2, 5, 6),)),
    "nn.Flatten": (lambda: nn.Flatten(1, -2), ((2, 3, 4, 5),)),
    "nn.Fold": (lambda: nn.Fold((5, 6), (2, 3), padding=1), ((2, 12, 36),)),
    "nn.Hardsigmoid": (nn.Hardsigmoid, ((5, 6),)),
    "nn.Identity": (nn.Identity, ((5, 6),)),
    "nn.LazyBatchNorm1d": (nn.LazyBatchNorm1d, ((5, 6),)),
    "nn.LazyInstanceNorm2d": (lambda: nn.LazyInstanceNorm2d(affine=True), ((2, 3, 4, 5),)),
    "nn.LazyLinear": (lambda: nn.LazyLinear(3), ((5, 6),)),
    "nn.MaxUnpool2d": (
        lambda: nn.MaxUnpool2d(2),
        ((1, 1, 2, 2), lambda: torch.tensor([[[[0, 3], [9, 15]]]])),
    ),
    "nn.PairwiseDistance": (lambda: nn.PairwiseDistance(keepdim=True), ((3, 5), (3, 5))),
    "nn.PixelShuffle": (lambda: nn.PixelShuffle(2), ((2, 8, 3, 3),)),
    "nn.PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), ((2, 2, 4, 6),)),
    "nn.RReLU": (nn.RReLU, ((5, 6),)),
    "nn.TransformerDecoder": (
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2),
        ((2, 3, 8), (2, 4, 8)),
    ),
    "nn.TripletMarginLoss": (nn.TripletMarginLoss, ((3, 5), (3, 5), (3, 5))),
    "nn.TripletMarginWithDistanceLoss": (
        lambda: nn.TripletMarginWithDistanceLoss(swap=True),
        ((3, 5), (3, 5), (3, 5)),
    ),
    "nn.Unflatten": (lambda: nn.Unflatten(1, (2, 3)), ((5, 6),)),
    "nn.Unfold": (lambda: nn.Unfold((2, 3), dilation=2, stride=2), ((2, 3, 7, 8),)),
    "nn.Upsample": (lambda: nn.Upsample(scale_factor=1.7, mode="bilinear"), ((2, 3, 4, 5),)),
    "nn.Upsample bicubic": (
        lambda: nn.Upsample(size=(7, 3), mode="bicubic", align_corners=True),
        ((2, 3, 4, 5),),
    ),
    "nn.UpsamplingNearest2d": (lambda: nn.UpsamplingNearest2d(scale_factor=2), ((2, 3, 4, 5),)),
}
"""Modules that the database lacks: how to make one, and shapes of its inputs or what makes them."""
