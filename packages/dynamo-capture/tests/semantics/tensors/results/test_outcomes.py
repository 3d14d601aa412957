"""What the failure of an operation on tensors without data means."""

from __future__ import annotations

import torch

from dynamo_capture import optimize


def test_a_formula_refuses_in_other_words_than_torch() -> None:
    def f(x):
        try:
            return x.istft((1, 2), {"a": 1}, x)
        except Exception as error:
            return str(error), x + 1

    fast = optimize(lambda graph, inputs: graph.forward)(f)
    assert "argument 'n_fft'" in fast(torch.ones(3, 2, dtype=torch.long))[0]
