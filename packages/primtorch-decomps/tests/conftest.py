"""The tests run on the device that ``PRIMTORCH_TEST_DEVICE`` names (default: cpu)."""

from __future__ import annotations

import os

import torch


def pytest_configure() -> None:
    torch.set_default_device(os.environ.get("PRIMTORCH_TEST_DEVICE", "cpu"))
    torch.manual_seed(0)
