"""Recurrent layers over packed sequences give what torch's operators give, and their gradients."""

import itertools

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from aot_autograd.operators import packed_layers

LENGTHS = torch.tensor([19, 3, 17, 17, 1, 2])
CLASSES = {"gru": torch.nn.GRU, "lstm": torch.nn.LSTM}
FORMS = list(itertools.product(packed_layers.KINDS, (False, True), (1, 2), (True, False)))


class Example:
    """A layer with its arguments. ``run`` gives results, gradients and second derivatives by an operator."""

    def __init__(self, kind, bidirectional, layers, bias, dtype=torch.float64):
        torch.manual_seed(0)
        self.kind, self.dropout = kind, 0.3 if layers > 1 else 0.0
        more = {} if kind in CLASSES else {"nonlinearity": kind[4:]}
        cls = CLASSES.get(kind, torch.nn.RNN)
        form = {"bidirectional": bidirectional, "bias": bias, "dropout": self.dropout, **more}
        self.module = cls(5, 7, layers, **form).to(dtype)
        self.form = (bias, layers, self.dropout, True, bidirectional)
        self.x = torch.randn(6, 19, 5, dtype=dtype, requires_grad=True)
        count = (1 + bidirectional) * layers
        states = 1 + (kind == "lstm")
        self.hx = [torch.randn(count, 6, 7, dtype=dtype, requires_grad=True) for _ in range(states)]
        self.leaves = [self.x, *self.hx, *self.module.parameters()]

    def call(self, operator):
        packed = pack_padded_sequence(self.x, LENGTHS, batch_first=True, enforce_sorted=False)
        hx = tuple(self.hx) if self.kind == "lstm" else self.hx[0]
        torch.manual_seed(3)
        return operator(packed.data, packed.batch_sizes, hx, self.module._flat_weights, *self.form)

    def run(self, operator):
        results = self.call(operator)
        torch.manual_seed(4)
        loss = sum((one * torch.randn_like(one)).sum() for one in results)
        first = torch.autograd.grad(loss, self.leaves, retain_graph=True)
        again = torch.autograd.grad(loss, self.leaves, create_graph=True)
        second = torch.autograd.grad(sum((one * one).sum() for one in again), self.leaves, allow_unused=True)
        return results, first, again, second


def taking(kind):
    """The operator of a kind, which must not be left to torch."""

    def run(*given):
        results = packed_layers.AT_LESS_COST[packed_layers.KINDS[kind]](*given)
        assert "_Layer" in type(results[0].grad_fn).__name__
        return results

    return run


@pytest.mark.parametrize(("kind", "bidirectional", "layers", "bias"), FORMS)
def test_results_and_gradients_are_those_of_torch(kind, bidirectional, layers, bias):
    example = Example(kind, bidirectional, layers, bias)
    expected, found = example.run(packed_layers.KINDS[kind]), example.run(taking(kind))
    for one, two in zip(expected[0], found[0], strict=True):
        assert torch.equal(one, two)
    for one, two in zip(itertools.chain(*expected[1:]), itertools.chain(*found[1:]), strict=True):
        torch.testing.assert_close(two, one, rtol=1e-9, atol=1e-9)
        assert one.stride() == two.stride()


@pytest.mark.parametrize("kind", packed_layers.KINDS)
def test_gradients_are_as_near_to_float64_as_those_of_torch(kind):
    """Of single precision, on the same numbers in double precision."""

    def gradients(operator, dtype):
        example = Example(kind, True, 2, True, torch.float32)
        example.module.to(dtype)
        example.dropout, example.form = 0.0, (True, 2, 0.0, True, True)
        example.x, *example.hx = (one.detach().to(dtype).requires_grad_() for one in (example.x, *example.hx))
        example.leaves = [example.x, *example.hx, *example.module.parameters()]
        results = example.call(operator)
        return torch.autograd.grad(sum((one * one).sum() for one in results), example.leaves)

    exact = gradients(packed_layers.KINDS[kind], torch.float64)
    usual, found = (
        sum(float((one.double() - two).square().sum()) for one, two in zip(made, exact, strict=True)) ** 0.5
        for made in (gradients(run, torch.float32) for run in (packed_layers.KINDS[kind], taking(kind)))
    )
    assert found <= 1.5 * usual


def test_the_result_may_be_written_to():
    def change(operator):
        example = Example("gru", False, 1, True)
        data, last = example.call(operator)
        data.mul_(2)
        return torch.autograd.grad(data.sum() + last.sum(), example.leaves)

    for one, two in zip(change(torch.gru), change(taking("gru")), strict=True):
        torch.testing.assert_close(two, one)


def test_a_result_without_a_gradient_and_several_gradients_at_once():
    def derive(operator):
        example = Example("lstm", True, 1, True)
        data, _, cell = example.call(operator)
        several = torch.stack([torch.ones_like(data), torch.arange(data.numel()).view_as(data) / 9])
        leaves = example.leaves
        batched = torch.autograd.grad(data, leaves, several, is_grads_batched=True, retain_graph=True)
        return *torch.autograd.grad(cell.sum(), leaves, retain_graph=True), *batched

    for one, two in zip(derive(torch.lstm), derive(taking("lstm")), strict=True):
        torch.testing.assert_close(two, one)


def not_followed(example):
    for weight in example.module.parameters():
        weight.requires_grad_(False)


def halved(example):
    example.hx = [one.detach().half() for one in example.hx]


@pytest.mark.parametrize("change", [not_followed, halved])
def test_other_forms_are_left_to_torch(change):
    def outcome(operator):
        example = Example("gru", False, 1, True)
        change(example)
        try:
            results = example.call(operator)
        except RuntimeError as error:
            return str(error)
        return type(results[0].grad_fn).__name__

    assert outcome(torch.gru) == outcome(packed_layers.AT_LESS_COST[torch.gru])


def test_hooks_see_what_torch_saves():
    def saved(operator):
        seen = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda one: seen.append(one.shape) or one, lambda one: one
        ):
            Example("gru", False, 1, True).call(operator)
        return seen

    assert saved(torch.gru) == saved(packed_layers.AT_LESS_COST[torch.gru])
