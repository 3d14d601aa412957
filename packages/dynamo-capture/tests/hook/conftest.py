"""Each test of the hook leaves the interpreter without one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dynamo_capture import hook


@pytest.fixture(autouse=True)
def _hook_is_gone_afterwards() -> Iterator[None]:
    yield
    assert hook.get_callback() is None
    assert not hook.is_installed()
