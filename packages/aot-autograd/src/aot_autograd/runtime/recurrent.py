"""LSTM layers that keep a workspace for their backward.

oneDNN's layer makes that workspace where gradients are on, whether or not anything is differentiated, and returns None
for it elsewhere. A compiled forward runs with gradients off, so in training the graph calls this operator instead.
"""

from __future__ import annotations

from typing import Any, Final

import torch

aten = torch.ops.aten

_LIBRARY: Final[Any] = torch.library.Library("aot_autograd", "FRAGMENT")  # type: ignore[no-untyped-call]
_LIBRARY.define(str(aten.mkldnn_rnn_layer.default._schema).replace("aten::mkldnn_rnn_layer", "lstm_layer"))


def _lstm_layer(*args: Any) -> Any:
    with torch.enable_grad(), torch._C._AutoDispatchBelowAutograd():
        return aten.mkldnn_rnn_layer.default(*args)


_LIBRARY.impl("lstm_layer", _lstm_layer, "CPU")

LSTM_LAYER: Final = torch.ops.aot_autograd.lstm_layer.default
"""``aten.mkldnn_rnn_layer`` with its workspace; arguments and results are the same."""
