"""What a call can read and write is found by name, and put back."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fxstack.verification.state import restored, state_of


def test_tensors_have_the_name_that_says_most() -> None:
    model = nn.Linear(2, 1)
    other = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([*model.parameters(), other], lr=0.1)

    def step(x: Tensor) -> None:
        optimizer.zero_grad()
        model(x).sum().backward()

    found = state_of(step, (torch.ones(3, 2),), {})
    assert list(found.tensors) == [
        "argument [0]",
        "model.weight",
        "model.bias",
        "optimizer.param_groups[0]['params'][2]",
    ]
    assert found.keepers == (optimizer,)


def test_gradients_and_the_state_of_an_optimizer_are_put_back() -> None:
    weight = nn.Parameter(torch.ones(2))
    kept = weight.grad = torch.tensor([1.0, 2.0])
    optimizer = torch.optim.Adam([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(torch.ones(1))

    def step() -> None:
        kept.add_(1)
        optimizer.step()
        optimizer.zero_grad()
        optimizer.param_groups[0]["lr"] = 0.5
        scaler.update(8.0)

    with restored(state_of(step, (), {})) as restore:
        for put_back in (restore, lambda: None):
            step()
            assert weight.grad is None
            assert len(optimizer.state) == 1
            put_back()
    assert weight.grad is kept
    assert (weight.tolist(), kept.tolist()) == ([1.0, 1.0], [1.0, 2.0])
    assert (dict(optimizer.state), optimizer.param_groups[0]["lr"]) == ({}, 0.1)
    assert scaler.get_scale() == 4.0
