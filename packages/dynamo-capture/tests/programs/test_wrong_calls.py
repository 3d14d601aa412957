"""Calls that Python refuses raise what Python raises, and special methods called by name answer as Python's do."""

import bisect
import collections
import contextlib
import dataclasses
import difflib
import functools
import heapq
import itertools
import numbers
import operator
import re
import string
import textwrap
import types

import pytest
import torch

X = torch.arange(6.0).reshape(2, 3)
weight = torch.nn.Parameter(torch.ones(2, 3))


class Item:
    def __init__(self, n):
        self.n = n


@dataclasses.dataclass
class Record:
    a: int


class Annotating:
    a: int


class Annotated(Annotating):
    pass


class Loose(Item):
    def __init__(self, *args):
        super(Item, self).__init__(*args)


class Made:
    def __new__(cls, *args):
        return object.__new__(cls)


class Equal(Item):
    def __eq__(self, other):
        return self.n == other.n if isinstance(other, Equal) else NotImplemented

    __hash__ = None


class Words(dict):
    pass


class Pair(tuple):
    __slots__ = ()


class Numbers(list):
    def __init__(self, *items):
        super().__init__(items)


class Members(set):
    def __init__(self, *items):
        super().__init__(items)


class Frozen(frozenset):
    pass


class Refused(Exception):
    pass


class Deeper(Equal):
    def __eq__(self, other):
        return "deeper"


class Index:
    def __index__(self):
        return 2


class Divides:
    def __divmod__(self, other):
        return "divided", other

    def __rdivmod__(self, other):
        return "divides", other


class Wrong:
    """Each special method gives what Python does not take."""

    def __bool__(self):
        return 3

    def __len__(self):
        return -1

    def __str__(self):
        return 3

    def __format__(self, spec):
        return 4

    def __int__(self):
        return "1"

    def __float__(self):
        return 1

    def __iter__(self):
        return 3


Named = collections.namedtuple("Named", "a b")


def drained(iterator):
    return 2 in iterator, list(iterator)


def added(one, other):
    one |= other
    return one


def unpacked(value):
    first, *rest = value
    return first, rest


EXPRESSIONS = {
    "number of arguments": [
        "range()", "set(1, 2)", "set(a=1)", "frozenset(a=1)", "bool(1, 2)", "bool(a=1)", "slice(1, 2, 3, 4)",
        "collections.deque([1], 2, 3)", "object(1)", "list(zip([1], a=1))", "[].append()", "[].append(1, 2)",
        "{1}.add()", "{1}.add(1, 2)", "{1: 2}.get()", "{1: 2}.pop()", "{1: 2}.pop(1, 2, 3)", "{}.setdefault()",
        "[1].insert(1)", "[1].clear(1)", "{1: 2}.keys(1)", "{1}.issubset()", "{1}.union([2], [3])", "''.join()",
        "collections.deque([1]).append()", "collections.OrderedDict(a=1).pop()", "[1].__len__(2)",
        "[1].__getitem__()", "[1].__setitem__(0)", "[1].__contains__()", "getattr(1)", "next()", "max(1, 2, default=3)",
        "Item(1).__setattr__('n')", "x.__iter__(x)", "iter([1]).__next__(1)", "iter([1]).__iter__(1)",
        "types.SimpleNamespace(1)", "numbers.Real(1)", "numbers.Real(a=1)",
    ],
    "substitutes": [
        "heapq.heappush(0, 1)", "heapq.heappushpop((1, 2), x)", "heapq.heapify((3, 1))", "heapq.heappop([])", "heapq.heapreplace([], 1)", "heapq.heappush([1], 'a')",
        "functools.cmp_to_key()",
        "functools.reduce({1: 1})", "functools.reduce(added, [1, 'a'])", "itertools.pairwise(reverse=True)",
        "itertools.starmap(len)", "itertools.combinations_with_replacement()", "itertools.dropwhile(len)",
        "itertools.count('a')", "itertools.islice([1], -1)", "itertools.islice([x], 'a')", "itertools.repeat(1, 'a')",
        "itertools.combinations([x], -1)", "itertools.accumulate(3)", "itertools.chain(1) is None", "sum([x, 'a'])",
        "next(itertools.chain(1))", "itertools.product([x], repeat='a')", "itertools.groupby(3)",
    ],
    "kinds of arguments": [
        "sum(['a'], '')", "reversed({1})", "hasattr(Item(1), 3)", "getattr(Item(1), 3)", "setattr(Item(1), 3, 3)",
        "tuple.index([1], 1)", "list.append({1}, 2)", "dict.get([1], 2)", "type.__call__(3)",
        "collections.Counter('a') in {}", "slice(1).numel()", "torch._C._set_grad_enabled('no')", "Refused(a=1)",
        "getattr(torch, slice(0, 2))",
    ],
    "words of methods": [
        "True.__trunc__(0)", "called(True.__trunc__, 0)", "getattr(True, '__trunc__')(0)", "x.device.__format__(b'', 2)",
        "collections.OrderedDict('a')", "collections.OrderedDict([(1, 2, 3)])", "collections.OrderedDict([()])",
        "collections.OrderedDict().update([1])", "types.SimpleNamespace(a=1).__str__()", "super()", "called(super)",
        "f'{types.SimpleNamespace(a=1)}'", "itertools.permutations((1, 2), x[0])", "itertools.combinations([1, 2], x.sum())",
        "ValueError('a').with_traceback()", "ValueError('a').with_traceback(1)", "(5).__round__(1, 2)",
        "types.MappingProxyType()", "types.MappingProxyType(1, 2)", "True.bit_length(Item, (1, 2))", "x.long().var(2)",
        "x.device.__format__(x, 'a')", "types.SimpleNamespace(a=1).__init__(len)", "x.var(5)", "torch.std_mean(x, 3)",
        "collections.Counter('a').popitem(0)", "called(collections.Counter('a').popitem, 0)",
    ],
    "what is kept": [
        "kept(lambda l: string.Template(l).template)", "kept(lambda l: difflib.SequenceMatcher(None, l, l).a)",
        "kept(lambda l: textwrap.TextWrapper(l).width)", "kept(lambda l: contextlib.nullcontext(l).enter_result)",
        "kept(lambda l: types.SimpleNamespace(a=l).a)", "kept(lambda l: max(l, [0]))",
        "operator.itemgetter(x.shape[0])([1, 2, 3])", "type(operator.itemgetter(x.shape[0])).__name__",
        "Record(1).__repr__(2)", "x.ndimension(a=2)", "x.dim(1)", "type(re.compile('a').search)",
        "itertools.combinations(x, x)", "(x > 0).nanquantile(str, 2)", "x.quantile()",
    ],
    "looked at when it is made": [
        "itertools.count(slice(0, 2), str)", "itertools.islice('ab', str, 2)", "itertools.islice(slice(0, 2), 3, Item(1))",
        "itertools.islice([1], Item(1))", "itertools.islice([1], Index())", "itertools.repeat(2.5, x.shape)",
        "itertools.combinations([1], [2])", "itertools.chain(1, 2)", "itertools.tee(3)", "itertools.tee([1], -1)",
        "itertools.permutations([1], 'a')", "itertools.product([x], repeat=-1)", "itertools.zip_longest([1], 3)",
        "type(itertools.tee([1])[0])", "type(next(itertools.groupby('a'))[1])", "type(itertools.chain([1]))",
    ],
    "classes that are named": [
        "x.dist(x.shape[0])", "x.sort(x.shape[0], slice(0, 2))", "x.diagonal_scatter(x.shape)", "x.ne(1j, x.shape[0], ())",
        "x.unsqueeze(x.shape)", "x._has_symbolic_sizes_strides", "x.sum(weight[0])", "weight.clamp_max(x, int, {})",
        "weight.requires_grad_(x)", "weight.__module__",
    ],
    "methods that capture knows": [
        "x.__setitem__(range(3))", "x.__setitem__()", "x.__getitem__()", "x.dense_dim(str)", "x.sparse_dim(1)",
        "x.requires_grad_(2)", "x.numpy(y)", "x.size('a')", "added.__get__(1, 2, 3, a=1)", "type(2.5, default=1)",
        "contextlib.nullcontext(1, 2)", "collections.deque([1]).remove({1: 2})", "collections.deque({}, ())",
        "collections.deque([1]).__getitem__(2.5)", "collections.deque([1]).__delitem__(len)", "x.clone().polygamma_(-1)",
        "bisect.bisect({}, 1, x.shape[0])", "bisect.bisect(x[0], x[0])", "x.__torch_function__('a')",
        "functools.cmp_to_key(1, int)", "types.MethodType(int, None)", "types.MethodType(int, 1)() or 0", "weight.__deepcopy__(2, -1)", "x.as_subclass((1, 2))", "x.stft()",
        "x.long().log_normal_()", "x.lerp(x, 'a')", "y[0, 0].ge_(y)", "x.tensor_split(y)", "y.long().ldexp_(y)", "x.clone().lcm_(y)", "(x > 0).normal_()", "ValueError().with_traceback()", "Item(1).__format__()", "bisect.bisect(2.5, None, x[0])", "bisect.bisect([1], 2, 0, -1)",
        "Item.__setattr__(Item, len, 3)", "Annotated().__annotations__",
        "collections.OrderedDict(a=1).pop(None)", "collections.OrderedDict(a=1).pop((1, 2))", "x[0]._is_view((), 1)",
    ],
    "keys of comparisons": [
        "type(functools.cmp_to_key(3))", "functools.cmp_to_key(operator.sub)(1) < functools.cmp_to_key(operator.sub)(x.shape[0])",
        "functools.cmp_to_key(len) == 3", "functools.cmp_to_key(len)(y).obj is y", "functools.cmp_to_key(len)()",
        "max([1, 5], key=functools.cmp_to_key(lambda a, b: b - a))",
    ],
    "methods of a base": [
        "object.__eq__(x, x)", "object.__eq__(x, y)", "object.__eq__([1], [1])", "object.__ne__(x, None, 2)",
        "dict.__eq__(collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1))", "x.__len__(3)",
        "tuple.__add__(x.shape, (1,))", "type(tuple.__add__(x.shape, (1,)))", "object.__setattr__(x)",
        "dict.__or__(slice(0, 2), 3)", "type({}.items()).__rsub__((1, 2))", "object.__format__([1], '')",
        "dict.__repr__(collections.OrderedDict(a=1))", "dict.__len__(collections.OrderedDict(a=1))",
        "object.__lt__([1], [2])", "object.__hash__((1, 2)) == hash((1, 2))", "tuple.__repr__(Named(1, 2))",
        "type(Item(1).__init_subclass__).__name__", "type(Item(1).__subclasshook__).__name__", "type({}.fromkeys)",
        "functools.wraps(len, int).keywords", "types.ClassMethodDescriptorType(str)", "type({}.values())(1, 2)",
    ],
    "special methods": [
        "[1].__eq__(3)", "(1,).__eq__([1])", "(1,).__ne__([1])", "{1}.__or__([1])", "{1: 2}.__eq__([1])",
        "{}.__or__([1])", "[1].__add__([2])", "{1}.__and__({1, 2})", "Item(1).__eq__(3)", "Item(1).__ne__(3)",
        "Equal(1).__ne__(Equal(2))", "Equal(1).__ne__(3)", "Equal(1) != Equal(1)", "Item(1) != 3",
    ],
    "making": [
        "object.__new__(3)", "object.__new__()", "object.__new__(dict)", "object.__new__(Item, 1)",
        "type(object.__new__(Item))", "dict.__new__(Item)", "dict.__new__(Words, 1, 2)", "tuple.__new__(Item, (1,))",
        "tuple.__new__(Pair, (1, 2))", "tuple.__new__(Pair, (1,), 2)", "tuple.__new__(Pair, 1)",
        "type(frozenset.__new__(Frozen, [1]))", "frozenset.__new__(set, [1])", "Exception.__new__(Refused, 1).args",
        "Exception.__new__(Item)", "Loose()", "Loose(1)", "Made(1).__class__", "Item()", "Item(1, 2)", "Item(m=1)",
        "type.__call__(Item, 3).n",
    ],
    "operators": [
        "added({1: 2}, [(3, 4)])", "added({1: 2}, 3)", "added({1}, [2])", "[1] in frozenset({1})", "[1] * 2**70",
        "'a' * Index()", "[1] * Index()", "divmod(Divides(), 2)", "divmod(2, Divides())", "Item(1) ** 2",
        "collections.deque([1]) == [1]", "[y] == {1}", "{1: 2}.values() == [2]", "{1: y}.keys() == {1}",
        "collections.OrderedDict(a=1, b=y) == collections.OrderedDict(b=y, a=1)", "Equal(1) == Deeper(1)",
        "collections.OrderedDict(a=1, b=2) == dict(b=2, a=1)", "repr({1: 2}.keys())", "str({1: 2}.items())",
        "repr(collections.OrderedDict(a=1).values())", "3 in Item(1)", "[a for a, b in [1]]", "unpacked(Item(1))",
    ],
    "conversions": [
        "int(Item(1))", "int(Index())", "float(Index())", "float(Item(1))", "len(Item(1))", "len(Wrong())",
        "bool(Wrong())", "1 if Wrong() else 2", "str(Wrong())", "f'{Wrong()}'", "format(Wrong())", "int(Wrong())",
        "float(Wrong())", "reversed(Item(1))", "vars(1)", "next([1])", "iter(3, 4)", "collections.deque([1], -1)",
        "collections.defaultdict(1)", "sorted('ba', reverse='x')", "dict([1])", "dict([(1, 2, 3)])", "Item(1)[0]",
        "iter(Wrong())", "list(1, 2)",
    ],
    "exceptions": [
        "OSError(2, 'absent').__class__", "OSError(2, 'absent').args", "TimeoutError('a', 2, y).filename is y",
        "ImportError('a', name='b').name", "ImportError('a', b=1)", "AttributeError('a').args",
    ],
    "iterators": [
        "1 in (v for v in (1, 2))", "5 in iter([1])", "(1, 2) in zip([1], [2])", "y in iter([y])",
        "collections.OrderedDict(a=1).fromkeys([1, 2])", "{1: 2}.fromkeys('ab', y)", "{1: 2}.fromkeys()",
        "drained(iter([1, 2, 3]))", "[v.sum() for v in x.__iter__()]",
    ],
    "parameters": [
        "(lambda a, /, b, *, c: 1)(1)", "(lambda a, /, b, *, c: 1)(a=1, b=2, c=3)", "(lambda a, b=1, *, c: 1)(1, 2, 3)",
        "(lambda: 1)(1)", "(lambda a, b: 1)()", "(lambda a, *, c, d: 1)(1)", "(lambda a: 1)(1, a=2)", "(lambda a: 1)(b=1)",
        "Named(1)", "Named(1, 2, 3)", "Named(a=1)", "Named(1, a=1)", "Named(b=1, a=2)", "(lambda *, a=y: a)(y)",
    ],
    "initializing": [
        "Numbers(1, 2)", "list(Numbers(1).__init__() or [])", "sorted(Members(1, 2))", "again([1, 2], [3])",
        "again({1: 2}, [(3, 4)])", "again({1}, [2])", "again([1])", "again([1], 2)", "again([1], [2], 3)",
        "again(collections.deque([1]), [2])", "again(collections.defaultdict(list, a=1), None)",
    ],
}  # fmt: skip


def kept(get):
    items = [1]
    return get(items) is items


def called(function, *args):
    return function(*args)


def again(made, *args):
    made.__init__(*args)
    return made


def _program(expression):
    modules = (bisect, contextlib, difflib, heapq, itertools, numbers, operator, re, string, textwrap)
    scope = globals() | {module.__name__: module for module in modules}
    text = f"""
def program(x):
    y = x + 1
    try:
        result = {expression}
    except Exception as error:
        result = type(error).__name__, str(error)
    return result, y * 2
"""
    exec(compile(text, f"<{expression}>", "exec"), scope)
    return scope["program"]


@pytest.mark.parametrize("group", EXPRESSIONS)
def test_answers(same, group):
    calls = [(X,), (torch.cat([X, X]),)] if group == "classes that are named" else [(X,)]
    for expression in EXPRESSIONS[group]:
        program = _program(expression)
        same(program, *calls)
        assert same.capture.report.replacements, expression


def test_sizes_that_vary_are_named_as_numbers(same):
    ignore = ("warnings", "all warnings")  # torch gives one of them once
    same(_program("x.resize(x.shape[0])"), (X,), (torch.cat([X, X]),), ignore=ignore)


def test_words_name_classes_as_python_does(whole):
    def f(x):
        found = []
        for wrong in (
            lambda: collections.deque([1]) << 1,
            lambda: collections.deque([1])[len],
            lambda: functools.partial(max, 1)[0],
            lambda: x.shape - 1,
            lambda: functools.partial(1, 2),
            lambda: types.MethodType(1, 2),
            lambda: (lambda a, b: a)(*types.SimpleNamespace()),
        ):
            try:
                wrong()
            except TypeError as error:
                found.append(str(error))
        n = x.shape[0]
        try:
            n -= None
        except TypeError as error:
            found.append(str(error))

        return x + 1, found

    whole(f, (torch.ones(2, 3),))


def test_torch_takes_no_deque_for_a_list_of_tensors(same):
    def f(x):
        items = collections.deque([x, x])
        try:
            return torch.stack(items)
        except TypeError:
            return x - 1

    same(f, (X,))
