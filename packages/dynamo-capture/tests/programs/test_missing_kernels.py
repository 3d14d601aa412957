"""Operators in place that have no kernel for a dtype are refused where the program calls them, before the graph runs."""

import torch


def test_an_input_that_is_written_to(same):
    def f(x, y):
        y = y + 1
        try:
            x.lcm_(y)
        except NotImplementedError as error:
            return y, str(error)
        return y, None

    same(
        f, (torch.ones(2), torch.ones(2)), (torch.ones(3, dtype=torch.long), torch.ones(3, dtype=torch.long))
    )
