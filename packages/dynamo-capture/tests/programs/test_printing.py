"""Prints and logging: in order, once, with the values of their time."""

import logging

import torch

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) + 1


def test_prints_in_order(same):
    def f(x, name):
        print("start", name)
        y = x + 1
        print("then", 3, sep="-", end="!\n")
        items = [1]
        print(items)
        items.append(2)
        print(items)
        return y

    same(f, (X, "a"), (X, "b"))


def test_prints_of_tensors_that_change(same):
    def f(x):
        y = x + 1
        print(y)
        y.add_(1)
        print(y)
        return y

    same(f, (X,))


def test_prints_of_objects_that_change(same):
    class Shown:
        def __init__(self, value):
            self.value = value

        def __repr__(self):
            return f"<{self.value}>"

    def f(x, o):
        print(o)
        o.value = 5
        print(o, [o])
        return x + 1

    same(f, (X, Shown(1)))


def test_print_before_exception(same):
    def f(x, n):
        print("before")
        if n == 0:
            raise ValueError("zero")
        print("after")
        return x / n

    same(f, (X, 0), (X, 1), (X, 0))


def test_prints_before_between_and_after_graphs(same):
    def f(x):
        print("before")
        y = x + 1
        print("between", tuple(y.shape))
        z = y * 2
        print("after")
        return z

    same(f, (X,), (X,))


def test_prints_see_the_values_of_their_time(same):
    def f(x, a):
        a.append(1)
        print(a)
        a.append(2)
        print(a, x.sum())
        x.add_(1)
        print(x.sum())
        return a

    same(f, (X, []), (X, [0]))


def test_logging_in_order(unknown):
    records = []

    class Keep(logging.Handler):
        def emit(self, record):
            records.append(record.getMessage())

    logger = logging.getLogger("capture_programs")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    handler = Keep()
    logger.addHandler(handler)

    def f(x, n):
        logger.info("start %d", n)
        y = x * n
        logger.debug("hidden")
        if n > 2:
            logger.warning("large")
        n = unknown(y.sum())
        logger.info("end %s", n)
        return y

    try:
        fast = optimize(lambda gm, ex: gm.forward)(f)
        for n in (1, 3, 1):
            records.clear()
            f(X, n)
            expected = list(records)
            records.clear()
            fast(X, n)
            assert records == expected
    finally:
        logger.removeHandler(handler)


def test_texts_have_the_form_of_their_time(same):
    def f(x):
        before = repr(x)
        torch.set_printoptions(precision=2)
        inside = f"{x * 2}"
        torch.set_printoptions(profile="default")
        with torch._tensor_str.printoptions(precision=1):
            shown = str(x + 1)
        return before, inside, shown, x * 3

    same(f, (X / 7,), (X / 3,))
