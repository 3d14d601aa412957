"""Which of the frames that a break left are resumed one by one."""

import torch

from dynamo_capture import explain

X = torch.ones(3)


def _graphs(function):
    report = explain(function)(X)
    return sum(replacement.graph is not None for _, replacement in report.replacements)


def test_a_function_called_by_a_generator_is_not_resumed_in_the_middle():
    def breaks(x):
        return x.sum().tolist() + 1

    def summed(x):
        return sum(breaks(item) for item in [x, x, x]) * x

    assert _graphs(lambda x: breaks(x) * x) == 2
    assert any(code is breaks.__code__ for code, _ in explain(summed)(X).replacements)
