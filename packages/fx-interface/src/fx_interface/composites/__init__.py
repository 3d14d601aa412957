"""Composite functions of torch in terms of operators that take symbolic sizes, for tracers that run them on such.

torch's own code for them fixes sizes, or makes something else of them than eager does.
``COMPOSITES`` gives by torch's function what does the same with symbolic sizes; where nothing is gained by it, that
calls torch's function. Functions that take numbers out of tensors are in ``numbers``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch.nn import functional

from fx_interface.composites.arranging import block_diag, gradient, masked_select, take_along_dim
from fx_interface.composites.cells import gru_cell, lstm_cell
from fx_interface.composites.dropping import dropout, functional_dropout
from fx_interface.composites.padding import pad
from fx_interface.composites.pooling import functional_max_pool1d, max_pool1d
from fx_interface.composites.products import chain_matmul, kron, multi_dot
from fx_interface.composites.ranges import hamming_window, hann_window, linspace
from fx_interface.composites.recurrent import lstm
from fx_interface.composites.resampling import interpolate
from fx_interface.composites.spectral import fftfreq, istft, rfftfreq, stft
from fx_interface.composites.splitting import unsafe_chunk, unsafe_split, unsafe_split_with_sizes

COMPOSITES: Final[Mapping[Any, Callable[..., Any]]] = {
    functional.interpolate: interpolate,
    functional.dropout: functional_dropout,
    functional.pad: pad,
    torch.dropout: dropout,
    functional.max_pool1d: functional_max_pool1d,
    torch.max_pool1d: max_pool1d,
    torch.lstm: lstm,
    torch.gru_cell: gru_cell,
    torch.lstm_cell: lstm_cell,
    torch.kron: kron,
    torch.Tensor.kron: kron,
    torch.linalg.multi_dot: multi_dot,
    torch.chain_matmul: chain_matmul,
    torch.masked_select: masked_select,
    torch.Tensor.masked_select: masked_select,
    torch.take_along_dim: take_along_dim,
    torch.Tensor.take_along_dim: take_along_dim,
    torch.block_diag: block_diag,
    torch.gradient: gradient,
    torch.linspace: linspace,
    torch.hann_window: hann_window,
    torch.hamming_window: hamming_window,
    torch.stft: stft,
    torch.Tensor.stft: stft,
    torch.fft.fftfreq: fftfreq,
    torch.fft.rfftfreq: rfftfreq,
    torch.istft: istft,
    torch.Tensor.istft: istft,
    torch.unsafe_chunk: unsafe_chunk,
    torch.Tensor.unsafe_chunk: unsafe_chunk,
    torch.unsafe_split: unsafe_split,
    torch.Tensor.unsafe_split: unsafe_split,
    torch.unsafe_split_with_sizes: unsafe_split_with_sizes,
    torch.Tensor.unsafe_split_with_sizes: unsafe_split_with_sizes,
}

__all__ = ["COMPOSITES"]
