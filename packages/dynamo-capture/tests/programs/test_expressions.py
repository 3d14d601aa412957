"""Expressions and small statements: f-strings, del, match, slices, class bodies, conditional and chained forms."""

import dataclasses
import enum

import pytest
import torch

X = torch.arange(6.0).reshape(2, 3) + 1


class Kind(enum.Enum):
    A = "a"
    B = "b"


@dataclasses.dataclass
class Point:
    x: object
    y: object = 0


class Loose:
    __match_args__ = ("first", "second")

    def __init__(self, first, second):
        self.first = first
        self.second = second


def test_match_classes(whole):
    def f(x, subject):
        match subject:
            case Point(x=0, y=0):
                return x
            case Point(x, y) if y:
                return x + y
            case Point(x=px):
                return x * px
            case Loose(1, b):
                return x - b
            case Loose(first=a, second=_):
                return x, a
            case bool(b):
                return x, "bool", b
            case str() as text:
                return x, text
            case [int(a), *_] | (float(a), *_):
                return x + a
            case {"k": Point(y=y), **rest}:
                return x, y, rest
            case Kind.A:
                return x, "A"
            case None | ():
                return x, "none"

    whole(
        f, (X, Point(0)), (X, Point(2, 3)), (X, Point(2)), (X, Loose(1, 2)), (X, Loose(2, 2)), (X, True), (X, "s"),
        (X, [4, 5]), (X, (4.5,)), (X, {"k": Point(1, 2), "z": 1}), (X, Kind.A), (X, None), (X, Kind.B),
    )  # fmt: skip


def test_match_sequences_with_stars(whole):
    def f(x, items):
        match items:
            case []:
                return x
            case [one]:
                return x + one
            case [first, *middle, last]:
                return x, first, middle, last

    whole(f, (X, []), (X, [1]), (X, [1, 2]), (X, (1, 2, 3, 4)))


def test_match_nested(whole):
    def f(x, tree):
        match tree:
            case ("leaf", value):
                return x + value
            case ("node", ("leaf", a), ("leaf", b)):
                return x + a * b
            case ("node", left, _):
                return x, left[0]

    whole(f, (X, ("leaf", 1)), (X, ("node", ("leaf", 2), ("leaf", 3))), (X, ("node", ("node",), 1)), (X, 0))


def test_match_on_shape(whole):
    def f(x):
        match x.shape:
            case (n,):
                return x + n
            case (n, 3):
                return x * n
            case (a, b):
                return x - a - b

    whole(f, (X,), (torch.ones(4),), (torch.ones(2, 5),))


@pytest.mark.parametrize("value", [7, -3.5, "text", None, True, (1, "a"), [1.5], {"k": 2}])
def test_f_string_conversions(whole, value):
    whole(lambda x, v: (x, f"{v}", f"{v!r}", f"{v!s:>12}|", f"{v!a}", f"{v=}", f"{[v]}"), (X, value))


def test_f_string_formats(whole):
    def f(x, n, r, w):
        return x, f"{n:05d} {n:+} {n:x} {n:_} {r:.2f} {r:e} {r:{w}.{n % 4}} {r:%} {'s':*^{w}}"

    whole(f, (X, 1234, 3.14159, 10), (X, 7, 2.5, 8))


def test_f_string_of_user_objects(whole):
    class Shown:
        def __init__(self, v):
            self.v = v

        def __repr__(self):
            return f"Shown({self.v})"

        def __format__(self, spec):
            return f"<{spec}:{self.v}>"

    whole(lambda x, v: (x, f"{Shown(v)} {Shown(v)!r} {Shown(v):abc}", str(Shown(v))), (X, 1), (X, "z"))


def test_percent_and_format(whole):
    whole(
        lambda x, n, s: (x, "%d %s %r %5.1f" % (n, s, s, n), "%(a)s-%(b)d" % {"a": s, "b": n}, f"{n} {s!r}"),
        (X, 3, "a"),
        (X, 5, "b'"),
    )  # fmt: skip


def test_del_of_everything(whole):
    class Holder:
        pass

    def f(x, items, d):
        a = b = x
        del a
        del items[0], d["k"]
        h = Holder()
        h.z = 1
        del h.z
        del items[:1]
        return b, items, d, hasattr(h, "z")

    whole(f, (X, [1, 2, 3], {"k": 1, "m": 2}), (X, [5], {"k": X}))


def test_chained_assignment_and_augmented_targets(whole):
    class Holder:
        pass

    def f(x, d):
        a = b = c = [0]
        a += [1]
        b[0] += 5
        h = Holder()
        h.v = h.w = x
        h.v += 1
        d["k"] = d["m"] = c
        d["k"] *= 2
        return a is b, c, h.v, h.w, d

    whole(f, (X, {}))


def test_swaps_and_star_targets(whole):
    def f(x, items):
        a, b, *c = items
        a, b = b, a
        c[:], (d, *e) = [a], "xyz"
        return x, a, b, c, d, e

    whole(f, (X, [1, 2, 3]), (X, (X, 2)))


def test_evaluation_order(whole):
    def f(x):
        log = []

        def note(v):
            log.append(v)
            return v

        target = {}
        target[note("key")] = note("value")
        note(1) + note(2) * note(3)
        note(0) and note("skipped")
        note(5) < note(4) < note("skipped")
        (note("f") and print)
        [note("a"), *[note("b")], {note("k"): note("v")}]
        return x, log, target

    whole(f, (X,))


def test_slices_with_steps(whole):
    def f(x, items, a, b, c):
        return x[a:b], items[a:b:c], items[::c], items[slice(a, None)], "abcdef"[b:a:-c], tuple(items)[-b:]

    whole(f, (X, [1, 2, 3, 4, 5], 1, 4, 2), (X, list("abc"), 0, 2, 1))


def test_tensor_indexing(whole):
    def f(x, i):
        return (
            x[0], x[:, 1], x[..., -1], x[None], x[i], x[:, i:], x[[0, 1], [1, 2]], x[x > 2].shape if False else 0,
            x[torch.tensor([1, 0])], x[0, 1], x[:, ::2], x[(1, slice(None))], x.unsqueeze(0)[0, ..., None],
        )  # fmt: skip

    whole(f, (X, 0), (X, 1))


def test_tensor_item_assignment(whole):
    def f(x, y):
        z = x.clone()
        z[0] = 1
        z[:, 1] = y[:, 0]
        z[1, 2:] += 5
        z[[0, 1], [2, 0]] = torch.tensor([9.0, 8.0])
        return z

    whole(f, (X, X + 1), (X * 2, X))


def test_class_body_inside(same):
    def f(x, k):
        class Local:
            scale = k

            def go(self, y):
                return y * self.scale

        return Local().go(x)

    same(f, (X, 2), (X, 3))


def test_class_with_a_base_and_a_metaclass_keyword_inside(same):
    def f(x):
        class Base:
            made = []

            def __init_subclass__(cls, **kwargs):
                Base.made.append((cls.__name__, kwargs))

        class Below(Base, tag=1):
            pass

        return x + len(Base.made), Base.made

    same(f, (X,), (X,))


def test_type_with_three_arguments(same):
    same(lambda x, k: type("Made", (), {"k": k})().k + x, (X, 2), (X, 3))


def test_ternaries_and_short_circuits(whole):
    def f(x, a, b):
        return (
            x if a else b, a or b, a and b, not (a or b), (a and b) or 9, x + 1 if a and not b else x - 1,
            0 < (a or 1) < 5, [] or {} or "end",  # noqa: SIM222
        )  # fmt: skip

    whole(f, (X, 0, 0), (X, 1, 0), (X, 0, 2), (X, 3, 4))


def test_loop_else_and_nested_breaks(whole):
    def f(x, rows):
        for row in rows:
            for item in row:
                if item == 3:
                    break
                x = x + item
            else:
                x = x * 2
                continue
            break
        else:
            x = -x
        return x

    whole(f, (X, [[1], [2]]), (X, [[1, 3], [5]]), (X, []))


def test_while_with_complex_condition(whole):
    def f(x, items):
        seen = set()
        while items and (top := items.pop()) not in seen:
            seen.add(top)
            x = x + top
        return x, sorted(seen), items

    whole(f, (X, [1, 2, 3]), (X, [4, 2, 2]), (X, []))


def test_import_inside(whole):
    def f(x, k):
        import math
        from math import sqrt as root
        from os import path

        return x * math.pi + root(k), path.join("a", "b")

    whole(f, (X, 4), (X, 9))


def test_missing_import(whole):
    def f(x):
        try:
            import no_such_module_at_all
        except ImportError as error:
            return x, error.name
        return no_such_module_at_all

    whole(f, (X,))


def test_global_is_deleted_and_made_again(same):
    def make():
        def f(x):
            global FRESH
            FRESH = 5
            y = x + FRESH
            del FRESH
            try:
                return FRESH
            except NameError:
                return y

        return f

    same.made(make, (X,), (X,))


def test_assert_with_tensors_shape(whole):
    def f(x, n):
        assert x.dim() == n, f"expected {n}"
        return x + 1

    scope = {}
    exec("def f(x, n):\n    assert x.dim() == n, f'expected {n}, got {x.dim()}'\n    return x + 1", scope)
    whole(scope["f"], (X, 2), (X, 3))
    assert f(X, 2).shape == X.shape


def test_ellipsis_and_not_implemented(whole):
    whole(
        lambda x, v: (x[...], v is ..., v is NotImplemented, v is None),
        (X, ...),
        (X, NotImplemented),
        (X, None),
    )


def test_big_expression_with_mixed_numbers(whole):
    whole(
        lambda x, a, b: (x * (a + b * 2 - 1) / (b or 1) + a // 3 - b % 2, a**b, a << 2 | b, (a > b) + (a < b)),
        (X, 5, 2), (X, 2, 7), (X, 9, 0),
    )  # fmt: skip


def test_annotations_and_docstrings_of_locals(whole):
    def f(x):
        """A docstring."""
        y: int = 3
        z: list[int]  # noqa: F842
        return x + y

    whole(f, (X,))
