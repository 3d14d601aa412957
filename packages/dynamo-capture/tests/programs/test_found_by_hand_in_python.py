"""Python that programs written by hand have found: generators, texts, metaclasses and what is being handled."""

import contextlib
import enum
import sys

import pytest
import torch

from dynamo_capture import optimize

SAID = []
PREFIX = ["a"]


def _answering():
    try:
        answer = yield 1
    except KeyError:
        answer = 4
    return answer


def test_what_is_thrown_into_a_generator_that_delegates_across_a_break(same):
    def outer(x):
        answer = yield from _answering()
        print(end="")
        yield x * answer

    def program(x):
        generator = outer(x)
        next(generator)
        print(end="")
        return generator.throw(KeyError("a"))

    def without_break(x):
        generator = outer(x)
        return next(generator) + generator.throw(KeyError("a"))

    for one in (program, without_break):
        same(one, (torch.ones(2),), (torch.ones(2),), (torch.ones(3),))


class Told(enum.Enum):
    ONE = 0
    TWO = 1

    def __str__(self):
        SAID.append(self.name)
        return PREFIX[0] + self.name


class Shown(enum.Enum):
    ONE = 0

    def __repr__(self):
        SAID.append("repr")
        return PREFIX[0]


class Formatted(enum.IntFlag):
    ONE = 1

    def __format__(self, spec):
        SAID.append(spec)
        return PREFIX[0] + spec


class OfText(str, enum.Enum):
    ONE = "p"

    def __str__(self):
        SAID.append("text")
        return PREFIX[0]


TEXTS = {
    "str": lambda: str(Told.ONE),
    "f-string": lambda: f"{Told.TWO} {Told.ONE:>9}",
    "percent": lambda: "%s" % Told.ONE,
    "format": lambda: "{} {:>5}".format(Told.ONE, OfText.ONE),  # noqa: UP032
    "repr": lambda: repr(Shown.ONE) + str(Shown.ONE) + f"{Shown.ONE!r}{Shown.ONE}",
    "in a list": lambda: str([Shown.ONE]),
    "in a dictionary": lambda: repr({"a": (Shown.ONE,)}),
    "format of a flag": lambda: f"{Formatted.ONE:q}" + format(Formatted.ONE, "z") + str(Formatted.ONE),
    "of a text": lambda: str(OfText.ONE) + OfText.ONE + f"{OfText.ONE}" + OfText.ONE.upper(),
    "mapped": lambda: ", ".join(map(str, Told)),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_text_of_members_is_said_in_each_call(text):
    def program(x):
        PREFIX[0] += "z"
        return x + 1, text()

    fast = optimize(lambda graph_module, inputs: graph_module.forward)(program)
    for _ in range(3):
        told = []
        before = PREFIX[0]
        for way in (program, fast):
            SAID.clear()
            PREFIX[0] = before
            told.append((way(torch.ones(2))[1], PREFIX[0], list(SAID)))
        assert told[0] == told[1]


def test_a_text_that_is_none(same):
    class Wrong(enum.Enum):
        ONE = 1

        def __str__(self):
            return 3

    same(lambda x: (x + 1, str(Wrong.ONE)), (torch.ones(2),))


def test_what_is_handled_where_a_text_is_made(same):
    class Looking:
        def __str__(self):
            return str(sys.exc_info()[0])

        __repr__ = __str__

    def program(x):
        looking = Looking()
        return x + 1, f"{looking}{looking!r}", "%s" % looking, str(looking)

    def handling(x):
        try:
            raise KeyError
        except KeyError:
            return program(x)

    for one in (program, handling):
        same(one, (torch.ones(2),), (torch.ones(3),))


class Counting(type):
    def __len__(cls):
        SAID.append("len")
        return 7

    def __iter__(cls):
        SAID.append("iter")
        return iter([1, 2])


class Hinting(type):
    def __length_hint__(cls):
        SAID.append("hint")
        return NotImplemented

    def __iter__(cls):
        SAID.append("iter")
        return iter([1, 2])


ITERATIONS = [
    list, tuple, set, sorted, bytes, sum, lambda cls: [*cls], lambda cls: (*cls,), lambda cls: [i for i in cls],
    lambda cls: [].extend(cls), lambda cls: (lambda *args: args)(*cls),
]  # fmt: skip


@pytest.mark.parametrize("meta", [Counting, Hinting])
@pytest.mark.parametrize("iterate", ITERATIONS)
def test_a_class_is_asked_how_many_it_gives(iterate, meta):
    kind = meta("Kind", (), {})

    def program(x):
        return x + 1, iterate(kind)

    fast = optimize(lambda graph_module, inputs: graph_module.forward)(program)
    for _ in range(2):
        told = []
        for way in (program, fast):
            SAID.clear()
            told.append((way(torch.ones(2))[1], list(SAID)))
        assert told[0] == told[1]


def test_a_profiler_that_the_program_starts():
    def watch(frame, event, argument):
        SAID.append((event, frame.f_code.co_name))

    def called(x):
        return x + 1

    def program(x):
        sys.setprofile(watch)
        try:
            return called(x)
        finally:
            sys.setprofile(None)

    fast = optimize(lambda graph_module, inputs: graph_module.forward)(program)
    told = []
    for way in (program, program, fast, fast):
        SAID.clear()
        way(torch.ones(2))
        told.append([one for one in SAID if one[1] in ("called", "program")])
    assert told[1:] == told[:-1]


def _of_a_branch(x):
    if x.sum() > 3:
        one = 1
    else:
        two = 2
    print(end="")
    return x + 1, sorted(locals())


def _of_a_loop(x):
    for i in range(x.shape[0] - 2):
        made = x * i
        print(end="")
    return x + 1, sorted(locals())


def _of_a_block(x):
    with contextlib.suppress(KeyError):
        first = x * 2
        print(end="")
        if x.shape[0] > 3:
            raise KeyError
        second = 2
    del first
    before = sorted(locals())
    print(end="")
    return x + 1, before, sorted(vars()), eval("x.shape[0]")


def _of_a_pattern(x):
    match x.shape[0]:
        case 3:
            one = 1
        case n if n > 4:
            two = 2
    print(end="")
    return x + 1, dir(), "{x.shape}".format(**locals())


SHOWING = (_of_a_branch, _of_a_loop, _of_a_block, _of_a_pattern)


@pytest.mark.parametrize("program", SHOWING, ids=lambda program: program.__name__)
def test_variables_that_only_some_ways_give_a_value_are_shown(same, program):
    same(program, (torch.ones(3),), (torch.ones(3) * 2,), (torch.ones(5),))
