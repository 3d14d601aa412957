"""Short-time Fourier transforms of signals of symbolic length, and back."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

aten = torch.ops.aten

_UNCHANGED, _BY_ROOT, _BY_COUNT = 0, 1, 2
"""How a Fourier transform is normalized, in torch's numbers."""


def stft(
    input: torch.Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: torch.Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> torch.Tensor:
    """``torch.stft``: [B, L] or [L] -> [B, frequencies, frames], complex."""
    hop, length = hop_length or n_fft // 4, win_length or n_fft
    given = (hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex)
    if (
        not return_complex
        or align_to_window is not None
        or input.dim() not in (1, 2)
        or not input.dtype.is_floating_point
        or not _are_numbers(n_fft, hop, length)
        or not _fits(window, length, input.dtype)
        or not any(isinstance(size, torch.SymInt) for size in input.shape)
    ):
        return torch.stft(input, n_fft, *given, align_to_window=align_to_window)
    signal = input if input.dim() == 2 else input.unsqueeze(0)
    if center:
        side = n_fft // 2
        signal = functional.pad(signal.unsqueeze(0), [side, side], mode=pad_mode).squeeze(0)
    frames = signal.unfold(-1, n_fft, hop)
    shape = _shape_of(window, length, n_fft, input)
    frames = frames if shape is None else frames * shape
    how = _BY_ROOT if normalized else _UNCHANGED
    made: torch.Tensor = aten._fft_r2c.default(frames, [2], how, onesided is None or onesided).transpose(1, 2)
    return made if input.dim() == 2 else made.squeeze(0)


def istft(
    input: torch.Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: torch.Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> torch.Tensor:
    """``torch.istft``: [B, frequencies, frames] or [frequencies, frames] -> [B, L] or [L], real.

    torch's own code reads from a tensor whether the windows cover the signal; here it is stated, and checked when the
    program runs.
    """
    hop, wide = hop_length or n_fft // 4, win_length or n_fft
    given = (hop_length, win_length, window, center, normalized, onesided, length, return_complex)
    if (
        return_complex
        or input.dim() not in (2, 3)
        or not input.dtype.is_complex
        or not _are_numbers(n_fft, hop, wide)
        or not _fits(window, wide, torch.float64 if input.dtype is torch.complex128 else torch.float32)
        or input.shape[-2] != (n_fft if onesided is False else n_fft // 2 + 1)
    ):
        return torch.istft(input, n_fft, *given)
    spectrum = input if input.dim() == 3 else input.unsqueeze(0)
    half = spectrum.transpose(1, 2)[..., : n_fft // 2 + 1]
    count = half.shape[1]
    total = n_fft + hop * (count - 1)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start
    frames = aten._fft_c2r.default(half, [2], _BY_ROOT if normalized else _BY_COUNT, n_fft)
    shape = _shape_of(window, wide, n_fft, frames)
    weight = frames.new_ones(n_fft) if shape is None else shape
    put_together = aten.unfold_backward.default
    signal = put_together(frames * weight, [frames.shape[0], total], 1, n_fft, hop)
    weights = put_together(weight.pow(2).expand(1, count, n_fft), [1, total], 1, n_fft, hop)
    signal, weights = signal[:, start:end], weights[:, start:end]
    covers = weights.abs().min() >= 1e-11
    if covers.device.type != "cpu":  # waits, as eager does; a check that fails on a GPU ends the process
        covers = covers.cpu()
    torch._assert_async(covers, "window overlap add min: 1")
    made: torch.Tensor = signal / weights
    if end > total:  # of which torch warns once
        made = functional.pad(made, [0, end - total])
    return made if input.dim() == 3 else made.squeeze(0)


def _are_numbers(n_fft: Any, hop: Any, length: Any) -> bool:
    return all(type(n) is int for n in (n_fft, hop, length)) and hop > 0 and 0 < length <= n_fft


def _fits(window: torch.Tensor | None, length: int, dtype: torch.dtype) -> bool:
    return window is None or (tuple(window.shape) == (length,) and window.dtype is dtype)


def _shape_of(
    window: torch.Tensor | None, length: int, n_fft: int, like: torch.Tensor
) -> torch.Tensor | None:
    """What frames are multiplied by: the window in the middle of a frame; None stands for ones."""
    if length == n_fft:
        return window
    left = (n_fft - length) // 2
    given = like.new_ones(length) if window is None else window
    return functional.pad(given, [left, n_fft - length - left])


def fftfreq(n: Any, d: float = 1.0, **options: Any) -> Any:
    """``torch.fft.fftfreq``: the frequencies of ``n`` samples, first those that are not negative."""
    if not _is_count(n, d, options):
        return torch.fft.fftfreq(n, d, **options)
    half = (n + 1) // 2
    parts = [torch.arange(0, half, **options), torch.arange(half - n, 0, **options)]
    return torch.cat(parts) * _step(n, d)


def rfftfreq(n: Any, d: float = 1.0, **options: Any) -> Any:
    """``torch.fft.rfftfreq``: the frequencies that are not negative."""
    if not _is_count(n, d, options):
        return torch.fft.rfftfreq(n, d, **options)
    return torch.arange(0, n // 2 + 1, **options) * _step(n, d)


def _is_count(n: Any, d: Any, options: dict[str, Any]) -> bool:
    """Whether ``n`` is symbolic. The options of a factory get the dtype that the frequencies have."""
    if (
        not isinstance(n, torch.SymInt)
        or not isinstance(d, (int, float))
        or options.keys() - {"dtype", "device"}
    ):
        return False
    if options.get("dtype") is None:
        options["dtype"] = torch.get_default_dtype()
    return True


def _step(n: torch.SymInt, d: float) -> torch.Tensor:
    return 1.0 / (torch.scalar_tensor(n, dtype=torch.float64) * d)  # type: ignore[arg-type]
