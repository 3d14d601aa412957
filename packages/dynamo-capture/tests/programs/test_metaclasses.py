"""Special methods that classes and enumerations answer with, and what they do on the way."""

import enum

import torch

X = torch.ones(2)
LOG = []


class Told(type):
    def __iter__(cls):
        LOG.append("iter")
        return iter([1, 2])

    def __contains__(cls, item):
        LOG.append("contains")
        return item == 1

    def __len__(cls):
        LOG.append("len")
        return 0

    def __add__(cls, other):
        LOG.append("add")
        return other

    def __eq__(cls, other):
        LOG.append("eq")
        return NotImplemented

    def __getitem__(cls, key):
        LOG.append("getitem")
        return key

    def __neg__(cls):
        LOG.append("neg")
        return 1

    __hash__ = type.__hash__


class Asked(metaclass=Told):
    pass


class Colours(enum.IntFlag):
    RED = 1
    GREEN = 2
    BLUE = 4


def test_a_class_is_iterated_asked_and_measured(same):
    def f(x):
        LOG.clear()
        answers = [part for part in Asked], 1 in Asked, len(Asked), bool(Asked), not Asked
        return x + 1, answers, list(LOG)

    same(f, (X,), (X,))


def test_operators_of_a_class_do_what_they_do_in_each_call(same):
    def f(x):
        LOG.clear()
        return x + 1, Asked + 3, Asked == 3, Asked != 3, Asked[4], -Asked, list(LOG)

    same(f, (X,), (X,))


def test_flags_are_iterated(whole):
    def f(x):
        return x + 1, list(Colours.RED | Colours.BLUE), [one.name for one in ~Colours.RED], list(Colours)

    whole(f, (X,))


def test_methods_of_builtin_objects_are_equal_where_receiver_and_name_are(same):
    def f(x):
        items = [1]
        return (
            x + 1,
            torch.Tensor.ndim.__get__ == torch.Tensor.ndim.__get__,
            torch.Tensor.ndim.__get__ == torch.Tensor.dtype.__get__,
            items.append == items.append,
            items.append == [1].append,
            items.append != items.pop,
            x.add == x.add,
            f.__call__ == f.__call__,
            (1).__add__ == (2).__add__,
        )

    same(f, (X,))


class Flat(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return (
            10 if func == torch.Tensor.ndim.__get__ else super().__torch_function__(func, types, args, kwargs)
        )


FLAT = torch.ones(2, 2).as_subclass(Flat)


def test_an_attribute_of_a_tensor_is_recognized_by_its_getter(whole):
    def f(x):
        return FLAT.ndim + x

    whole(f, (X,))
