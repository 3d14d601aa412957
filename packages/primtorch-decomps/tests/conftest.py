"""The tests run on the device that ``PRIMTORCH_TEST_DEVICE`` names (default: cpu)."""

from __future__ import annotations

import os

import pytest
import torch


def pytest_configure() -> None:
    torch.set_default_device(os.environ.get("PRIMTORCH_TEST_DEVICE", "cpu"))
    torch.manual_seed(0)  # for samples that are drawn while tests are collected


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Each test draws the same samples, whichever tests ran before."""
    torch.manual_seed(0)
