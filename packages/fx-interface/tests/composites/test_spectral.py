from __future__ import annotations

import pytest
import torch

from fx_interface.composites.spectral import istft


@pytest.mark.filterwarnings("ignore:The length of signal")
@pytest.mark.parametrize("length", [None, 1, 390, 400, 433, 500])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_signals_and_what_lies_behind_them(length: int | None, center: bool, batch: tuple[int, ...]) -> None:
    """Torch fills up with zeros what is asked for beyond the signal."""
    window = torch.hann_window(64) + 0.01
    signal = torch.linspace(-1, 1, 400).expand(*batch, 400)
    spectrum = torch.stft(signal, 64, window=window, center=center, return_complex=True)
    found = istft(spectrum, 64, window=window, center=center, length=length)
    expected = torch.istft(spectrum, 64, window=window, center=center, length=length)
    torch.testing.assert_close(found, expected)
    assert found.stride() == expected.stride()
