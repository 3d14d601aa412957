"""Tensors made of constants and sizes: their content is known, as long as nobody writes to them."""

import pytest
import torch

from dynamo_capture import graph_break, optimize
from primtorch_decomps import LIBRARY

X = torch.arange(32.0).reshape(8, 4)
Y = torch.arange(48.0).reshape(12, 4)


def test_tensor_of_constants_decides(whole):
    def f(x):
        t = torch.tensor([2, 3])
        if t[0] + t[1] > 4 and torch.tensor(True):
            x = x * int(t[0])
        return x + t.sum().item(), t.tolist(), float(t[1]), [7, 8, 9][t[0]], t

    whole(f, (X,), (X + 1,))


def test_size_computed_as_a_tensor(whole):
    def f(x):
        n = torch.div(x.size(0), 4, rounding_mode="trunc")
        return x.view(n, 4, -1), x[:n], x.new_zeros((n + 1, 2)), range(n)

    whole(f, (X,), (Y,), (torch.arange(64.0).reshape(16, 4),))


def test_legacy_constructors(whole):
    def f(x):
        n = torch.IntTensor([3])
        return (
            x[:, : n[0]],
            torch.LongTensor([1.5, -2.5]),
            torch.FloatTensor([1, 2]),
            torch.Tensor([[1], [2]]),
            n,
        )

    whole(f, (X,), (Y,))


def test_legacy_constructor_with_a_shape(whole):
    def f(x):
        return torch.FloatTensor(2, 3).shape, torch.LongTensor(4).zero_() + x[0].long()

    whole(f, (X,))


@pytest.mark.parametrize("written", ["base", "view", "data", "detached", "slice"])
def test_content_that_was_written_to_is_not_relied_on(same, written):
    def f(x):
        t = torch.tensor([1, 2])
        view = t[0]
        target = {"base": t, "view": view, "data": t.data, "detached": t.detach(), "slice": t[:1]}[written]
        target += 5
        return x * view.item(), t.tolist()

    same(f, (X,), (X + 1,))


def test_memory_without_content(same):
    def f(x):
        t = torch.empty(2)
        t.fill_(3)
        return x + t[0].item()

    same(f, (X,))


def test_error_of_a_size_that_does_not_fit(same):
    def f(x):
        return x.view(torch.tensor(5), -1)

    same(f, (X,))


def test_tensor_becomes_a_view_of_itself(whole):
    def f(x):
        y = (x * 2).unsqueeze_(0)
        y.squeeze_(0)
        y.t_()
        return y, y.shape, y.stride(), torch.nn.functional.linear(x[0], x[:, :4])

    whole(f, (X,), (Y,), (torch.arange(64.0).reshape(16, 4),))


def test_argument_becomes_a_view_of_itself(same):
    def f(x):
        x.unsqueeze_(0)
        return x * 2

    same(f, (X.clone(),), (Y.clone(),))


def test_bound_methods_of_containers_across_breaks(same):
    def f(x, items):
        append, where = items.append, x.masked_fill
        kept = x[x > 3]  # breaks: the size comes from data
        append(kept.sum())
        return where(x > 5, 0.0), items, "-".join(["a", "b"])

    same(f, (X, []), (X + 1, [1]), (X * 2, [1]))


def test_shape_kept_across_a_break_varies(same):
    def f(x):
        shape = x.shape
        graph_break()
        return shape[0] * 2, shape, type(shape)

    same(f, (X,), (Y,), (X[:5],), (X[:3],), (X[:6],), graphs=4)


class Padded(torch.nn.Module):
    """Pads to a multiple of a stride that it keeps as a buffer, as audio models do."""

    def __init__(self):
        super().__init__()
        self.register_buffer("stride", torch.tensor(4), persistent=False)
        self.register_buffer("flag", torch.tensor(True))
        self.extra = self.stride // 2

    def forward(self, x):
        length = x.shape[-1]
        frames = torch.ceil((length + self.extra) / self.stride).to(torch.int64)
        missing = frames * self.stride - length
        if self.flag:
            x = torch.nn.functional.pad(x, (self.extra, missing))
        return x, max(self.extra, missing), [7, 8, 9][self.extra]


def test_buffers_decide(whole):
    whole.made(Padded, (torch.ones(2, 5),), (torch.ones(2, 5) * 2,), (torch.ones(2, 7),), (torch.ones(2, 9),))


def test_sizes_and_buffers_make_numbers_that_vary(whole):
    """There was a version for each length."""
    lengths = (5, 6, 7, 9, 11, 13, 14)
    whole.made(Padded, *[(torch.ones(2, n),) for n in lengths], graphs=3, operators=LIBRARY)


def test_steps_over_a_size(whole):
    def chunks(x):
        n = x.shape[0]
        return (
            [x[i : i + 4].sum(0) for i in range(0, n, 4)],
            [x[i:] for i in range(0, n, n)],
            list(range(n, 0, -5)),
        )

    whole(chunks, *[(torch.ones(n, 2),) for n in (10, 11, 12)], graphs=3, operators=LIBRARY)


def test_a_buffer_that_changes(same):
    class Flagged(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("ready", torch.tensor(False))
            self.register_buffer("steps", torch.tensor(0))

        def forward(self, x):
            if not self.ready:
                self.ready.fill_(True)
                x = x + 100
            self.steps += 1
            if self.steps % 2 == 0:
                x = x * 2
            return x * self.steps.item()

    same.made(Flagged, *[(X + i,) for i in range(6)])


@pytest.mark.parametrize("how", ["fill_", "data", "view", "replaced"])
def test_buffers_changed_from_outside(how):
    module = Padded()
    fast = optimize(lambda graph, inputs: graph.forward)(module)
    assert fast(torch.ones(2, 5))[0].shape == module(torch.ones(2, 5))[0].shape
    for value in (3, 2, 5):
        match how:
            case "fill_":
                module.stride.fill_(value)
            case "data":
                module.stride.data = torch.tensor(value)
            case "view":
                module.stride.view(1)[0] = value
            case "replaced":
                module.stride = torch.tensor(value)
        assert fast(torch.ones(2, 5))[0].shape == module(torch.ones(2, 5))[0].shape


def test_a_buffer_written_through_an_alias(same):
    class Aliased(torch.nn.Module):
        def __init__(self, shares):
            super().__init__()
            self.register_buffer("count", torch.tensor([1]))
            self.other = self.count.view(()) if shares else torch.tensor(1)

        def forward(self, x):
            self.other += 1
            return x * self.count.item() if self.count else x

    same.made(lambda: Aliased(True), *[(X + i,) for i in range(4)])
    module = Aliased(False)
    fast, plain = optimize(lambda graph, inputs: graph.forward)(module), Aliased(True)
    fast(X)
    module.other = module.count.view(())
    assert torch.equal(fast(X), plain(X))


@pytest.mark.parametrize("convert", [int, float])
@pytest.mark.parametrize("broken", [False, True])
def test_numbers_out_of_tensors_made_of_an_argument(convert, broken):
    """What a content follows from is not forgotten by what is computed of it."""

    def program(x, n):
        number = convert(torch.full((2,), n).sum())
        if broken:
            print(end="")
        return x * number

    fast = optimize(lambda graph, inputs: graph.forward)(program)
    for n in (3, 1, 2, 9, 0, 4):
        assert torch.equal(fast(X, n), program(X, n))


@pytest.mark.parametrize("write", ["none", "base", "part"])
def test_contents_of_several_results(whole, write):
    def program(x):
        both = torch.tensor([2, 3])
        one, other = both.unbind()
        if write == "base":
            both.add_(1)
        if write == "part":
            one.add_(5)
        least, place = torch.tensor([3, 1, 2]).sort()
        return x * int(one) + int(other) + int(both[0]) + int(least[0]) * int(place[0])

    whole(program, (X,))
