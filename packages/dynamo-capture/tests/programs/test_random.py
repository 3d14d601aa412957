"""The ``random`` module: numbers are drawn in every run, and generators move on as in eager."""

import random

import torch
from torch import nn

X = torch.arange(6.0).reshape(2, 3) + 1


def test_floats_are_drawn_in_every_run(whole):
    def f(x):
        a = random.random()
        return x * a + random.uniform(-1, 1), a, random.gauss(0, 1) * 2

    whole(f, (X,), (X,), (X,))


def test_a_generator_of_the_program(whole):
    def make():
        generator = random.Random(3)

        def f(x):
            return x + generator.random(), generator.getstate is None, random.random()

        def run(x):
            return f(x), generator.random()

        return run

    whole.made(make, (X,), (X,), (X,))


def test_a_number_that_decides(same):
    def f(x):
        if random.random() < 0.5:
            return x + random.random()
        return x - 1

    def run(x):
        return [f(x) for _ in range(8)]

    same(run, (X,), (X,))


def test_layers_that_are_dropped(same):
    def make():
        torch.manual_seed(0)
        layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))

        def f(x):
            for layer in layers:
                if random.uniform(0, 1) < 0.4:
                    continue
                x = torch.relu(layer(x))
            return x

        return f

    same.made(make, *[(X,)] * 5)


def test_integers_and_choices(same):
    def f(x):
        order = [0, 1, 2]
        random.shuffle(order)
        scale = random.random()
        return x[:, order] * scale, random.choice([torch.sin, torch.cos])(x), x[:, random.randint(0, 2)]

    same(f, (X,), (X,), (X,))


def test_a_generator_that_is_seeded_in_between(same):
    def f(x):
        a = random.random()
        random.seed(4)
        b = random.random()
        return x * a + b, b

    same(f, (X,), (X,))


def test_a_subclass_of_the_generator(same):
    class Constant(random.Random):
        def random(self):
            return 0.25

    generator = Constant()

    def f(x):
        return x * generator.random() + generator.uniform(0, 4)

    same(f, (X,), (X,))


def test_a_draw_before_an_operation_that_fails(same):
    def f(x, y):
        a = random.random()
        try:
            return torch.linalg.cholesky(y) * a
        except RuntimeError:
            return x * a

    same(f, (X, torch.eye(2)), (X, -torch.eye(2)), (X, torch.eye(2)))
