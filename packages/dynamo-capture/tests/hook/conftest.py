"""Each test of the hook leaves the interpreter without one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dynamo_capture.hook import frame_hook


@pytest.fixture(autouse=True)
def _hook_is_gone_afterwards() -> Iterator[None]:
    yield
    assert frame_hook.get_callback() is None
    assert not frame_hook.is_installed()
