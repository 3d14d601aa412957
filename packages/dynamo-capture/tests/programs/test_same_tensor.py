"""What torch gives back: the tensor itself or another one, for known sizes and for symbolic ones."""

import pytest
import torch
from torch.nn import functional

CALLS = {
    "dropout of nothing": lambda x: functional.dropout(x, 0.0),
    "dropout in evaluation": lambda x: functional.dropout(x, 0.5, training=False),
    "torch.dropout": lambda x: torch.dropout(x, 0.5, False),
    "contiguous": lambda x: x.contiguous(),
    "to": lambda x: x.to(torch.float32),
    "cpu": lambda x: x.cpu(),
    "expand_as": lambda x: x.expand_as(x),
    "positive": lambda x: +x,
    "real": lambda x: x.real,
    "sum_to_size": lambda x: x.sum_to_size(x.shape),
    "as_subclass": lambda x: x.as_subclass(torch.Tensor),
    "flatten": lambda x: x.flatten(),
    "view_as": lambda x: x.view_as(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_whether_an_operator_gives_its_argument(whole, name):
    call = CALLS[name]

    def f(x):
        y = call(x)
        return y is x, y, x + 1

    whole(f, *[(torch.arange(float(size)),) for size in (3, 4, 5)])


def test_dropout_of_an_empty_tensor_gives_that_tensor(whole):
    def f(x):
        y = functional.dropout(x, 0.5)
        return y is x, x + 1

    whole(f, *[(torch.zeros(0, size),) for size in (3, 4, 5)])


def test_a_probability_is_refused_for_all_sizes(same):
    def f(x):
        try:
            return torch.dropout(x, 2.5, False)
        except RuntimeError as error:
            return str(error), x + 1

    same(f, *[(torch.zeros(size),) for size in (3, 4, 5)])
