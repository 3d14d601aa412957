"""Open integers among indices are selected; torch's own kernels say what a key means."""

from __future__ import annotations

import pytest
import torch

from dynamo_capture import optimize
from primtorch_decomps import LIBRARY

X = torch.arange(24.0).view(2, 3, 4)
MASK = torch.tensor([[True, False, True], [False, True, True]])


def _graphs_of(program, *calls):
    """How many graphs the calls make; each is compared with eager."""
    graphs = []

    def backend(graph_module, example_inputs):
        graphs.append(graph_module)
        return graph_module.forward

    captured = optimize(backend, operators=LIBRARY)(program)
    for call in calls:
        torch.testing.assert_close(captured(*call), program(*call), rtol=0, atol=0)
    return len(graphs)


def test_each_kind_of_key_beside_numbers_from_data():
    def program(x, i, j):
        return [
            x[i], x[i, j], x[i, :, j], x[:, i, None, j], x[..., j], x[i, ..., j, None], x[None, i, 1:],
            x[i, [0, 2]], x[:, i, torch.tensor([1, 0])], x[0, i], x[i, 0, j], x[i, MASK[0]], x[MASK, j], x[..., True, j]
        ]  # fmt: skip

    calls = [(X, torch.tensor(i), torch.tensor(j)) for i, j in ((0, 2), (1, -1), (-2, 0))]
    assert _graphs_of(program, *calls) == 1


def test_an_indexed_tensor_is_a_view():
    def program(x, i):
        x = x.clone()
        row = x[i, :, i]
        row += 10
        x[i, 1:, i] -= 1
        x[i][i] = 0
        return x, row

    assert _graphs_of(program, *((X, torch.tensor(i)) for i in (0, 1, -1))) == 1


def test_small_tensors_that_are_no_numbers():
    def program(x, byte, flag):
        return x[byte], x[flag], x[byte, flag]

    small = [(torch.tensor(b, dtype=torch.uint8), torch.tensor(f)) for b, f in ((1, True), (0, False))]
    _graphs_of(program, *((X, *call) for call in small))


def test_an_index_that_does_not_exist_raises_what_eager_raises():
    def program(x, i):
        return x[:, i] + 1

    captured = optimize(lambda graph_module, example_inputs: graph_module.forward, operators=LIBRARY)(program)
    captured(X, torch.tensor(2))
    for function in (program, captured):
        with pytest.raises(IndexError, match="out of bounds"):
            function(X, torch.tensor(3))


def test_sections_and_places_of_a_split_are_told_apart():
    def program(x, where):
        return x.tensor_split(where, dim=2)

    _graphs_of(program, (X, torch.tensor(2)), (X, torch.tensor([2])), (X, torch.tensor([1])))


VARYING = (2, 3, 5, 4)


def test_each_kind_of_key_beside_numbers_that_vary():
    def program(x, i):
        return [
            x[i], x[-i], x[i, 1], x[i, i - 1], x[:, i, None, i - 2], x[..., i], x[i, ..., 0, None], x[None, i, 1:],
            x[i, [0, 2]], x[:, i, torch.tensor([1, 0])], x[..., True, i], x[[i, 0]]
        ]  # fmt: skip

    x = torch.arange(216.0).view(6, 6, 6)
    assert _graphs_of(program, *((x, i) for i in VARYING)) == 2


def test_what_varies_is_an_index_of_a_view():
    def program(x, i):
        x = x.clone()
        row = x[:, i]
        row += 10
        x[i, 1:, i] -= 1
        x[[i, 1]] = 3
        x[i][i] = 0
        x[i, i] *= x[-i, 0]
        return x, row

    x = torch.arange(216.0).view(6, 6, 6)
    assert _graphs_of(program, *((x, i) for i in VARYING)) == 2


def test_a_table_that_is_read_by_a_step_is_one_graph_more():
    table = torch.linspace(0, 1, 50)

    def program(x, step):
        before = table[step - 10] if step >= 10 else 1.0
        return x * table[step].sqrt() + before

    assert _graphs_of(program, *((X, step) for step in (40, 30, 49, 20, 5, 7))) == 3


def test_gradients_of_what_is_selected():
    def program(weight, i):
        (weight[i] * weight[:, -i]).sum().backward()
        grad, weight.grad = weight.grad, None
        return grad

    weight = torch.randn(6, 6, requires_grad=True)
    captured = optimize(lambda graph_module, _: graph_module.forward, operators=LIBRARY)(program)
    for i in VARYING:
        assert torch.equal(captured(weight, i), program(weight, i))


@pytest.mark.parametrize(
    "key", [lambda i: i, lambda i: -i, lambda i: (slice(None), i), lambda i: (i, i, i), lambda i: (0, [i])]
)
def test_an_index_that_varies_and_does_not_exist_raises_what_eager_raises(key):
    def program(x, i):
        return x[key(i)] * 2

    captured = optimize(lambda graph_module, _: graph_module.forward, operators=LIBRARY)(program)
    for i in (3, 2, 7, 3, 6):
        outcomes = []
        for function in (program, captured):
            try:
                outcomes.append(function(torch.ones(6, 6), i).tolist())
            except IndexError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1], i
