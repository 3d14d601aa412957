"""What every page's blocks run under: a cache folder of their own, one thread, and defects that raise."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One cache for all pages, so that the user's own is neither read nor written."""
    wanted = {
        "FXSTACK_CACHE_DIR": str(tmp_path_factory.mktemp("cache")),
        "FXSTACK_ON_INTERNAL_ERROR": "raise",
    }
    before = {name: os.environ.get(name) for name in wanted}
    threads = torch.get_num_threads()
    os.environ.update(wanted)
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
