"""Stages of compiling are timed apart: capture, and the joint trace."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers", reason="the benchmarks' models come from transformers")

from benchmarks import stages


def test_the_transformer_is_captured_whole_and_its_joint_graph_has_a_backward() -> None:
    assert 0 < stages.fxstack_capture(*stages.transformer(1))
    assert 0 < stages.fxstack_joint(*stages.transformer(1))
