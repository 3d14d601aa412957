"""``nn.TransformerEncoder`` with a mask for padding, as it computes in ``eval`` without gradients.

    eager:     nested = src without padding;  layers(nested);  padded with zeros;  norm
    captured:  layers(src, mask);  zeros for padding;  norm

Torch leaves nested tensors out where ``torch.compiler.is_compiling()``, and numbers are left in the places of padding.
Here zeros are put there, if the mask tells that padding comes last, which data say. Where that is not known to be the
same, the encoder is told that it is not compiled, and goes eager's way. Masks that are empty, or padding everywhere,
torch refuses: the former go eager's way, too, and of the latter the graph fails on a CPU, so that eager tells. On a GPU
an assertion would end the process's work there, and zeros are given.
"""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

import torch

from dynamo_capture.polyfills.registry import substitutes

_ORIGINAL: Any = torch.nn.TransformerEncoder.forward
_FORWARD: Any = FunctionType(_ORIGINAL.__code__, _ORIGINAL.__globals__)
"""The function under another identity, for which no substitute stands."""


@substitutes(_ORIGINAL)
def encode(
    self: Any, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: Any = None
) -> Any:
    """``src``: (batch, length, size); ``src_key_padding_mask``: (batch, length), true for padding."""
    if not _is_nested_in_eager(self, src, mask, src_key_padding_mask):
        return with_padding(self, src, mask, src_key_padding_mask, is_causal)
    if src_key_padding_mask.numel() == 0 or not _is_known(self, src_key_padding_mask):
        return _FORWARD(self, src, mask, src_key_padding_mask, is_causal)
    found = with_padding(self, src, mask, src_key_padding_mask, is_causal)
    empty = torch.zeros_like(found[:1, :1])
    if self.norm is not None:
        empty = self.norm(empty)
    padding = src_key_padding_mask
    if padding.device.type == "cpu":
        torch._assert_async((~padding).any(), "a nested tensor of padding alone cannot be padded")
    is_last = ~(padding[:, :-1] & ~padding[:, 1:]).any()
    return torch.where((padding & is_last).unsqueeze(-1), empty, found)


def with_padding(self: Any, src: Any, mask: Any, src_key_padding_mask: Any, is_causal: Any) -> Any:
    """The encoder as it is where it is compiled: padding is computed, too."""
    return _FORWARD(self, src, mask, src_key_padding_mask, is_causal)


def is_told_no(code: CodeType, caller: CodeType | None) -> bool:
    """Whether a frame that asks whether it is compiled is an encoder's that is to go eager's way."""
    return code is _ORIGINAL.__code__ and caller is not with_padding.__code__


def _is_nested_in_eager(self: Any, src: Any, mask: Any, padding: Any) -> bool:
    """Whether torch would compute with nested tensors, unless padding does not come last."""
    if mask is not None or padding is None or src.dim() != 3 or src.is_nested or self.layers[0].training:
        return False
    if not getattr(self, "use_nested_tensor", False) or not getattr(self, "mask_check", True):
        return False
    if not torch.backends.mha.get_fastpath_enabled() or torch.is_autocast_enabled():
        return False
    return not torch.is_grad_enabled() or not (
        src.requires_grad or any(parameter.requires_grad for parameter in self.layers[0].parameters())
    )


def _is_known(self: Any, padding: Any) -> bool:
    """Whether padding has no part in what the layers compute, and nobody looks on."""
    parts = [*self.layers] if self.norm is None else [*self.layers, self.norm]
    kinds = (torch.nn.TransformerEncoderLayer, torch.nn.LayerNorm)
    return padding.dtype is torch.bool and all(
        type(part) in kinds and not part.training and not part._forward_hooks and not part._forward_pre_hooks
        for part in parts
    )
