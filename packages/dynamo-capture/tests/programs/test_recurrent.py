"""Sequences of different lengths: padded in the graph, packed with a break."""

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from dynamo_capture import optimize


def _sequences(*lengths):
    return [torch.arange(n * 2.0).reshape(n, 2).requires_grad_() for n in lengths]


@pytest.mark.parametrize("side", ["left", "right"])
def test_one_graph_pads_all_lengths(whole, side):
    def f(xs, batch_first):
        return pad_sequence([x * 2 for x in xs], batch_first, 0.5, padding_side=side).sin()

    calls = [(_sequences(*lengths), True) for lengths in ((3, 5, 2), (4, 2, 6), (7, 8, 9), (9, 3, 3))]
    whole(f, *calls, graphs=2)
    whole(f, (_sequences(3, 1), False))


def test_padding_as_torch_defines_it(same):
    def f(xs):
        return pad_sequence(xs)

    not_counted = {"own version"}  # torch writes the sequences into one result
    same(f, ([torch.ones(2, 3), torch.ones(3)],), ignore=not_counted)
    same(f, ([torch.ones(2, 3), torch.ones(3, 1)],), ignore=not_counted)
    same(f, ([torch.ones(2, 2).int(), torch.ones(3, 2) * 1.5],), ignore=not_counted)
    same(f, ([],))


def test_packing_breaks_where_it_happens(same):
    def f(x, lengths):
        packed = pack_padded_sequence(x * 2, lengths, batch_first=True, enforce_sorted=False)
        padded, found = pad_packed_sequence(packed, batch_first=True)
        return padded + 1, found

    x = torch.arange(24.0).reshape(3, 4, 2)
    same(f, (x, torch.tensor([4, 2, 3])), (x + 1, torch.tensor([1, 2, 4])), eager=0)


@pytest.mark.parametrize("instead", [False, True], ids=["as_it_is", "another"])
def test_python_may_call_another_function_where_a_graph_has_ended(forward, instead):
    """Without ``in_python`` it is torch's, whose gradients have eager's last bits."""
    torch.manual_seed(0)
    layer = torch.nn.GRU(2, 3, batch_first=True, bidirectional=True)
    called = []

    def other(*args, **kwargs):
        called.append(len(args))
        return torch.gru(*args, **kwargs)

    def f(x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        made, _ = layer(packed)
        return pad_packed_sequence(made, batch_first=True)[0]

    def run(program, *given):
        layer.zero_grad()
        padded = program(*given)
        (padded * padded).sum().backward()
        return padded, *(one.grad for one in layer.parameters())

    x = torch.arange(120.0).reshape(3, 20, 2).sin()
    fast = optimize(forward, in_python={torch.gru: other} if instead else {})(f)
    for lengths in ([20, 2, 13], [1, 20, 20]):
        given = x, torch.tensor(lengths)
        for expected, found in zip(run(f, *given), run(fast, *given), strict=True):
            assert torch.equal(expected, found)
    assert called == [9, 9] * instead


def test_a_callee_that_a_graph_break_computes_is_called(forward):
    """What is on the stack before the callee is computed stands for no call yet."""

    def made(x):
        print(end="")
        return torch.relu

    def f(x):
        return made(x * 2)(x + 1) * 3

    fast = optimize(forward, in_python={torch.relu: lambda x: torch.relu(x) + 1})(f)
    x = torch.arange(-3.0, 3.0)
    assert torch.equal(fast(x), f(x))
    assert len(fast.__fxstack_capture__.report.replacements) >= 2
