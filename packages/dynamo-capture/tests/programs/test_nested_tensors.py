"""Nested tensors in jagged layout: one graph of plain tensors, values and gradients as in eager."""

import pytest
import torch
import torch.nn.functional as F

from dynamo_capture import optimize
from dynamo_capture.foundation.errors import CaptureError

W, B = torch.linspace(-1, 1, 35).reshape(7, 5), torch.linspace(0, 1, 7)
HEADS = torch.linspace(-0.2, 0.3, 30).reshape(6, 5)
LENGTHS = [(2, 3, 4), (3, 1, 4, 2)]


def made_of(lengths, offsets=None, trained=True):
    """A nested tensor, and the tensors that it is made of."""
    torch.manual_seed(len(lengths))
    parts = [torch.randn(length, 5, requires_grad=trained) for length in lengths]
    nested = torch.nested.as_nested_tensor(parts, layout=torch.jagged)
    if offsets is not None:
        nested = torch.nested.nested_tensor_from_jagged(torch.cat(parts), offsets)
    return parts, nested


def leaves(value):
    if isinstance(value, (tuple, list)):
        return [one for item in value for one in leaves(item)]
    if isinstance(value, torch.Tensor) and value.is_nested:
        return [value.values(), value.offsets(), value.dim(), value.requires_grad, type(value)]
    return [value]


def assert_same(one, other):
    assert type(one) is type(other)
    if isinstance(one, (tuple, list)):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            assert_same(mine, theirs)
    elif isinstance(one, torch.Tensor):
        torch.testing.assert_close(one, other)
        assert one.requires_grad == other.requires_grad
    else:
        assert one == other


class Counting:
    def __init__(self):
        self.graphs = []

    def __call__(self, graph, inputs):
        assert not any(isinstance(value, torch.Tensor) and value.is_nested for value in inputs)
        self.graphs.append(graph)
        return graph.forward


def outcome(function, lengths, trained):
    parts, nested = made_of(lengths, trained=trained)
    found = leaves(function(nested))
    followed = [one for one in found if isinstance(one, torch.Tensor) and one.requires_grad]
    if followed:
        sum((one * one).sum() for one in followed).backward()
    return found, [part.grad for part in parts]


def captured(function, *all_lengths, graphs=None, **options):
    """Compares with eager, with gradients and without."""
    for trained in (True, False):
        counting = Counting()
        fast = optimize(counting, fullgraph=True, **options)(function)
        for lengths in all_lengths or LENGTHS:
            expected, result = outcome(function, lengths, trained), outcome(fast, lengths, trained)
            assert_same(result, expected)
        assert counting.graphs
        assert graphs is None or len(counting.graphs) == graphs


def layer(nested):
    hidden = F.gelu(F.linear(nested, W, B))
    return F.layer_norm(hidden @ W + nested, (5,)).relu()


@pytest.mark.parametrize(
    "function",
    [
        lambda n: (n.sin() + 2) * n,
        lambda n: 3 - n / 2,
        lambda n: n * torch.ones(5) + torch.ones(1, 1, 5),
        lambda n: torch.where(n > 0, n, n * 2),
        layer,
        lambda n: F.softmax(n, -1).transpose(1, 2),
        lambda n: (n.unsqueeze(-1), n.clone(), n.detach() + 1),
        lambda n: torch.cat([n, n * 2], -1),
        lambda n: F.dropout(F.silu(n), 0.0),
        lambda n: (n.values() * 2, n.offsets() + 1),
        lambda n: torch.nested.to_padded_tensor(n * 2, 0.0),
        lambda n: n.to(torch.float64) + 1,
    ],
)
def test_operations(function):
    captured(function)
    captured(function, dynamic=True)


def test_questions_about_the_form():
    def f(n):
        known = n.is_nested, n.layout, n.dtype, n.dim(), n.size(-1), n.shape[0], n.ndim, n.requires_grad
        return known, n + 1, isinstance(n, torch.Tensor)

    captured(f)


def test_any_number_of_rows_is_one_graph():
    captured(layer, (2, 3, 4), (5, 6, 7), (1, 2, 8), graphs=1)
    captured(layer, (2, 3, 4), (3, 1, 4, 2), (5, 6), graphs=1, dynamic=True)


def test_one_is_made_inside():
    def f(n):
        offsets = n.offsets().clone()
        one = torch.nested.nested_tensor_from_jagged(n.values() * 3, n.offsets())
        other = torch.nested.nested_tensor_from_jagged(n.values() * 3, offsets)
        return one * n, other * other

    captured(f)

    def from_lengths(values, lengths):
        return torch.nested.nested_tensor_from_jagged(values * 2, lengths=lengths).sin()

    fast = optimize(Counting(), fullgraph=True)(from_lengths)
    values, lengths = torch.randn(9, 5, requires_grad=True), torch.tensor([2, 4, 3])
    assert_same(leaves(fast(values, lengths)), leaves(from_lengths(values, lengths)))


def test_ragged_sizes_are_equal_where_the_offsets_are_one_object():
    def f(one, other):
        return one + other if one.shape == other.shape else one.sin()

    counting = Counting()
    fast = optimize(counting, fullgraph=True)(f)
    _, first = made_of((2, 3, 4))
    _, same = made_of((2, 3, 4), first.offsets())
    _, another = made_of((2, 3, 4), first.offsets().clone())
    for second in (same, another, same):
        assert_same(leaves(fast(first, second)), leaves(f(first, second)))
    assert len(counting.graphs) == 2


def test_attention():
    def block(n):
        q, k, v = (
            F.linear(n, w).unflatten(-1, (2, 3)).transpose(1, 2) for w in (HEADS, HEADS + 0.1, HEADS * 2)
        )
        found = F.scaled_dot_product_attention(q, k, v, scale=0.3)
        return found.transpose(1, 2).flatten(-2) @ HEADS + n

    captured(block)
    captured(block, dynamic=True)


def test_parts_by_lengths_that_are_known():
    _, nested = made_of((2, 3, 4), trained=False)
    counting = Counting()
    assert_same(list(optimize(counting, fullgraph=True)(lambda n: n.unbind())(nested)), list(nested.unbind()))
    assert len(counting.graphs) == 1


def test_a_shape_that_leaves_the_graph():
    _, nested = made_of((2, 3, 4))
    shape = optimize(Counting(), fullgraph=True)(lambda n: (n * 2).shape)(nested)
    assert shape == (nested * 2).shape
    assert shape[1] == nested.shape[1]


def test_a_nested_leaf_gets_its_gradient():
    _, nested = made_of((2, 3, 4), trained=False)
    one, other = (nested.detach().clone().requires_grad_() for _ in range(2))
    optimize(Counting(), fullgraph=True)(layer)(one).values().sum().backward()
    layer(other).values().sum().backward()
    assert_same(leaves(one.grad), leaves(other.grad))
    with torch.no_grad():
        assert optimize(Counting(), fullgraph=True)(lambda n: (n.requires_grad, n + 1))(one)[0]


@pytest.mark.parametrize(
    "function",
    [
        lambda n: n.add_(1),
        lambda n: n.stride(),
        lambda n: n.shape[1] > 5,
        lambda n: F.scaled_dot_product_attention(
            *[n.unflatten(-1, (1, 5)).transpose(1, 2)] * 3, is_causal=True
        ),
    ],
)
def test_what_breaks_the_graph_is_eagers(function):
    _, nested = made_of((2, 3, 4), trained=False)
    with pytest.raises(CaptureError):
        optimize(Counting(), fullgraph=True)(function)(nested)
    try:
        expected = leaves(function(nested))
    except Exception as error:
        with pytest.raises(type(error)):
            optimize(Counting())(function)(nested)
        return
    result = leaves(optimize(Counting())(function)(made_of((2, 3, 4), trained=False)[1]))
    if isinstance(expected[0], torch.Tensor) and not torch.is_inference(expected[0]):
        assert len(result) == len(expected)
