"""LSTM layers that keep a workspace for their backward.

oneDNN's layer makes that workspace where gradients are on, whether or not anything is differentiated, and returns None
for it elsewhere. A compiled forward runs with gradients off, so in training the graph calls this operator instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from fx_interface.operators import OperatorLibrary
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec

aten = torch.ops.aten

_LIBRARY: Final[Any] = torch.library.Library("aot_autograd", "FRAGMENT")  # type: ignore[no-untyped-call]
_LIBRARY.define(str(aten.mkldnn_rnn_layer.default._schema).replace("aten::mkldnn_rnn_layer", "lstm_layer"))


def _lstm_layer(*args: Any) -> Any:
    with torch.enable_grad(), torch._C._AutoDispatchBelowAutograd():
        return aten.mkldnn_rnn_layer.default(*args)


_LIBRARY.impl("lstm_layer", _lstm_layer, "CPU")

LSTM_LAYER: Final = torch.ops.aot_autograd.lstm_layer.default
"""``aten.mkldnn_rnn_layer`` with its workspace; arguments and results are the same."""


def layer_spec(operators: OperatorLibrary, args: Sequence[Any], env: ShapeEnv) -> Any:
    """The spec of ``LSTM_LAYER``'s result: how large its workspace is oneDNN knows, from sizes that vary."""
    if all(spec.is_static for spec in args if isinstance(spec, TensorSpec)):
        return operators.infer(LSTM_LAYER, args, {}, env)
    specs: Any = operators.infer(aten.mkldnn_rnn_layer.default, args, {}, env)
    workspace = TensorSpec((env.create_symbol(None, low=0),), (1,), torch.uint8, specs[0].device)
    return (*specs[:3], workspace)
