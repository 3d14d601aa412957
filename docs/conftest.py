"""What every page's blocks run under: one thread, and defects that raise."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def surroundings() -> Iterator[None]:
    """As the other tests have it."""
    before = os.environ.get("FXSTACK_ON_INTERNAL_ERROR")
    threads = torch.get_num_threads()
    os.environ["FXSTACK_ON_INTERNAL_ERROR"] = "raise"
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    if before is None:
        del os.environ["FXSTACK_ON_INTERNAL_ERROR"]
    else:
        os.environ["FXSTACK_ON_INTERNAL_ERROR"] = before
