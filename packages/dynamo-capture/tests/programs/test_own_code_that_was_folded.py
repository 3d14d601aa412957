"""Code of the program that functions in C, texts and enumerations call: it must not run while a program is captured."""

import pytest

FIRST = """
import enum, re
import torch

LOG = []
WATCHED = {"log": LOG}
CALLS = [lambda n=n: (torch.ones(n),) for n in (2, 2, 3, 3)]
"""


@pytest.fixture
def program(as_in_eager):
    return lambda text: as_in_eager(FIRST + text)


def test_functions_that_patterns_call(program):
    program("""
PATTERN = re.compile(r"a(\\d)")
def give(match):
    LOG.append(match.group())
    return "<" + match.group(1) + ">"

def program(x):
    return PATTERN.sub(give, "a1a2"), PATTERN.subn(repl=give, string="a3"), re.sub("a", str.upper, "b"), x + 1
""")


def test_iterators_of_known_objects_begin_anew(program):
    """A pattern's iterator was kept, and exhausted by the first run."""
    program("""
PATTERN = re.compile("a")

def program(x):
    found = [match.start() for match in PATTERN.finditer("aba")]
    return found, [m.group() for m in re.finditer("a", "aa")], PATTERN.scanner("aa").match().group(), x + 1
""")


def test_texts_of_classes_with_a_metaclass_of_the_program(program):
    program("""
class Meta(type):
    def __str__(cls):
        LOG.append("str")
        return "text"
    def __repr__(cls):
        LOG.append("repr")
        return "shown"
    def __format__(cls, spec):
        LOG.append(spec)
        return spec

class Kind(metaclass=Meta):
    pass

def program(x):
    plain = str(Kind), repr([Kind]), f"{Kind:z}", f"{(Kind, 1)}", "{} {!r}".format(Kind, Kind)
    return plain, "%s" % Kind, "%s %r" % (Kind, {1: Kind}), "{a}".format_map({"a": Kind}), x + 1
""")


def test_enumerations_with_descriptors_and_a_metaclass_of_the_program(program):
    program("""
class Giving:
    def __get__(self, owner, kind):
        LOG.append(owner is None)
        return 6

class Meta(enum.EnumMeta):
    own = property(lambda cls: LOG.append("own") or 3)
    giving = Giving()
    def __getattr__(cls, name):
        LOG.append(name)
        if name.startswith("_"):
            raise AttributeError(name)
        return 8
    def __call__(cls, *args, **kwargs):
        LOG.append("call")
        return super().__call__(*args, **kwargs)

class Kind(enum.Enum, metaclass=Meta):
    ONE = 1
    given = Giving()
    @classmethod
    def first(cls):
        LOG.append("first")
        return cls.ONE

class Plain(enum.Enum):
    ONE = 1
    given = Giving()

def program(x):
    one = Kind(1)
    given = Kind.own, Kind.giving, Kind.missing, Kind.given, one.given, Plain.given, Plain.ONE.given
    return given, Kind.first().name, Kind["ONE"] is one, Plain(1).value, list(Plain.__members__), x + 1
""")


def test_functions_with_a_cache_that_patterns_call(program):
    program("""
import functools

@functools.lru_cache
def give(match):
    LOG.append(match.group())
    return "b"

def program(x):
    return re.compile("a").sub(give, "aa"), x + 1
""")


def test_a_partial_function_under_two_names(program):
    """It had a key of its own under each name, and the function ran uncompiled."""
    program("""
import functools

KNOWN = functools.partial(max, 1)

def program(x, f, g):
    return len({f, g, KNOWN}), {f: 1}.get(g), f in [KNOWN], x + 1

CALLS = [lambda: (torch.ones(2), KNOWN, KNOWN), lambda: (torch.ones(2), KNOWN, functools.partial(max, 1))] * 2
""")
