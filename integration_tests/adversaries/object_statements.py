"""Statements about an object ``o``: reading, writing, calling, comparing it, and asking what it is."""

# ruff: noqa: E501  # programs, as text
from __future__ import annotations

from collections.abc import Callable
from random import Random

from object_shapes import Shape

Statement = Callable[[Random, Shape], list[str]]

DUNDERS = (
    "__call__", "__len__", "__iter__", "__next__", "__getitem__", "__get__", "__set__", "__delete__", "__class__", "__dict__",
    "__doc__", "__name__", "__qualname__", "__module__", "__hash__", "__eq__", "__bool__", "__contains__", "__enter__", "__exit__",
    "__wrapped__", "__func__", "__self__", "__slots__", "__annotations__", "__add__", "__radd__", "__init__", "__new__", "__reduce__",
    "__reversed__", "__index__", "__int__", "__float__", "__torch_function__", "__isabstractmethod__", "__defaults__", "__closure__",
)  # fmt: skip
KINDS = (
    "int", "str", "object", "type", "tuple", "list", "dict", "property", "staticmethod", "classmethod", "functools.partial",
    "types.FunctionType", "types.MethodType", "types.BuiltinFunctionType", "types.GeneratorType", "torch.Tensor", "torch.nn.Module",
    "collections.abc.Iterable", "collections.abc.Callable", "collections.abc.Mapping", "collections.abc.Hashable", "enum.Enum",
    "(int, str)", "BaseException", "abc.ABC", "type(o)", "collections.abc.Sized", "int | str",
)  # fmt: skip
OPERATORS = ("+", "-", "*", "@", "/", "//", "%", "&", "|", "==", "!=", "<", "<=", ">", ">=", "<<", "**")
OTHERS = ("1", "o", "'s'", "x", "None", "n", "[1]", "2.5", "(1,)", "object")


def _name(random: Random, shape: Shape) -> str:
    return random.choice(shape.names)


def read(random: Random, shape: Shape) -> list[str]:
    name = _name(random, shape)
    return random.choice(
        [
            [f"out.append(o.{name})"],
            [f"out.append(getattr(o, {name!r}, 'none'))"],
            [f"v = o.{name}", "out.append((type(v).__name__, callable(v)))"],
            [f"out.append(type(o).{name})"],
            [f"v, w = o.{name}, o.{name}", "out.append(v is w or isinstance(v, str))"],
        ]
    )


def has(random: Random, shape: Shape) -> list[str]:
    names = random.sample([*DUNDERS, *shape.names], 4)
    owner = random.choice(["o", "o", "o", "type(o)"])
    return [f"out.append([hasattr({owner}, name) for name in {names}])"]


def write(random: Random, shape: Shape) -> list[str]:
    name, value = _name(random, shape), random.choice(["1", "n", "x", "o", "None", "'v'"])
    return [
        random.choice(
            [f"o.{name} = {value}", f"setattr(o, {name!r}, {value})", f"o.__dict__[{name!r}] = {value}"]
        ),
        f"out.append(o.{name} is not None)",
    ]


def delete(random: Random, shape: Shape) -> list[str]:
    name = _name(random, shape)
    return [random.choice([f"del o.{name}", f"delattr(o, {name!r})"]), f"out.append(hasattr(o, {name!r}))"]


def ask(random: Random, shape: Shape) -> list[str]:
    return [
        random.choice(
            [
                "out.append(type(o).__name__)",
                "out.append(o.__class__ is type(o))",
                "out.append(callable(o))",
                f"out.append(isinstance(o, {random.choice(KINDS)}))",
                f"out.append(issubclass(type(o), {random.choice(KINDS)}))",
                "out.append([c.__name__ for c in type(o).__mro__])",
                "out.append(type(type(o)).__name__)",
                "out.append(type(o) is type(o) and o is o)",
                "out.append(sorted(vars(o)))",
                "out.append([d for d in dir(o) if not d.startswith('_')][:5])",
                "out.append(id(o) == id(o))",
                "out.append(inspect.isfunction(o) or inspect.ismethod(o) or inspect.isclass(o))",
                f"out.append(isinstance({random.choice(OTHERS)}, type(o)))",
                "out.append(type(o).__qualname__)",
                "out.append(type(o).__bases__)",
                "out.append(type(o).__module__)",
            ]
        )
    ]


def call(random: Random, shape: Shape) -> list[str]:
    name = random.choice(shape.methods or shape.names)
    arguments = random.choice(["", "1", "n", "x", "1, 2", "a=1", "*[1]", "q=n", "o"])
    return [
        random.choice(
            [
                f"out.append(o({arguments}))",
                f"out.append(o.{name}({arguments}))",
                f"out.append(type(o).{name}({arguments}))",
                f"m = o.{name}\nout.append(m({arguments}))".replace("\n", "; "),
            ]
        )
    ]


def operate(random: Random, shape: Shape) -> list[str]:
    sides = ["o", random.choice(OTHERS)]
    random.shuffle(sides)
    symbol = random.choice(OPERATORS)
    if random.random() < 0.2:
        return (
            [
                "t = o",
                f"t {symbol.replace('==', '+').replace('!=', '-').replace('<=', '*').replace('>=', '|').replace('<', '+', 1) if symbol in ('==', '!=', '<', '<=', '>', '>=') else symbol}= {sides[1]}",
                "out.append(t is o)",
            ]
            if symbol not in (">",)
            else ["t = o", "t += 1", "out.append(t is o)"]
        )
    return [f"r = {sides[0]} {symbol} {sides[1]}", "out.append(r)"]


def builtin(random: Random, shape: Shape) -> list[str]:
    return random.choice(
        [
            ["out.append(len(o))"],
            ["out.append(bool(o))"],
            ["out.append('yes' if o else 'no')"],
            ["out.append(not o)"],
            ["out.append(list(o))"],
            ["out.append(next(o, 'end'))"],
            ["out.append(next(o))"],
            ["out.append([v for v in o][:3])"],
            ["a, b = o", "out.append((a, b))"],
            ["out.append(abs(o))"],
            ["out.append(-o)"],
            ["out.append(~o)"],
            ["out.append(round(o))"],
            ["out.append(int(o))"],
            ["out.append(float(o))"],
            ["out.append(operator.index(o))"],
            ["out.append([5, 6, 7][o])"],
            ["out.append(o[0])"],
            ["out.append(o[n])"],
            ["out.append(o['a'])"],
            ["o[0] = n", "out.append(1)"],
            ["del o[0]", "out.append(1)"],
            ["out.append(1 in o)"],
            ["out.append('a' not in o)"],
            ["out.append({o: 1}[o])"],
            ["out.append(hash(o) == hash(o))"],
            ["out.append(f'{o!s:.0}' is not None)"],
            ["out.append(divmod(o, 2))"],
            ["out.append(list(reversed(o)))"],
            ["out.append(sorted(o))"],
            ["out.append(max(o))"],
            ["out.append(sum(o))"],
            ["out.append(tuple(zip(o, o)))"],
            ["with o as v:", "    out.append(v)", "    x = x + 1"],
            ["with o:", "    raise KeyError('inside')"],
            ["with o:", "    raise ValueError('inside')"],
            ["for v in o:", "    out.append(v)", "    if len(out) > 4:", "        break"],
            ["match o:", "    case {'a': a}:", "        out.append(('map', a))", "    case [a, *_]:", "        out.append(('seq', a))", "    case object(a=a):", "        out.append(('attr', a))", "    case _:", "        out.append('other')"],
            ["print(x.sum().item() > -100)", "out.append(type(o).__name__)"],
            ["print(end='')", "out.append(hasattr(o, 'a'))"],
            ["x = x * 2 if o is not None else x"],
        ]
    )  # fmt: skip


def special(random: Random, shape: Shape) -> list[str]:
    name = random.choice([d for d in DUNDERS if d not in ("__dict__", "__doc__", "__reduce__", "__new__")])
    return random.choice(
        [
            [f"v = o.{name}", "out.append(type(v).__name__)"],
            [f"v = getattr(type(o), {name!r}, None)", "out.append(v is None)"],
            ["out.append(o.__len__())"],
            ["out.append(o.__call__())"],
            ["out.append(o.__eq__(1))"],
            ["out.append(o.__class__.__name__)"],
            ["out.append(object.__getattribute__(o, 'a'))"],
            ["object.__setattr__(o, 'zz', n)", "out.append(o.zz)"],
            ["out.append(o.__doc__)"],
            ["out.append(sorted(o.__dict__))"],
            ["out.append(list(o.__iter__()))"],
            ["out.append(o.__contains__(1))"],
            ["out.append(o.__getitem__(0))"],
            ["out.append(type(o.__init__).__name__)"],
            ["out.append(operator.attrgetter('a')(o))"],
            ["out.append(operator.methodcaller('a')(o))"],
        ]
    )


def raising(random: Random, shape: Shape) -> list[str]:
    return random.choice(
        [
            ["raise KeyError(n)"],
            ["try:", "    raise KeyError(n)", "except KeyError as k:", "    raise ValueError('v') from k"],
            ["try:", "    raise KeyError(n)", "except KeyError:", "    raise ValueError('v')"],
            ["try:", "    raise KeyError(n)", "except KeyError as k:", "    out.append(where(k))", "    raise"],
            ["try:", "    o.missing", "except AttributeError as k:", "    out.append(where(k))", "    out.append((k.name, type(k.obj) is type(o)))"],
            ["try:", "    {}[n]", "except KeyError as k:", "    k.add_note('note')", "    raise k"],
            ["try:", "    1 / 0", "except ZeroDivisionError:", "    out.append(traceback.format_exc())"],
            ["try:", "    1 / 0", "finally:", "    raise KeyError('f')"],
            ["try:", "    [][n]", "except (IndexError, KeyError) as k:", "    kept = k", "out.append((where(kept), kept.__traceback__.tb_lineno))"],
            ["try:", "    raise ValueError(1)", "except ValueError as k:", "    out.append((k.__context__ is None, k.__cause__, k.__suppress_context__, k.args))"],
            ["def inner(v):", "    return v.missing", "try:", "    inner(n)", "except AttributeError as k:", "    out.append(where(k))"],
            ["def inner(v):", "    print(end='')", "    raise KeyError(v)", "inner(n)"],
            ["try:", "    raise ExceptionGroup('g', [ValueError(1), KeyError(2)])", "except* ValueError as g:", "    out.append(len(g.exceptions))"],
            ["raise o"],
            ["raise KeyError from o"],
            ["assert o is None, 'message'"],
            ["x @ torch.ones(91)"],
            ["with contextlib.suppress(KeyError):", "    raise KeyError(1)"],
            ["try:", "    raise KeyError(1)", "except KeyError as k:", "    raise k.with_traceback(None)"],
            ["for i in range(2):", "    try:", "        [1][i + n]", "    except IndexError as k:", "        out.append((i, where(k)))", "        continue", "    x = x + 1"],
            ["def gen():", "    yield 1", "    raise KeyError('gen')", "for v in gen():", "    out.append(v)"],
            ["out.append(sys.exc_info())"],
            ["try:", "    raise KeyError(1)", "except KeyError:", "    out.append((sys.exc_info()[0], sys.exc_info()[2].tb_lineno, sys.exc_info()[2].tb_next))"],
        ]
    )  # fmt: skip


def made(random: Random, shape: Shape) -> list[str]:
    return random.choice(
        [
            ["p = functools.partial(max, n)", "out.append((p(3), hasattr(p, '__call__'), callable(p), p.func is max, p.args))"],
            ["s = staticmethod(len)", "out.append((type(s).__name__, isinstance(s, staticmethod), s([1])))"],
            ["c = classmethod(len)", "out.append((type(c).__name__, callable(c), hasattr(c, '__get__')))"],
            ["q = property(len)", "out.append((type(q).__name__, q.fget is len, q.fset, hasattr(q, '__set__')))"],
            ["class L:", "    k = n", "    def f(self):", "        return self.k", "out.append((L().f(), L.__name__, type(L()).__qualname__))"],
            ["def local(a, b=n):", "    return a + b", "out.append((local(1), local.__name__, local.__defaults__, hasattr(local, 'z')))"],
            ["local = lambda v: v", "local.tag = n", "out.append((local.tag, vars(local), hasattr(local, 'tag')))"],
            ["t = type('T', (), {'k': n})", "out.append((t.__name__, t().k))"],
            ["out.append(types.MethodType(lambda s, v: (s, v), n)(2))"],
            ["out.append([type(v).__name__ for v in (iter([]), iter(()), iter(''), iter({}), iter(set()), iter(range(2)), zip(), map(len, []))])"],
            ["out.append(isinstance(x.shape, tuple) and type(x.shape).__name__)"],
            ["out.append([type(v).__name__ for v in (x, x.shape, x.shape[0], x.dtype, x.sum().item(), x.tolist())])"],
            ["out.append([hasattr(x, k) for k in ('__call__', '__len__', '__array__', 'grad', 'foo', '__torch_function__', '__dict__')])"],
            ["a = x.numpy()", "out.append([hasattr(a, k) for k in ('__call__', '__len__', 'foo', 'shape', '__array__')])"],
            ["out.append(torch._C._is_torch_function_enabled())", "with torch._C.DisableTorchFunctionSubclass():", "    out.append(torch._C._is_torch_function_enabled())"],
            ["it = iter([1, 2])", "out.append((next(it), it.__next__(), hasattr(it, '__iter__'), next(it, 'end')))"],
            ["g = (i for i in range(2))", "out.append((next(g), hasattr(g, 'send'), g.__name__, callable(g)))"],
            ["o.__class__ = type('Other', (type(o),), {'extra': 1})", "out.append(o.extra)"],
            ["import copy", "out.append(type(copy.copy(o)).__name__)"],
            ["out.append((torch.dropout(x, 0.0, True) is x, torch.nn.functional.dropout(x, 0.5, n > 9) is x, x.contiguous() is x, x.expand_as(x) is x))"],
        ]
    )  # fmt: skip


def through_class(random: Random, shape: Shape) -> list[str]:
    """The class is changed through the object, and the object's class is another one."""
    name, value = (
        _name(random, shape),
        random.choice(
            ["n", "x", "lambda self, *a: 7", "property(lambda self: 8)", "staticmethod(len)", "None", "[1]"]
        ),
    )
    owner = random.choice(["type(o)", "o.__class__", "type(o).__mro__[1]"])
    lines = random.choice(
        [
            [f"{owner}.{name} = {value}", f"out.append(type(o.{name}).__name__)"],
            [f"setattr({owner}, {name!r}, {value})", f"out.append(hasattr(o, {name!r}))"],
            [f"del {owner}.{name}", f"out.append(hasattr(o, {name!r}))"],
            [f"out.append({name!r} in vars({owner}))"],
            [f"out.append(inspect.getattr_static(o, {name!r}, 'none') is getattr({owner}, {name!r}, None))"],
            ["class Other(type(o)):", "    extra = 3", "v = Other.__new__(Other)", "out.append((v.extra, isinstance(v, type(o))))"],
            ["o.__class__ = type(o)", "out.append(type(o).__name__)"],
            ["out.append(super(type(o), o).__init__ is not None)"],
            [f"out.append(super(type(o), o).{name})"],
            ["out.append([k for k in vars(type(o)) if k[0] != '_'])"],
            ["out.append([cls for cls in type(o).__subclasses__() if cls.__name__ not in ('Other', 'K')])"],
            ["out.append(sorted(type(o).__annotations__))"],
        ]
    )  # fmt: skip
    return [f"mine({owner})", *lines]


def in_kind(random: Random, shape: Shape) -> list[str]:
    """What is particular to data classes, enumerations, named tuples, mappings, iterators, weak references."""
    return random.choice(
        [
            ["out.append(dataclasses.asdict(o))"],
            ["out.append(dataclasses.replace(o, a=n))"],
            ["out.append([f.name for f in dataclasses.fields(o)])"],
            ["out.append(dataclasses.is_dataclass(o))"],
            ["out.append((o.name, o.value))"],
            ["out.append(list(type(o)))"],
            ["out.append(type(o)['a'])"],
            ["out.append(type(o)(2))"],
            ["out.append(o in type(o))"],
            ["out.append(o is type(o).a)"],
            ["out.append((o._replace(a=n), o._asdict(), o._fields))"],
            ["out.append(o.get('a', n))"],
            ["out.append(o.pop('a', n))"],
            ["out.append(o.setdefault('zz', x) is x)", "out.append(list(o))"],
            [  # sets refuse it in other words
                "o.update([n]) if isinstance(o, (set, frozenset)) else o.update(zz=n)",
                "out.append(o)",
            ],
            ["out.append(o | {'zz': n})"],
            ["v = o.popitem()", "o[v[0]] = v[1]", "out.append((v, list(o)))"],
            ["out.append((o.keys() & {'a'}, list(o.items())))"],
            ["out.append({**o, 'zz': n})"],
            ["out.append([*o, n])"],
            ["a, *b = o", "out.append((a, b))"],
            ["o.append(n)", "out.append(o.index(n))"],
            ["o.add(n)", "out.append(n in o)"],
            ["out.append(o())"],
            ["out.append(o() is o)"],
            ["v = weakref.ref(o)", "out.append(v() is o)"],
            ["V = weakref.WeakKeyDictionary()", "V[o] = n", "out.append(V[o])"],
            ["out.append((o.get(), type(o.set(n)).__name__))"],
            ["mine(o)", "o.__defaults__ = (n,)", "out.append(o())"],
            ["mine(o)", "o.__code__ = (lambda *a, **k: 77).__code__", "out.append(o())"],
            ["mine(o)", "o.__name__ = 'renamed'", "out.append(o.__name__)"],
            ["out.append((o.__defaults__, o.__kwdefaults__, o.__closure__ is None))"],
            ["mine(o)", "o.__wrapped__ = len", "out.append(inspect.unwrap(o) is len)"],
            ["out.append(functools.reduce(operator.add, o))"],
            ["out.append(list(itertools.chain(o, [n])))"],
            ["out.append(dict.fromkeys(o, n))"],
            ["out.append(iter(o))"],
            ["v = iter(o)", "next(v)", "out.append(v)"],
            ["out.append(enumerate(o))"],
            ["out.append(reversed(o))"],
            ["out.append(set(o))"],
            ["out.append(copy.deepcopy(o))"],
            ["v = copy.copy(o)", "out.append((type(v).__name__, v is o))"],
            ["out.append(sorted(o, key=str))"],
            ["out.append(o.__reduce_ex__(2)[0].__name__)"],
            ["out.append(repr(o)[:1])"],
            ["out.append(str(o)[:3])"],
            ["out.append(f'{o}'[:2])"],
            ["out.append('%s' % (o,) == str(o))"],
            ["out.append({n: o}.get(n) is o)"],
            ["out.append(o == copy.copy(o))"],
            ["out.append(any(v is o for v in [n, o]))"],
            ["out.append([1, o, 'a'].index(o))"],
            ["out.append((o, n) == (o, n))"],
            ["out.append(n in [o])", "out.append(o in (n, o))"],
            ["global G", "G = o", "out.append(G is o)", "del G"],
            ["globals()['G'] = n", "out.append(G + 1)"],
            ["with contextlib.ExitStack() as s:", "    out.append(s.enter_context(o))", "    x = x + 1"],
            ["with torch.no_grad():", "    out.append(o(1) if callable(o) else torch.is_grad_enabled())"],
            ["isinstance(o, type(o)) and out.append(1)", "x = x + (1 if o else 2)"],
            ["out.append(min(o, default=n))"],
            ["out.append(o.__sizeof__() > 0)"],
            ["out.append(max(o, n))"],
            ["out.append(pow(o, 2))"],
            ["out.append(o[::2])"],
            ["out.append(o[1:])"],
            ["o[1:] = [n]", "out.append(o)"],
            ["out.append(o.a.b)"],
            ["o.a += n", "out.append(o.a)"],
            ["out.append(slice(o, n).start is o)"],
            ["out.append(bytes(o))"],
            ["out.append(complex(o))"],
            ["out.append(range(o)[-1])"],
            ["out.append(list(zip(o, 'abc')))"],
            ["out.append(x[o])"],
            ["out.append(x + o)"],
            ["out.append(o.clone() if torch.is_tensor(o) else torch.tensor(o))"],  # of tensors it warns once
            ["out.append(torch.is_tensor(o) or isinstance(o, torch.Tensor))"],
            ["out.append(x.reshape(o))"],
        ]
    )  # fmt: skip


STATEMENTS: tuple[Statement, ...] = (
    read, read, has, has, write, delete, ask, ask, call, operate, builtin, builtin, builtin, special, raising, raising, made,
    through_class, in_kind, in_kind, in_kind,
)  # fmt: skip
"""Kinds of statements, as often as they are drawn."""
