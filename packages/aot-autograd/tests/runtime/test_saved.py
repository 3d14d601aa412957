"""Places of saved values among those that are the backward's own, and among the others."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.overrides import TorchFunctionMode

from aot_autograd.runtime.saved import order_of, released


@given(st.lists(st.booleans()))
def test_each_value_has_the_next_place_of_its_kind(flags: list[bool]) -> None:
    order = order_of(flags)
    assert [own for own, _ in order] == flags
    for kind in (True, False):
        assert [place for own, place in order if own is kind] == list(range(flags.count(kind)))


def test_a_second_backward_is_refused_in_torchs_words() -> None:
    x = torch.ones(2, requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    with pytest.raises(RuntimeError) as expected:
        loss.backward()
    asked, packed = [], []

    class Asked(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            asked.append(function)
            return function(*args, **(kwargs or {}))

    hooks = torch.autograd.graph.saved_tensors_hooks(packed.append, lambda value: value)
    with Asked(), hooks, torch.inference_mode():
        words = str(released())
    assert words == str(expected.value)
    assert not asked
    assert not packed
