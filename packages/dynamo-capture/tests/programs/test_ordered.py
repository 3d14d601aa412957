"""Subclasses of ``OrderedDict``, as outputs of models are."""

import collections

import torch

X = torch.ones(2)


class Output(collections.OrderedDict):
    @property
    def hidden(self):
        return self["hidden"]


class Counted(collections.OrderedDict):
    def __iter__(self):
        self.times = vars(self).get("times", 0) + 1
        return super().__iter__()


def test_an_ordered_dictionary_of_the_program_is_read_in_the_graph(whole):
    def f(output):
        return output.hidden + 1, list(output), len(output)

    whole(f, (Output(hidden=torch.ones(2), other=torch.zeros(3)),))


def test_one_that_iterates_in_its_own_way_is_iterated_by_the_program_only(same):
    def f(x, counted):
        names = list(counted)
        return x + 1, names, counted.times

    same(f, (torch.ones(2), Counted(a=1, b=2)), (torch.ones(2), Counted(a=1)))


MOVED = collections.OrderedDict(one=1, two=2)
MOVED.move_to_end("one")


def test_one_whose_items_were_moved_is_read_in_its_own_order(whole):
    def f(x):
        for name, number in MOVED.items():
            x = x * 2 + len(name) * number
        return x, list(MOVED), [*MOVED.values()]

    whole(f, (torch.ones(2),))


class Kept(collections.OrderedDict):
    pass


def test_a_copy_is_of_the_class_without_attributes(whole):
    def f(x, given):
        made = Kept(a=1, b=2)
        made.note = 3
        copies = made.copy(), given.copy(), collections.OrderedDict.copy(given)
        return x + 1, copies, [vars(copied) for copied in copies]

    whole(f, (X, Kept(c=3)))


def test_methods_of_dict_that_know_nothing_of_the_order(same):
    def f(x, name):
        made = Kept(a=1, b=2)
        getattr(dict, name)(made, "a")
        return x + 1, repr(made)

    for name in ("pop", "__delitem__"):
        same(f, (X, name))
