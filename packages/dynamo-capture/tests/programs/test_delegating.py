"""Generators that are run inside: send, throw, close, delegation, and those that stay suspended."""

import contextlib

import torch

X = torch.arange(6.0).reshape(2, 3) + 1


def test_send(whole):
    def averager():
        total = count = 0
        value = None
        while True:
            value = yield (total / count if count else None)
            total = total + value
            count += 1

    def f(x, n):
        g = averager()
        next(g)
        out = [g.send(x + i) for i in range(n)]
        g.close()
        return out

    whole(f, (X, 2), (X, 3))


def test_throw_is_caught_inside(whole):
    def gen(log):
        try:
            yield 1
        except ValueError as error:
            log.append(str(error))
            yield 2
        yield 3

    def f(x):
        log = []
        g = gen(log)
        return x + next(g), g.throw(ValueError("in")), next(g), log

    whole(f, (X,))


def test_throw_comes_out(whole):
    def gen(log):
        try:
            yield 1
        finally:
            log.append("closed")

    def f(x):
        log = []
        g = gen(log)
        next(g)
        try:
            g.throw(KeyError("out"))
        except KeyError as error:
            log.append(error.args)
        return x, log, next(g, "done")

    whole(f, (X,))


def test_throw_before_the_start(whole):
    def gen():
        yield 1

    def f(x):
        g = gen()
        try:
            g.throw(ValueError("early"))
        except ValueError as error:
            return x, str(error), list(g)

    whole(f, (X,))


def test_close_runs_finally(whole):
    def gen(log):
        try:
            while True:
                yield len(log)
        except GeneratorExit:
            log.append("exit")
            raise
        finally:
            log.append("finally")

    def f(x):
        log = []
        g = gen(log)
        next(g)
        g.close()
        return x, log, next(g, None)

    whole(f, (X,))


def test_ignored_close(whole):
    def gen():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    def f(x):
        g = gen()
        next(g)
        try:
            g.close()
        except RuntimeError as error:
            return x, str(error)

    whole(f, (X,))


def test_yield_from_passes_send_and_throw(whole):
    def inner(log):
        while True:
            try:
                got = yield len(log)
                log.append(got)
                if got is None:
                    return "end"
            except ValueError:
                log.append("caught")

    def outer(log):
        log.append((yield from inner(log)))
        yield "last"

    def f(x):
        log = []
        g = outer(log)
        return x, next(g), g.send("a"), g.throw(ValueError), g.send(None), log

    whole(f, (X,))


def test_yield_from_a_list_and_a_range(whole):
    def gen(items, n):
        yield from items
        yield from range(n)
        yield from "ab"

    whole(lambda x, items, n: (x, list(gen(items, n))), (X, [1], 2), (X, [], 3))


def test_stop_iteration_inside_becomes_an_error(whole):
    def gen():
        yield 1
        raise StopIteration

    def f(x):
        try:
            return x, list(gen())
        except RuntimeError as error:
            return x, str(error)

    whole(f, (X,))


def test_generator_is_already_running(whole):
    def f(x):
        def gen():
            yield next(g)

        g = gen()
        try:
            next(g)
        except ValueError as error:
            return x, str(error)

    whole(f, (X,))


def test_recursive_generator(whole):
    def flatten(tree):
        if isinstance(tree, (list, tuple)):
            for branch in tree:
                yield from flatten(branch)
        else:
            yield tree

    whole(lambda x, t: [x + leaf for leaf in flatten(t)], (X, [1, (2, [3])]), (X, ((), 4)))


def test_generator_expression_is_lazy(whole):
    def f(x, n):
        log = []

        def note(i):
            log.append(i)
            return x * i

        lazy = (note(i) for i in range(n))
        log.append("made")
        first = next(lazy)
        return first, log

    whole(f, (X, 1), (X, 3))


def test_first_iterable_of_a_generator_expression_is_read_at_once(whole):
    def f(x, flag):
        items = [1, 2]
        lazy = (x * i for i in items)
        if flag:
            items = [5]
        return list(lazy), items

    whole(f, (X, 0), (X, 1))


def test_zip_and_any_consume_no_more_than_needed(whole):
    def counted(log):
        for i in range(5):
            log.append(i)
            yield i

    def f(x):
        log, more = [], []
        any(i == 2 for i in counted(log))
        list(zip([1, 2], counted(more), strict=False))
        return x, log, more

    whole(f, (X,))


def test_generator_as_a_pipeline(whole):
    def read(items):
        for item in items:
            if item is None:
                return
            yield item

    def scale(items, k):
        return (item * k for item in items)

    whole(
        lambda x, items: (x, sum(scale(read(items), 3)), tuple(scale(scale(read(items), 2), 5))),
        (X, [1, 2, None, 4]),
        (X, [X, X + 1]),
    )


def test_context_manager_from_a_generator_swallows(whole):
    @contextlib.contextmanager
    def ignoring(kind, log):
        try:
            yield
        except kind as error:
            log.append(str(error))

    def f(x, n):
        log = []
        with ignoring(ZeroDivisionError, log):
            x = x + 1 // n
        return x, log

    whole(f, (X, 1), (X, 0))


def test_context_manager_as_decorator(whole):
    log = []

    @contextlib.contextmanager
    def noted(name):
        log.append(name)
        yield
        log.append("-" + name)

    def f(x):
        log.clear()

        @noted("g")
        def g(y):
            log.append("body")
            return y + 1

        return g(g(x)), list(log)

    whole(f, (X,), (X,))


def test_argument_generator_goes_on_where_it_was(same):
    def make():
        def source():
            n = 0
            while True:
                n += 1
                yield n

        items = source()

        def f(x):
            return x + next(items), next(items)

        return f

    same.made(make, (X,), (X,), (X,))


def test_generator_is_returned(same):
    def make():
        def numbers(x, n):
            for i in range(n):
                yield x + i

        def f(x, n):
            return list(map(torch.sum, numbers(x, n))), len(list(numbers(x, n)))

        return f

    same.made(make, (X, 2), (X, 3))


def test_suspended_generator_escapes(same):
    def make():
        kept = []

        def numbers(x):
            yield x
            yield x + 1

        def f(x):
            for g in kept:
                return next(g)
            g = numbers(x)
            kept.append(g)
            return next(g)

        return f

    same.made(make, (X,), (X,))


def test_coroutines_pass_through(same):
    import asyncio

    async def g(x):
        await asyncio.sleep(0)
        return x + 1

    async def numbers(n):
        for i in range(n):
            yield i

    async def main(x):
        total = await g(x)
        async for i in numbers(3):
            total = total + i
        return total

    same(lambda x: asyncio.run(main(x)), (X,), (X + 1,))


def test_generator_of_a_local_is_closed_at_the_return(whole):
    def numbers(log):
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    def f(x, log):
        g = numbers(log)
        first = next(g)
        log.append("last")
        return x * first, len(log)

    whole(f, (X, []), (X, [1]))


def test_generator_that_is_dropped_earlier(same):
    def numbers(log):
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    def f(x, log):
        first = next(numbers(log))
        log.append("last")
        return x * first, len(log)

    same(f, (X, []), (X, [1]))
