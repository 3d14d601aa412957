"""The ``random`` module: numbers are drawn in every run, and generators move on as in eager."""

import random

import numpy
import torch
from torch import nn

from dynamo_capture import disable, optimize
from primtorch_decomps import LIBRARY

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


def test_integers_are_drawn_in_every_run(whole):
    def f(x):
        n = random.randint(1, 6)
        m = random.randrange(2, 5)
        return x * n + random.randrange(4) - m, n, n * 2 + m

    whole(f, *[(X,)] * 6, operators=LIBRARY)


def test_integers_shift_roll_and_select(whole):
    def f(x):
        row = x[random.randint(0, 1)]
        return row, x.add(random.randint(-3, 3), alpha=2), torch.full((2,), random.randrange(7))

    whole(f, *[(X,)] * 6, operators=LIBRARY)


def test_a_random_crop_is_one_graph(whole):
    wide = torch.arange(60.0).reshape(3, 20)

    def f(x):
        i = random.randint(0, 12)
        return x[:, i : i + 8] * 2, x.roll(random.randrange(5), 1)

    whole(f, *[(wide,)] * 6, operators=LIBRARY, graphs=1)


def test_integers_that_decide(same):
    def f(x, layers):
        n = random.randint(0, 3)
        if n > 1:
            x = x * 2
        return layers[random.randrange(2)](x), list(range(n)), [n] * n

    same(f, *[(X, [torch.sin, torch.cos])] * 8, operators=LIBRARY)


def generators(make):
    """A program that draws, with what tells the states of its generators afterwards."""

    def made():
        shared = [
            numpy.random.RandomState(5).get_state()
        ]  # of the module's generator, one for each way of running
        own, legacy, torch_own = numpy.random.default_rng(3), numpy.random.RandomState(4), torch.Generator()
        torch_own.manual_seed(7)
        program = make(own, legacy, torch_own)

        @disable
        def start():
            numpy.random.set_state(shared[0])

        @disable
        def states():
            shared[0] = numpy.random.get_state()
            return (
                str(own.bit_generator.state),
                str(legacy.get_state()),
                str(shared[0]),
                torch_own.get_state(),
            )

        return lambda x: (start(), program(x), states())

    return made


def test_generators_of_numpy(same):
    def make(own, legacy, _):
        def f(x):
            a = numpy.random.rand() * x + numpy.random.normal(2.0, 0.5)
            b = torch.from_numpy(numpy.random.randn(2, 3)) + legacy.uniform(-1, 1)
            c = torch.as_tensor(own.normal(size=(2, 3))) * own.random()
            return a, b, c, numpy.random.randint(10), x + legacy.randint(1, 5), numpy.random.rand(2)

        return f

    same.made(generators(make), *[(X,)] * 5, operators=LIBRARY)


def test_what_numpy_draws_is_one_graph(whole):
    def f(x):
        noise = torch.from_numpy(numpy.random.randn(3)).float()
        return x + noise * numpy.random.uniform(0.5, 1.5), x * numpy.random.randint(1, 4)

    seeded = optimize(lambda graph, inputs: graph.forward, fullgraph=True, operators=LIBRARY)(f)
    numpy.random.seed(0)
    expected = [f(X) for _ in range(4)]
    numpy.random.seed(0)
    torch.testing.assert_close([seeded(X) for _ in range(4)], expected, rtol=0, atol=0)


def test_a_generator_of_torch(same):
    def make(_, __, own):
        def f(x):
            a = x + torch.randn(3, generator=own)
            b = torch.rand(2, 3, generator=own, dtype=torch.float64) * a
            order = torch.randperm(3, generator=own)
            return b[:, order], torch.randint(0, 9, (4,), generator=own)

        return f

    same.made(generators(make), *[(X,)] * 4, graphs=None)


def test_what_a_generator_of_torch_draws_is_one_graph():
    own = torch.Generator().manual_seed(3)

    def f(x, generator):
        return torch.nn.functional.relu(x) + torch.randn(x.shape, generator=generator), torch.rand(2)

    fast = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(f)
    other = torch.Generator().manual_seed(3)
    for _ in range(3):
        torch.manual_seed(0)
        expected = f(X, other)
        torch.manual_seed(0)
        torch.testing.assert_close(fast(X, own), expected, rtol=0, atol=0)
    assert torch.equal(own.get_state(), other.get_state())
    torch.testing.assert_close(
        fast(X, torch.Generator().manual_seed(9)), f(X, torch.Generator().manual_seed(9)), rtol=9, atol=9
    )


def test_a_generator_that_draws_by_tensors_runs_in_python(same):
    def make(own, _, torch_own):
        def f(x):
            y = x * 2
            y = y + torch.empty(2, 3).normal_(generator=torch_own)
            z = torch.bernoulli(torch.sigmoid(y), generator=torch_own)
            own.shuffle([1, 2, 3])
            torch_own.manual_seed(4)
            return y * z + torch.rand(3, generator=torch_own), numpy.random.choice([1.0, 2.0])

        return f

    same.made(generators(make), *[(X,)] * 3)


def test_a_draw_is_taken_back_before_a_second_run(same):
    def make(own, legacy, torch_own):
        def f(x):
            a = own.random() + legacy.uniform() + random.randint(0, 3)
            b = torch.randn(2, generator=torch_own)
            try:
                return torch.linalg.cholesky(-torch.eye(2)) * a + b
            except RuntimeError:
                return x * a + b.sum()

        return f

    same.made(generators(make), *[(X,)] * 3, operators=LIBRARY)


def test_draws_in_parts_that_run_another_number_of_times(same):
    def f(x):
        a = torch.utils.checkpoint.checkpoint(lambda t: t.sin() * random.random(), x, use_reentrant=False)
        value, pull = torch.func.vjp(lambda t: t * random.random(), x)
        return a, value, pull(value)[0]

    same(f, (X,), (X,))


def test_tensors_of_sizes_that_differ_are_drawn(whole):
    own = [torch.Generator(), torch.Generator()]
    for generator in own:
        generator.manual_seed(5)

    def make():
        generator = own.pop()

        def f(x):
            n = x.shape[0]
            noise = torch.randn(n, x.shape[1] + 1, generator=generator)
            return x * 2 + noise[:, 1:], torch.rand((n * 2,), generator=generator, dtype=torch.float64)

        return f

    sizes = [(torch.ones(size, 3),) for size in (2, 4, 5, 6, 7)]
    whole.made(make, *sizes, operators=LIBRARY, graphs=2)


def test_an_order_of_sizes_that_differ_is_drawn(whole):
    own = [torch.Generator().manual_seed(5) for _ in range(2)]

    def make():
        generator = own.pop()
        return lambda x: x[torch.randperm(x.shape[0], generator=generator)]

    whole.made(make, *[(torch.arange(float(size)),) for size in (2, 4, 5, 6)], operators=LIBRARY)


def test_quasirandom_numbers(same):
    """Their functions in C++ go to memory that a trace does not have."""

    def program(x):
        engine = torch.quasirandom.SobolEngine(3)
        engine.fast_forward(4)
        mixed = torch.quasirandom.SobolEngine(2, scramble=True, seed=3)
        return engine.draw(2), mixed.draw(2), x + 1

    same(program, (torch.ones(2),))


def test_integers_up_to_a_number_from_data(whole):
    """A stripe of random width at a random place, as augmentations draw it; torch itself refuses an empty range."""

    def f(x):
        width = int(torch.randint(0, 3, (1,)))
        start = int(torch.randint(0, x.shape[1] - width, (1,)))
        x = x.clone()
        x[:, start : start + width] = 0
        return x

    def pick(x, n):
        return x + torch.randint(0, 2 - int(n), (1,)), torch.randperm(int(n))

    whole(f, *[(X,)] * 4)
    whole(pick, (X, torch.tensor(1)), (X, torch.tensor(0)), (X, torch.tensor(2)))
