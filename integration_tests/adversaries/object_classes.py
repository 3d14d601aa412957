"""Classes for programs about objects: each has some features drawn from the tables here."""

# ruff: noqa: E501  # programs, as text
from __future__ import annotations

from random import Random

from object_kinds import READY
from object_shapes import NAMES, NUMBERS, Shape


def classes(random: Random) -> tuple[str, list[Shape]]:
    """The text of some classes, and what objects of them look like."""
    kind = random.random()
    if kind < 0.6:
        return _plain_classes(random)
    text, shape = random.choice(READY)
    return text, [shape]


DESCRIPTOR_PARTS = {
    "get": "    def __get__(self, obj, cls=None):\n        LOG.append('get')\n        return self if obj is None else ('got', obj.__dict__.get(self.k, self.k) if hasattr(obj, '__dict__') else 0)",
    "get_error": "    def __get__(self, obj, cls=None):\n        raise AttributeError('no ' + self.k)",
    "set": "    def __set__(self, obj, value):\n        LOG.append('set')\n        obj.__dict__[self.k] = value",
    "delete": "    def __delete__(self, obj):\n        LOG.append('delete')\n        obj.__dict__.pop(self.k, None)",
    "name": "    def __set_name__(self, owner, name):\n        self.k = name",
}

MEMBERS = {
    "plain": "    {n} = {v}",
    "tensor": "    {n} = torch.ones(2)",
    "property": "    @property\n    def {n}(self):\n        return ('property', len(LOG))",
    "full_property": (
        "    @property\n    def {n}(self):\n        return getattr(self, '_{n}', 5)\n"
        "    @{n}.setter\n    def {n}(self, value):\n        self._{n} = value\n"
        "    @{n}.deleter\n    def {n}(self):\n        LOG.append('deleted')"
    ),
    "bad_property": "    @property\n    def {n}(self):\n        raise AttributeError('inner')",
    "cached": "    @functools.cached_property\n    def {n}(self):\n        LOG.append('computed')\n        return 11",
    "method": "    def {n}(self, *args, **kwargs):\n        return ('method', args, sorted(kwargs))",
    "static": "    @staticmethod\n    def {n}(*args):\n        return ('static', args)",
    "class_method": "    @classmethod\n    def {n}(cls, *args):\n        return (cls.__name__, args)",
    "partial": "    {n} = functools.partial(max, 3)",
    "partial_method": "    def _m_{n}(self, i, j=2):\n        return i + j\n    {n} = functools.partialmethod(_m_{n}, 4)",
    "descriptor": "    {n} = D('{n}')",
    "lambda": "    {n} = lambda self, v=1: v",
    "builtin": "    {n} = len",
    "class": "    class {n}:\n        z = 4",
    "single": (
        "    @functools.singledispatchmethod\n    def {n}(self, v):\n        return 'other'\n"
        "    @{n}.register\n    def _(self, v: int):\n        return 'int'"
    ),
    "abstract": "    {n} = abc.abstractmethod(lambda self: 1)",
}

HOOKS = {
    "getattr": "    def __getattr__(self, name):\n        if name.startswith('m'):\n            return 'dynamic ' + name\n        raise AttributeError(name)",
    "getattribute": "    def __getattribute__(self, name):\n        if name == 'q':\n            return 'always'\n        return super().__getattribute__(name)",
    "setattr": "    def __setattr__(self, name, value):\n        LOG.append(('setattr', name))\n        super().__setattr__(name, value)",
    "delattr": "    def __delattr__(self, name):\n        LOG.append(('delattr', name))\n        super().__delattr__(name)",
    "init": "    def __init__(self, a=1, *rest):\n        self.a0 = a",
    "new": "    def __new__(cls, *args):\n        made = super().__new__(cls)\n        LOG.append('new')\n        return made",
    "init_subclass": "    def __init_subclass__(cls, **kwargs):\n        super().__init_subclass__(**kwargs)\n        cls.made_by = 'init_subclass'",
    "class_getitem": "    def __class_getitem__(cls, key):\n        return (cls.__name__, key)",
    "dir": "    def __dir__(self):\n        return ['z', 'y']",
}

SPECIALS = {
    "add": "(self, other):\n        return ('add', type(other).__name__)",
    "radd": "(self, other):\n        return ('radd', type(other).__name__)",
    "iadd": "(self, other):\n        LOG.append('iadd')\n        return self",
    "sub": "(self, other):\n        return NotImplemented",
    "rsub": "(self, other):\n        return ('rsub', other)",
    "mul": "(self, other):\n        if isinstance(other, int):\n            return other * 2\n        return NotImplemented",
    "matmul": "(self, other):\n        return 'matmul'",
    "neg": "(self):\n        return 'neg'",
    "abs": "(self):\n        return 3",
    "invert": "(self):\n        return 8",
    "eq": "(self, other):\n        LOG.append('eq')\n        return type(other) is int and other == 1",
    "lt": "(self, other):\n        return NotImplemented",
    "gt": "(self, other):\n        return 'gt'",
    "le": "(self, other):\n        return True",
    "hash": "(self):\n        return 17",
    "len": "(self):\n        return 2",
    "bad_len": "(self):\n        return -1",
    "bool": "(self):\n        return False",
    "bad_bool": "(self):\n        return 2",
    "contains": "(self, item):\n        return item if item == 0 else 'yes'",
    "iter": "(self):\n        return iter([1, 2])",
    "gen_iter": "(self):\n        yield 5\n        yield 6",
    "bad_iter": "(self):\n        return 3",
    "next": "(self):\n        LOG.append('next')\n        if len(LOG) > 3:\n            raise StopIteration(9)\n        return len(LOG)",
    "getitem": "(self, key):\n        if isinstance(key, int) and key > 2:\n            raise IndexError(key)\n        return ('item', key)",
    "setitem": "(self, key, value):\n        LOG.append(('setitem', key))",
    "delitem": "(self, key):\n        LOG.append(('delitem', key))",
    "missing": "(self, key):\n        return ('missing', key)",
    "call": "(self, *args, **kwargs):\n        return ('called', args, kwargs)",
    "str": "(self):\n        return 'a str'",
    "repr": "(self):\n        return 'a repr'",
    "bad_repr": "(self):\n        return 3",
    "format": "(self, spec):\n        return 'formatted ' + spec",
    "index": "(self):\n        return 1",
    "int": "(self):\n        return 41",
    "float": "(self):\n        return 1.5",
    "round": "(self, digits=None):\n        return ('round', digits)",
    "divmod": "(self, other):\n        return ('divmod', other)",
    "reversed": "(self):\n        return [3, 2]",
    "enter": "(self):\n        LOG.append('enter')\n        return 12",
    "exit": "(self, kind, value, trace):\n        LOG.append(('exit', kind is None, trace is None))\n        return kind is KeyError",
    "instancecheck": "(self, other):\n        return other == 1",
    "length_hint": "(self):\n        return 10",
    "copy": "(self):\n        return 'copied'",
    "bytes": "(self):\n        return b'bytes'",
}

BASES = (
    "object",
    "object",
    "object",
    "dict",
    "list",
    "tuple",
    "int",
    "str",
    "Exception",
    "abc.ABC",
    "torch.nn.Module",
    "set",
    "float",
)
METAS = (
    "class Meta(type):\n    def meta_method(cls):\n        return cls.__name__\n    @property\n    def p(cls):\n        return 'meta p'\n    q = 'meta q'",
    "class Meta(type):\n    def __getattr__(cls, name):\n        if name == 'missing':\n            return 'by meta'\n        raise AttributeError(name)",
    "class Meta(type):\n    def __instancecheck__(cls, other):\n        return isinstance(other, int)\n    def __call__(cls, *args):\n        LOG.append('meta call')\n        return super().__call__(*args)",
    "class Meta(type):\n    def __len__(cls):\n        return 3\n    def __iter__(cls):\n        return iter('xy')\n    def __contains__(cls, item):\n        return item == 1\n    def __getitem__(cls, key):\n        return ('meta item', key)",
    "class Meta(type):\n    def __getattribute__(cls, name):\n        if name == 'q':\n            return 'always q'\n        return super().__getattribute__(name)",
)


def _plain_classes(random: Random) -> tuple[str, list[Shape]]:
    parts = random.sample(sorted(DESCRIPTOR_PARTS), random.randint(0, 3))
    descriptor = "\n".join(
        ["class D:", "    def __init__(self, k):\n        self.k = k", *(DESCRIPTOR_PARTS[p] for p in parts)]
    )
    meta = random.choice(METAS) if random.random() < 0.25 else ""
    base = random.choice(BASES) if not meta else "object"
    head = f"{base}, metaclass=Meta" if meta else base
    body, names = _body(random, base)
    texts = [descriptor, meta, "\n".join([f"class B({head}):", *body])]
    last = "B"
    for name in ("C", "E")[: random.choice([0, 0, 1, 1, 2])]:
        body, more = _body(random, "object")
        others = ", Mixin" if random.random() < 0.2 else ""
        if others:
            texts.append(
                "class Mixin:\n    mixed = 'mixed'\n    def a(self):\n        return ('mixin', hasattr(super(), 'a'))"
            )
        texts.append("\n".join([f"class {name}({last}{others}):", *body]))
        names += more
        last = name
    arguments = {
        "int": ("4",),
        "str": ("'text'",),
        "dict": ("{1: 2}",),
        "list": ("[1, 2]",),
        "tuple": ("(1, 2)",),
    }
    shape = Shape(last, arguments.get(base, ()), [*NAMES, "a0", "made_by"], names, "object")
    return "\n\n".join(text for text in texts if text) + "\n", [shape]


def _body(random: Random, base: str) -> tuple[list[str], list[str]]:
    lines, names = [], []
    if base == "object" and random.random() < 0.15:
        lines.append(f"    __slots__ = {tuple(random.sample(['a', 'b', 'c', '__dict__'], 2))}")
    for name in random.sample(NAMES[:6], random.randint(1, 4)):
        kind = random.choice(sorted(MEMBERS))
        if lines and lines[0].lstrip().startswith("__slots__") and f"'{name}'" in lines[0]:
            continue
        lines.append(MEMBERS[kind].format(n=name, v=random.choice(NUMBERS[:6])))
        names.append(name)
    for kind in random.sample(sorted(HOOKS), random.choice([0, 0, 1, 2])):
        if base in ("object", "abc.ABC", "list", "dict", "set") or kind not in ("init", "new"):
            lines.append(HOOKS[kind])
    for kind in random.sample(sorted(SPECIALS), random.choice([0, 1, 2, 3, 5])):
        special = kind.removeprefix("bad_").removeprefix("gen_")
        lines.append(f"    def __{special}__{SPECIALS[kind]}")
    return lines, names
