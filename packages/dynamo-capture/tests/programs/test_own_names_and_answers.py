"""What objects say of themselves, and what is asked for it: names of generators, items of classes, hashes, filters."""

import pytest

FIRST = """
import builtins, collections, dataclasses, inspect, logging, sys, traceback, types, typing, warnings
import torch

LOG = []
WATCHED = {"log": LOG}
CALLS = [lambda: (torch.ones(2),), lambda: (torch.ones(3),), lambda: (torch.ones(4),)]


def step(change, *arguments):
    change()
    return (torch.ones(2), *arguments)
"""


@pytest.fixture
def program(as_in_eager):
    return lambda text: as_in_eager(FIRST + text)


def test_a_class_gives_items_by_its_own_code(program):
    """``cls[key]`` ran while it was compiled, and not in later calls."""
    program("""
class Kind:
    def __class_getitem__(cls, key):
        LOG.append(key)
        return cls.__name__, key

def program(x):
    return Kind[1, 2], list[int], x + 1

CALLS *= 2
""")


def test_items_and_attributes_by_callable_objects(program):
    program("""
class Answer:
    def __call__(self, *args):
        LOG.append(args[-1])
        return 5

class Meta(type):
    __getitem__ = Answer()
    __len__ = Answer()

class Kind(metaclass=Meta):
    pass

other = types.ModuleType("other")
other.__getattr__ = Answer()

def program(x):
    return Kind[3], x * other.thing, hasattr(other, "more")
""")


def test_an_exception_is_caught_by_its_bases(program):
    """A handler asks no ``__subclasscheck__``."""
    program("""
class Meta(type):
    def __subclasscheck__(cls, other):
        LOG.append("asked")
        return True

class Own(Exception, metaclass=Meta):
    pass

def generate(x):
    try:
        yield x
    except Own:
        LOG.append("wrong")

def program(x):
    next(generate(x))
    try:
        try:
            raise ValueError("one")
        except (KeyError, Own):
            LOG.append("wrong")
    except ValueError:
        LOG.append("right")
    return x + 1
""")


def test_members_of_an_existing_set_are_not_compared(program):
    """Reading a set with members of one hash compares none of them."""
    program("""
class Key:
    def __init__(self, v):
        self.v = v
    def __eq__(self, other):
        LOG.append((self.v, other.v))
        return self.v == other.v
    def __hash__(self):
        return 1

def program(x):
    one, two = Key(1), Key(x.shape[0])
    made, mapped = {one, two, Key(1)}, {one: 1, two: 2}
    return len(made), len(mapped), [m.v for m in mapped], x + 1
""")


def test_a_generator_that_has_not_begun_is_in_the_traceback_of_what_is_thrown(program):
    program("""
def generate(x):
    yield x

def program(x):
    try:
        generate(x).throw(ValueError("one"))
    except ValueError as error:
        LOG.append([(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__)])
    return x + 1
""")


def test_names_of_generators_are_those_of_their_functions(program):
    program("""
def generate(x):
    yield x
    yield x + 1

def renamed():
    def inner(x):
        yield x
        yield x * 2
    inner.__name__, inner.__qualname__ = "named", "quite.named"
    return inner

KNOWN = renamed()

def program(x):
    begun, whole, ended = KNOWN(x), KNOWN(x), generate(x)
    next(begun)
    list(ended)
    def local(x):
        yield x
    local.__name__ = "first"
    early = local(x)
    local.__name__ = "second"
    LOG.append([(g.__name__, g.__qualname__) for g in (begun, whole, ended, early)])
    RESULTS[:] = begun, whole, ended, early
    return x + 1

RESULTS = []
def names():
    LOG.append([(g.__name__, g.__qualname__) for g in RESULTS])
CALLS = [lambda: step(lambda: None), lambda: step(names), lambda: step(names)]
""")


def test_names_of_functions_that_are_made_anew(program):
    program("""
def make(name=None):
    def inner(a: int):
        "text"
        return a * 2
    if name:
        inner.__name__, inner.__qualname__, inner.__doc__, inner.__module__ = name, "q" + name, "d" + name, "m" + name
        inner.__annotations__ = {"b": name}
    return inner

def program(x, f):
    try:
        f()
    except TypeError as error:
        LOG.append(str(error))
    return f(x), f.__name__, f.__qualname__, f.__doc__, f.__module__, f.__annotations__

CALLS = [lambda n=n: (torch.ones(2), make(n)) for n in ("a", None, None, "b", None)]
""")


def test_a_builtin_that_the_program_itself_replaces(program):
    program("""
def program(x):
    before = len(x)
    real = builtins.len
    builtins.len = lambda o: 42
    try:
        between = len(x)
    finally:
        builtins.len = real
    return before, between, len(x), x + between
""")


def test_filters_that_are_changed_in_place(program):
    """The second warning was raised behind the block that catches it."""
    program("""
def give(n):
    warnings.warn(f"number {n}")

def program(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        give(1)
        warnings.filterwarnings("error", "number 4")
        try:
            give(4)
        except UserWarning as error:
            LOG.append(str(error))
    return x + 1, [str(one.message) for one in caught]
""")


def test_a_logger_is_asked_in_each_call(program):
    program("""
LOGGER = logging.getLogger(f"of_test.{id(LOG)}")
LOGGER.propagate = False
LOGGER.setLevel(logging.INFO)

def program(x):
    if LOGGER.isEnabledFor(logging.INFO):
        x = x + 1
    return x * LOGGER.getEffectiveLevel()

CALLS = [
    lambda: step(lambda: None),
    lambda: step(lambda: LOGGER.setLevel(logging.ERROR)),
    lambda: step(lambda: None),
    lambda: step(lambda: LOGGER.setLevel(logging.DEBUG)),
]
""")


def test_a_logger_whose_level_the_graph_has_set(program):
    program("""
LOGGER = logging.getLogger(f"of_test.{id(LOG)}")

def program(x):
    LOGGER.setLevel(logging.INFO)
    first = LOGGER.isEnabledFor(logging.INFO)
    LOGGER.setLevel(logging.ERROR)
    return x + 1, first, LOGGER.isEnabledFor(logging.INFO)
""")


def test_data_of_the_classes_of_containers(program):
    """Attributes of named tuples' classes, and of subclasses of containers, were taken for unchanging."""
    program("""
Pair = collections.namedtuple("Pair", "a b")
class More(Pair):
    __slots__ = ()
    k = 3
class Own(list):
    k = 5

def program(x):
    more = More(x, 2)
    return more.k * more.a, more._fields, Own([1]).k, Pair(1, 2)._fields, more.b

def change(cls, name, value):
    return lambda: step(lambda: setattr(cls, name, value))

CALLS = [
    lambda: step(lambda: None),
    change(More, "k", 4),
    change(Own, "k", 7),
    change(Pair, "_fields", ("z",)),
    change(More, "k", [1]),
]
""")


def test_what_a_class_becomes_between_calls(program):
    program("""
class Plain:
    pass
class Base:
    pass
class Other:
    pass
class Derived(Base):
    pass

def program(x):
    names = [cls.__name__ for cls in inspect.getmro(Derived)]
    return x + 1, names, dataclasses.is_dataclass(Derived), typing.get_type_hints(Plain)

CALLS = [
    lambda: step(lambda: None),
    lambda: step(lambda: setattr(Derived, "__bases__", (Other, Base))),
    lambda: step(lambda: setattr(Base, "__dataclass_fields__", {})),
    lambda: step(lambda: setattr(Plain, "__annotations__", {"a": int})),
]
""")


def test_a_relative_import_that_warns(program):
    program("""
def program(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            from . import nothing
        except ImportError as error:
            LOG.append(str(error))
    return x + 1, [str(one.message) for one in caught]
""")


def test_which_function_one_is_that_is_made_anew(program):
    """Functions that were known by their code alone were never the ones that a class or a global has."""
    program("""
def make():
    def inner(y):
        return y * 2
    return inner

KNOWN = make()
class Holder:
    own = KNOWN

def program(x, f, g):
    same = f is g, f is KNOWN, f == KNOWN, Holder.own is f, f is not Holder.__dict__["own"], f is None, f is print
    found = f in [g], f in (KNOWN,), [g, KNOWN].index(KNOWN), {f: 1}.get(g), {KNOWN: 1}.get(f), len({f, g, KNOWN})
    return f(x), same, found

def calls():
    one = make()
    return [(make(), make()), (make(), make()), (one, one), (KNOWN, KNOWN), (make(), KNOWN), (KNOWN, make())]

CALLS = [lambda pair=pair: (torch.ones(2), *pair) for pair in calls() * 2]
""")


def test_a_method_that_a_break_has_handed_over(program):
    program("""
def program(x):
    class Kind:
        def method(self):
            return x
    method = Kind().method
    print(end="")
    return method.__func__ is Kind.method, method.__func__ is Kind.__dict__["method"], x + 1

CALLS *= 2
""")


def test_functions_as_keys_of_a_table(program):
    program("""
def make(n):
    return lambda y: y * n

TABLE = {}
WATCHED["counts"] = COUNTS = []
ONE, TWO = make(1), make(2)

def program(x, f, g):
    TABLE[f] = TABLE.get(f, 0) + 1
    COUNTS.append((len(TABLE), TABLE[f], TABLE.get(g)))
    return f(x)

CALLS = [lambda f=f, g=g: (torch.ones(2), f, g) for f, g in [(ONE, TWO), (TWO, ONE), (TWO, TWO), (ONE, ONE), (make(5), ONE)]]
""")


def test_an_attribute_of_a_tensor_by_the_name_of_a_method(program):
    program("""
KEPT = torch.ones(3)
KEPT.abs = torch.nn.ReLU()

def program(x):
    KEPT.new = x
    same = KEPT.new is x
    del KEPT.new
    return same, callable(KEPT.new), KEPT.abs(x - 3), x * 2

CALLS *= 2
""")
