"""Functions of torch that are no operations end a graph."""

from __future__ import annotations

import pytest
import torch

from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.tensors.not_operations import check_function_is_operation


@pytest.mark.parametrize(
    "function",
    [torch._cudnn_rnn_flatten_weight, torch._sobol_engine_ff_, torch.is_conj],
    ids=lambda function: str(function.__name__),
)
def test_functions_that_end_a_graph(function: object) -> None:
    """One that moves weights into one piece of memory, as ``flatten_parameters`` does on a GPU, would be recorded as a
    computation whose result nobody reads."""
    with pytest.raises(GraphBreak):
        check_function_is_operation(function)


def test_operations_do_not() -> None:
    check_function_is_operation(torch.sin)
