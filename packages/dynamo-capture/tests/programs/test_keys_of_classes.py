"""Keys whose class has a ``__hash__`` and an ``__eq__`` of its own: both run again where the container is made."""

import torch

X = torch.arange(6.0).reshape(2, 3) + 1
CALLS = [0]
REFUSING = False


class Counting:
    def __init__(self, number):
        self.number = number

    def __hash__(self):
        CALLS[0] += 1
        return self.number

    def __eq__(self, other):
        CALLS[0] += 100
        return self.number == other.number


class Keeping:
    """Computes its hash once."""

    def __init__(self, number):
        self.number = number
        self.kept = None

    def __hash__(self):
        if self.kept is None:
            self.kept = hash((self.number, 1))
        return self.kept

    def __eq__(self, other):
        return self.number == other.number


class Colliding:
    def __hash__(self):
        return 0

    def __eq__(self, other):
        if REFUSING:
            raise ZeroDivisionError
        return self is other


def test_hashes_with_effects(same):
    def f(x):
        CALLS[0] = 0
        numbers = {Counting(1): 1, Counting(2): 2}
        print(end="")
        return x + 1, CALLS[0], len(numbers)

    same(f, (X,))


def test_comparisons_with_effects(same):
    def f(x):
        CALLS[0] = 0
        numbers = {Counting(1): 1, Counting(2): 2}
        numbers[Counting(2)] = 3
        calls = CALLS[0]
        return x + 1, calls

    same(f, (X,))


def test_a_hash_that_is_computed_once(same):
    def f(x):
        key = Keeping(3)
        numbers = {key: 1, Keeping(4): 2}
        return x + numbers[Keeping(3)], key.kept, len(numbers)

    same(f, (X,), graphs=1, eager=0)


def test_keys_of_one_hash_are_not_compared_again(same):
    def f(x):
        global REFUSING
        REFUSING = False
        members = {Colliding() for _ in range(5)}
        REFUSING = True
        print(end="")
        return x + 1, len(members)

    same(f, (X,))


def test_adding_keys_of_one_hash_that_refuse(same):
    def f(x):
        global REFUSING
        REFUSING = False
        one, others = {Colliding()}, {Colliding() for _ in range(5)}
        REFUSING = True
        try:
            one.update(others)
        except ZeroDivisionError:
            return x + 1, len(one), len(others)

    same(f, (X,))
