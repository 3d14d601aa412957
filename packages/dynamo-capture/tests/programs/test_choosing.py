"""Choices, samples, shuffles and seeds of Python's generators, and tensors filled from a ``torch.Generator``."""

from __future__ import annotations

import random

import torch

from primtorch_decomps import LIBRARY

X = torch.arange(6.0).reshape(2, 3) + 1


def test_choices_among_numbers_are_one_graph(whole):
    def f(x):
        order = list(range(3))
        random.shuffle(order)
        scale = random.choice([0.5, 1.5, 2.5]) + random.choices([1.0, 2.0], weights=[1, 3], k=2)[1]
        picked = random.sample(range(10), 3)
        return x[:, order] * scale + random.choice((1, 2, 4)), order, picked, random.getrandbits(5)

    whole(f, *[(X,)] * 6, operators=LIBRARY, graphs=1)


def test_seeds_among_draws(whole):
    def make():
        own = random.Random(3)

        def f(x):
            before = random.random()
            random.seed(7)
            own.seed("seven")
            return x * random.random() + own.random(), before, own.sample([1, 2, 3], 2)

        return f

    whole.made(make, *[(X,)] * 3, operators=LIBRARY)


def test_what_is_chosen_among_objects_decides(same):
    def f(x, numbers):
        layers = [torch.sin, torch.cos, torch.exp]
        random.shuffle(layers)
        random.shuffle(numbers)
        random.shuffle(numbers)
        random.shuffle([])
        word = random.choice(["a", "b"])
        return (
            random.choice(layers)(x) * numbers[0],
            layers[0](x),
            numbers,
            word,
            torch.cat([x] * random.choice([1, 2])),
        )

    same(f, *[(X, [1, 2, 3])] * 5, operators=LIBRARY)


def test_wrong_choices_raise_as_in_python(same):
    def f(x, which):
        try:
            if which == 0:
                random.choice([])
            elif which == 1:
                random.sample([1, 2], 3)
            elif which == 2:
                random.choices([1, 2], weights=[1])
            else:
                random.shuffle((1, 2))
        except (IndexError, ValueError, TypeError) as error:
            return x + random.choice([1, 2]), type(error).__name__, str(error)
        return x

    same(f, *[(X, which) for which in (0, 1, 2, 3)], operators=LIBRARY)


def test_tensors_filled_from_a_generator(whole):
    def make():
        own = torch.Generator().manual_seed(5)

        def f(x):
            noise = torch.empty(x.shape).normal_(generator=own)
            zeros = torch.zeros(5).uniform_(-1, 1, generator=own)
            x = x.clone()
            x[0].bernoulli_(0.3, generator=own)
            return x + noise, zeros, torch.normal(1.0, 2.0, (3,), generator=own)

        return f

    rows = [(torch.ones(n, 3),) for n in (2, 2, 4, 5, 2)]
    whole.made(make, *rows, operators=LIBRARY)


def test_draws_that_depend_on_tensors_run_in_python(same):
    def make():
        own = torch.Generator().manual_seed(5)

        def f(x):
            y = torch.bernoulli(torch.sigmoid(x), generator=own)
            turned = torch.empty(3, 2).t().normal_(generator=own)
            return y + turned, torch.multinomial(torch.ones(4), 2, generator=own)

        return f

    same.made(make, *[(X,)] * 3)


def test_tensors_of_numbers_from_data(whole):
    def f(x, sizes):
        first, second = sizes.tolist()
        made = torch.tensor([[first, 1], [2, second]], dtype=torch.int32)
        return (
            x[0] * torch.tensor([0, first, second]),
            made,
            x[:, [first, second]],
            torch.as_tensor((first, second)),
        )

    whole(f, *[(X, torch.tensor(n)) for n in ([1, 2], [2, 0], [-1, 1])], operators=LIBRARY, graphs=1)
