"""Generators that the captured program makes: send, throw, close, yield from."""

import weakref

import torch

X = torch.arange(6.0).reshape(2, 3) + 1


class Oops(Exception):
    pass


def counting(x, log):
    got = []
    try:
        for i in range(5):
            try:
                got.append((yield x + i))
            except Oops as error:
                log.append(error.args)
    finally:
        log.append("done")
    return got


def delegating(x, log):
    result = yield from counting(x, log)
    log.append(result)
    yield x * 100


def test_send(same):
    def f(x):
        log = []
        made = counting(x, log)
        total = next(made)
        for word in ("a", "b", None):
            total = total + made.send(word)
        made.close()
        return total, log

    same(f, (X,), graphs=1, eager=0)


def test_throw(same):
    def f(x):
        log = []
        made = counting(x, log)
        total = next(made) + made.throw(Oops("first")) + made.throw(Oops, "second")
        try:
            made.throw(KeyError)
        except KeyError as error:
            log.append(error.args)
        try:
            next(made)
        except StopIteration as stop:
            log.append(stop.value)
        return total, log

    same(f, (X,), graphs=1, eager=0)


def test_throw_before_the_start(same):
    def f(x):
        log = []
        made = counting(x, log)
        try:
            made.throw(Oops("early"))
        except Oops as error:
            log.append(error.args)
        return [*made], log, x + 1

    same(f, (X,), graphs=1, eager=0)


def test_throw_goes_to_what_is_delegated_to(same):
    def f(x):
        log = []
        made = delegating(x, log)
        total = next(made) + made.throw(Oops("inside"))
        rest = [*made]
        return total, rest, log

    same(f, (X,), graphs=1, eager=0)


def test_throw_ends_what_is_delegated_to(same):
    def inner(x):
        try:
            yield x
        except Oops:
            return "caught"

    def outer(x, log):
        log.append((yield from inner(x)))
        yield x + 2

    def f(x):
        log = []
        made = outer(x, log)
        return next(made), made.throw(Oops()), log

    same(f, (X,), graphs=1, eager=0)


def test_throw_into_a_delegation_to_a_list(same):
    def outer(x, log):
        try:
            yield from [x, x + 1]
        except Oops:
            log.append("caught")
        yield x + 2

    def f(x):
        log = []
        made = outer(x, log)
        return next(made), made.throw(Oops()), log

    same(f, (X,), graphs=1, eager=0)


def test_close_closes_what_is_delegated_to(same):
    def f(x):
        log = []
        made = delegating(x, log)
        first = next(made)
        made.close()
        return first, log, [*made]

    same(f, (X,), graphs=1, eager=0)


def test_what_close_returns_differs_between_versions(same):
    def stubborn(x):
        try:
            yield x
        except GeneratorExit:
            return 7

    def f(x):
        made = stubborn(x)
        return next(made), made.close()

    same(f, (X,), graphs=1, eager=0)


def test_ignored_exit(same):
    def stubborn(x):
        for _ in range(3):
            try:
                yield x
            except GeneratorExit:
                pass

    def f(x):
        made = stubborn(x)
        y = next(made)
        try:
            made.close()
        except RuntimeError as error:
            return y, error.args, [*made]
        return y

    same(f, (X,), graphs=1, eager=0)


def test_stop_iteration_inside(same):
    def bad(x):
        yield x
        raise StopIteration("inside")

    def f(x):
        found = []
        try:
            for item in bad(x):
                found.append(item)
        except RuntimeError as error:
            found.append(error.args)
            found.append(type(error.__cause__))
        return found

    same(f, (X,), graphs=1, eager=0)


def test_wrong_throw(same):
    def f(x):
        made = counting(x, [])
        y = next(made)
        try:
            made.throw(3)
        except TypeError as error:
            return y, error.args
        return y

    same(f, (X,), graphs=1, eager=0)


def test_infinite_generator_is_unpacked_to_its_count(same):
    def forever(x):
        while True:
            yield x

    def f(x):
        try:
            a, b = forever(x)
        except ValueError as error:
            return error.args, x + 1
        return a, b

    same(f, (X,), graphs=1, eager=0)


def test_contextmanager_sees_the_exception(same):
    import contextlib

    @contextlib.contextmanager
    def noted(log):
        try:
            yield
        except Oops as error:
            log.append(error.args)

    def f(x):
        log = []
        with noted(log):
            x = x + 1
            raise Oops("here")
        return x, log

    same(f, (X,), graphs=1, eager=0)


def test_throwing_stop_iteration_into_a_generator(whole):
    def giving():
        yield 1
        yield 2

    def f(x):
        found = []
        for started in (True, False):
            g = giving()
            if started:
                next(g)
            try:
                g.throw(StopIteration(1))
            except RuntimeError as error:
                found.append((str(error), error.__cause__.args))
        return x + 1, found

    whole(f, (torch.ones(2),))


def test_a_generator_that_delegates_to_one_with_a_finally_block_is_dropped_in_order(same):
    def inner(x, log):
        try:
            while True:
                try:
                    yield x
                except ValueError:
                    log.append("thrown")
                    print(end="")
        finally:
            log.append("inner ends")

    def outer(x, log):
        yield from inner(x, log)

    def f(x, log):
        items = outer(x, log)
        next(items)
        y = items.throw(ValueError("thrown in"))
        log.append("before")
        items = None
        log.append("after")
        return y + 1

    same(f, (torch.ones(2), []))


def test_a_begun_generator_dies_in_its_turn_among_a_frames_variables(same):
    def kept(x, log, name):
        try:
            while True:
                yield x
        finally:
            log.append(name)

    class Box:
        pass

    class Last:
        def __init__(self, log):
            self.log = log

        def __del__(self):
            self.log.append("last")

    def watched(x, log):
        box = Box()
        finalizer = weakref.finalize(box, log.append, "box")
        print(end="")
        items = kept(x * 2, log, "items")
        return next(items) + finalizer.alive

    def finalized(x, log):
        last = Last(log)
        print(end="")
        items = kept(x, log, "items")
        return next(items) * len(last.log)

    def in_places_of_variables(x, log):
        first = second = None
        del first
        second = kept(x, log, "second")
        first = kept(x, log, "first")
        return next(second) + next(first)

    for program in (watched, finalized, in_places_of_variables):
        same(program, (torch.ones(2), []))
