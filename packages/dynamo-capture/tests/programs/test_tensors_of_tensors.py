"""Tensors that are made of tensors with one number each."""

from __future__ import annotations

import pytest
import torch

X = torch.tensor([[3.5, -2.0], [0.25, 7.0]])


@pytest.mark.parametrize(
    "make",
    [
        lambda x: torch.tensor([x.max(), x.min(), 2.5]),
        lambda x: torch.tensor([x.argmax(), 5, x.argmin().int()], device=x.device).unsqueeze(1),
        lambda x: torch.as_tensor((x.argmax(),), dtype=torch.float64),
        lambda x: torch.tensor([x.max().bfloat16(), x.max()]),
        lambda x: torch.tensor([x.max() > 0, x.min() > 0]),
        lambda x: torch.tensor([x.argmax(), 0.5]),
        lambda x: torch.tensor([x.argmax(), 1], dtype=torch.float32),
    ],
)
def test_numbers_side_by_side_are_part_of_the_graph(whole, make):
    whole(lambda x: (make(x), make(x) + 1), (X,), (-X,))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: torch.tensor([x.argmax() + 300], dtype=torch.uint8),
        lambda x: torch.tensor([x.max().double() * 1e300], dtype=torch.float32),
        lambda x: torch.tensor([x.max(), x]),
        lambda x: torch.tensor([x.max() > 0, 3]),
        lambda x: torch.tensor([[x.max()], [x.min()]]),
        lambda x: torch.tensor([x.max(), 1j]),
        lambda x: torch.tensor([x.max()], requires_grad=True),
    ],
)
def test_what_torch_may_refuse_is_left_to_torch(same, make):
    def program(x):
        try:
            return make(x) + 1
        except (RuntimeError, TypeError, ValueError) as error:
            return x, str(error)

    same(program, (X,), (-X,))


def test_tensors_with_a_history_are_left_to_torch(same):
    given = X.clone().requires_grad_()
    torch.tensor([given.max(), 1.0])  # torch warns once in a process
    same(lambda x: torch.tensor([x.max(), 1.0]), (given,), breaks=1)
