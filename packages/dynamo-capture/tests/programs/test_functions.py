"""Calls and definitions: parameters of every kind, closures, decorators, recursion, partial and bound functions."""

import functools
import operator

import torch

X = torch.arange(6.0).reshape(2, 3) + 1
LIMIT = 3


def everything(a, b=2, /, c=3, *rest, d, e=5, **more):
    return a, b, c, rest, d, e, sorted(more.items())


def test_parameters_of_every_kind(whole):
    def f(x, kind):
        if kind == 0:
            return everything(x, d=1)
        if kind == 1:
            return everything(x, 1, 2, 3, 4, d=1, e=x, z=3, y=2)
        if kind == 2:
            return everything(x, 1, c=9, d=1)
        return everything(x, d=1, a=7, b=8)

    whole(f, *[(X, kind) for kind in range(4)])


def test_errors_of_parameters(whole):
    def f(x, kind):
        try:
            if kind == 0:
                return everything(x)
            if kind == 1:
                return everything(d=1)
            if kind == 2:
                return everything(x, 1, 2, c=3, d=4)
            return (lambda a, /: a)(a=x)
        except TypeError as error:
            return x, str(error)

    whole(f, *[(X, kind) for kind in range(4)])


def test_compiled_function_has_every_kind_of_parameter(whole):
    def f(x, k=2, *rest, scale=3, **more):
        return x * k + scale, rest, more

    def g(*args):
        return f(*args[:-1], **args[-1])

    whole(g, (X, {}), (X, 4, {"scale": 5}), (X, 1, 2, 3, {"z": X}))


def test_star_star_with_changed_keys(whole):
    def g(x, **options):
        options["extra"] = 1
        return x, options

    whole(lambda x, d: (g(x, **d), d), (X, {"a": 1}), (X, {"b": X}))


def test_defaults_are_evaluated_once(whole):
    def f(x, n):
        made = []

        def default():
            made.append(1)
            return len(made)

        def g(a, k=default()):  # noqa: B008
            return a + k

        return g(x), g(x), g(x, n), made

    whole(f, (X, 5), (X, 6))


def test_lambda_in_a_dict(whole):
    table = {"add": lambda a, b: a + b, "mul": operator.mul, "neg": lambda a, b: -a}
    whole(lambda x, name: table[name](x, 2), (X, "add"), (X, "mul"), (X, "neg"))


class Wrapped:
    """Its items ``__dict__`` and ``__weakref__`` are descriptors."""

    a = 1


def test_a_class_is_wrapped(same):
    def f(x):
        @functools.wraps(Wrapped)
        def g():
            pass

        return sorted(g.__dict__), g.__doc__, g.__name__, x + 1

    same(f, (X,))


def test_decorator_with_state(whole):
    def counted(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            wrapper.calls += 1
            return function(*args, **kwargs)

        wrapper.calls = 0
        return wrapper

    def f(x):
        @counted
        def g(y):
            return y + 1

        return g(g(x)), g.calls, g.__name__, g.__wrapped__(x)

    whole(f, (X,))


def test_decorator_with_arguments(whole):
    def times(n):
        def wrap(function):
            def inner(x):
                for _ in range(n):
                    x = function(x)
                return x

            return inner

        return wrap

    @times(3)
    def g(x):
        return x * 2

    whole(lambda x: g(x), (X,), (X + 1,))


def test_function_attributes(whole):
    def g(x):
        g.count = getattr(g, "count", 0) + 1
        return x + g.count

    def f(x):
        def h(y):
            return y

        h.tag = "t"
        return h(x), h.tag, hasattr(h, "other"), h.__name__, h.__defaults__

    whole(f, (X,), (X,))


def test_function_attribute_of_a_known_function_is_set(same):
    def make():
        def g(x):
            return x + 1

        g.count = 0

        def f(x):
            g.count += 1
            return g(x) * g.count

        return f

    same.made(make, (X,), (X,), (X,))


def test_nonlocal_through_three_levels(whole):
    def f(x, n):
        total = 0

        def one():
            def two():
                def three(k):
                    nonlocal total
                    total += k
                    return total

                return three

            return two()

        add = one()
        for i in range(n):
            add(i)
        return x + total, add(1)

    whole(f, (X, 2), (X, 5))


def test_closure_is_captured_by_a_loop(whole):
    def f(x):
        return [g(x) for g in [lambda y, i=i: y + i for i in range(3)]]

    whole(f, (X,))


def test_unbound_free_variable(whole):
    def f(x, flag):
        def g():
            return value

        if flag:
            value = 1
        try:
            return x + g()
        except NameError as error:
            return x, str(error)

    whole(f, (X, 0), (X, 1))


def test_cell_is_deleted(whole):
    def f(x):
        value = 3

        def g():
            return value  # noqa: F821

        first = g()
        del value
        try:
            g()
        except NameError:
            return x + first

    whole(f, (X,))


def test_mutual_recursion(whole):
    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)

    whole(lambda x, n: x + 1 if even(n) else x - 1, (X, 4), (X, 7), dynamic=False)


def test_recursion_over_a_structure(whole):
    def total(tree):
        if isinstance(tree, dict):
            return sum(total(v) for v in tree.values())
        if isinstance(tree, list):
            return functools.reduce(operator.add, map(total, tree))
        return tree

    whole(lambda t: total(t), ({"a": X, "b": [X, {"c": X + 1}]},), ({"a": [X]},))


def test_partial_of_partial(whole):
    def g(a, b, c, *, k=1, m=2):
        return a + b * c - k * m

    def f(x):
        one = functools.partial(g, x, k=3)
        two = functools.partial(one, 2, m=5)
        return two(4), two.func is g, two.args[1:], two.keywords, one(1, 1)

    whole(f, (X,), (X + 1,))


def test_partial_argument(whole):
    def g(x, k):
        return x * k

    def f(x, p):
        return p(x), p.keywords

    whole(f, (X, functools.partial(g, k=2)), (X, functools.partial(g, k=3)))


def test_the_keywords_of_a_partial_are_one_dict_that_calls_read(whole):
    def g(x, k, more=0):
        return x * k + more

    def f(x, p, k):
        p.keywords["k"] = k
        made = functools.partial(g, k=k)
        held = made.keywords
        held["more"] = k
        return p(x), p.keywords, made(x), made, held, held is made.keywords

    whole(f, (X, functools.partial(g, k=2), 5), (X, functools.partial(g, k=3), 5))


def test_partial_method(whole):
    class Cell:
        def __init__(self):
            self.alive = 0

        def set_state(self, state):
            self.alive = state
            return state

        set_alive = functools.partialmethod(set_state, 1)

    def f(x):
        c = Cell()
        return x + c.set_alive() + c.alive

    whole(f, (X,))


def test_bound_method_is_passed_around(whole):
    class Counter:
        def __init__(self):
            self.n = 0

        def bump(self, k=1):
            self.n += k
            return self.n

    def apply(function, times):
        return [function() for _ in range(times)]

    def f(x, n):
        c = Counter()
        bump = c.bump
        return x, apply(bump, n), c.n, bump.__self__ is c, bump == c.bump

    whole(f, (X, 2), (X, 3))


def test_unbound_method_is_called(whole):
    class Scale:
        k = 2

        def go(self, x):
            return x * self.k

    whole(lambda x: Scale.go(Scale(), x) + list.__len__([1, 2]) + len(str.upper("ab")), (X,))


def test_lru_cache(same):
    def make():
        calls = []

        @functools.cache
        def g(n):
            calls.append(n)
            return n * 2

        def f(x, n):
            return x + g(n) + g(n)

        return f

    same.made(make, (X, 1), (X, 2), (X, 1))


def test_single_dispatch(same):
    @functools.singledispatch
    def show(value):
        return "other"

    @show.register
    def _(value: int):
        return value + 1

    @show.register(list)
    def _(value):
        return len(value)

    same(lambda x, v: (x, show(v)), (X, 1), (X, [1, 2]), (X, "s"))


def test_compose(whole):
    def compose(*functions):
        return functools.reduce(lambda f, g: lambda *a: g(f(*a)), functions)

    whole(lambda x: compose(torch.sin, torch.cos, lambda y: y * 2)(x), (X,))


def test_global_function_is_replaced(whole):
    def make():
        def f(x):
            return helper(x)

        return f

    global helper

    def helper(x):
        return x + 1

    whole.made(make, (X,), (X,))

    def helper(x):  # noqa: F811
        return x + 2

    whole.made(make, (X,))


def test_code_and_names_of_functions(whole):
    def g(a, b=1):
        """Doc."""
        return a

    def f(x):
        return x, g.__name__, g.__doc__, g.__code__.co_argcount, g.__code__.co_varnames, g.__module__

    whole(f, (X,))


def test_walrus_in_a_comprehension_binds_outside(whole):
    def f(x, items):
        kept = [last := i * 2 for i in items]
        return x + last, kept, any((hit := i) > 1 for i in items), hit

    whole(f, (X, [1, 2, 3]), (X, [5]))


def test_conditional_lambda_defaults_and_star(whole):
    whole(
        lambda x, *a, k=(1, 2): (x, [*a, *k], {**dict(zip("ab", k, strict=True))}, (lambda *b: b)(*a)),
        (X, 1, 2),
        (X,),
    )


def test_call_with_many_stars(whole):
    def g(*args, **kwargs):
        return args, kwargs

    def f(x, a, b, d, e):
        return g(*a, x, *b, k=1, **d, **e)

    whole(f, (X, [1], (2,), {"m": 1}, {"n": 2}), (X, [], [], {}, {}))


def test_duplicate_keyword(whole):
    def g(**kwargs):
        return kwargs

    def f(x, d):
        try:
            return x, g(k=1, **d)
        except TypeError as error:
            return x, "multiple values" in str(error)

    whole(f, (X, {"m": 1}), (X, {"k": 2}))


def test_callable_objects_in_a_list(whole):
    class Add:
        def __init__(self, k):
            self.k = k

        def __call__(self, x):
            return x + self.k

    def f(x, steps):
        for step in steps:
            x = step(x)
        return x

    whole(f, (X, [Add(1), Add(2)]), (X, [Add(3)]), (X, [torch.sin, Add(X)]))


def test_function_is_returned_and_called_later(same):
    def make():
        def f(x, k):
            y = x * k

            def g(z):
                return y + z * k

            return g

        return lambda x, k: f(x, k)(x)

    same.made(make, (X, 2), (X, 3))


def test_setting_an_attribute_of_the_function_itself(same):
    def make():
        def f(x):
            f.seen = getattr(f, "seen", 0) + 1
            return x * f.seen

        return f

    same.made(make, (X,), (X,))


def test_a_wrapper_that_is_in_use_where_the_function_it_wraps_breaks(same):
    """The wrapper refers to itself by a cell, and is needed again by the caller."""

    def f(x):
        def counted(function):
            def wrapper(*args):
                wrapper.calls += 1
                return function(*args)

            wrapper.calls = 0
            return wrapper

        @counted
        def doubled(value):
            print(end="")
            return value * 2

        return doubled(doubled(x)), doubled.calls

    same(f, (torch.ones(3),), (torch.ones(4),))
