"""The tests run on the device that ``PRIMTORCH_TEST_DEVICE`` names, if it does (torch's own default is the CPU).

A default device is a mode around everything in the process, also around other packages' tests, so that none is set
unless it is asked for.
"""

from __future__ import annotations

import os

import pytest
import torch


def pytest_configure() -> None:
    device = os.environ.get("PRIMTORCH_TEST_DEVICE")
    if device:
        torch.set_default_device(device)
    torch.manual_seed(0)  # for samples that are drawn while tests are collected


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Each test draws the same samples, whichever tests ran before."""
    torch.manual_seed(0)
