"""What a program does besides computing its result: in order, once, and up to the exception."""

import types

import torch

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) + 1
STATE = {"n": 0}
TOTAL = 0


def test_order_of_effects_on_several_objects(whole):
    def f(x, a, d, s):
        a.append(len(d))
        d["n"] = len(a)
        s.add(len(d))
        a.extend(sorted(s))
        del d["n"]
        a[0] = x
        return len(a)

    whole(f, (X, [0], {}, set()), (X, [0, 1], {"k": 1}, {5}))


def test_object_reached_by_two_paths(whole):
    def f(x, a):
        inner = a["list"]
        a["same"].append(x)
        return len(inner), inner is a["same"]

    shared = [1]
    whole(f, (X, {"list": shared, "same": shared}), (X, {"list": [1], "same": [1]}))


def test_new_object_is_stored_in_several_places(whole):
    def f(x, a, d):
        made = [x]
        a.append(made)
        d["made"] = made
        made.append(1)
        return made

    def g(x, a, d):
        made = f(x, a, d)
        return a[-1] is made, d["made"] is made, len(made)

    whole(g, (X, [], {}), (X, [1], {}))


def test_effects_in_a_loop_with_a_condition(whole):
    def f(x, items):
        done = 0
        while items:
            item = items.pop(0)
            if item < 0:
                items.append(-item)
                continue
            x = x + item
            done += 1
        return x, done

    whole(f, (X, [1, -2, 3]), (X, []), (X, [-1, -1]))


def test_nested_containers_are_rebuilt(whole):
    def f(x, tree):
        for key in list(tree):
            if isinstance(tree[key], dict):
                tree[key]["seen"] = True
                tree[key + "_copy"] = dict(tree[key])
            else:
                tree[key] = [tree[key], x]
        return sorted(tree)

    whole(f, (X, {"a": {"v": 1}, "b": 2}), (X, {}))


def test_global_and_module_state():
    def f(x):
        global TOTAL
        TOTAL += 1
        STATE["n"] += TOTAL
        STATE.setdefault("log", []).append(TOTAL)
        return x + STATE["n"]

    def run(function):
        global TOTAL
        TOTAL = 0
        STATE.clear()
        STATE["n"] = 0
        return [function(X).sum().item() for _ in range(4)], TOTAL, dict(STATE)

    assert run(f) == run(optimize(lambda gm, ex: gm.forward, fullgraph=True)(f))


def test_attribute_of_another_module_is_set():

    module = types.ModuleType("capture_programs_module")

    def f(x):
        module.value += 1
        return x * module.value

    def run(function):
        module.value = 1
        return [function(X).sum().item() for _ in range(3)], module.value

    assert run(f) == run(optimize(lambda gm, ex: gm.forward, fullgraph=True)(f))


def test_attributes_are_added_changed_and_deleted(whole):
    class Bag:
        pass

    def make():
        bag = Bag()
        bag.a = 1

        def f(x):
            bag.a += 1
            bag.b = x * bag.a
            if hasattr(bag, "c"):
                del bag.c
            else:
                bag.c = [bag.a]
            return bag.b, sorted(vars(bag))

        return f

    whole.made(make, (X,), (X,), (X,), (X,))


def test_set_and_deleted_in_one_call(whole):
    class Bag:
        __slots__ = ("__dict__", "s")

    def f(x, d):
        bag = Bag()
        bag.t = 1
        bag.s = 2
        del bag.t, bag.s
        d["k"] = 1
        del d["k"]
        return x, hasattr(bag, "t"), hasattr(bag, "s"), d

    whole(f, (X, {}), (X, {"k": 5}))


def test_attribute_of_an_argument_is_set_and_deleted(whole):
    class Bag:
        pass

    def f(x, bag):
        bag.t = 1
        del bag.t
        return x, vars(bag)

    whole(f, (X, Bag()), (X, Bag()))


def test_closure_cells_are_written(whole):
    def make():
        count, last = 0, None

        def f(x):
            nonlocal count, last
            count += 1
            previous, last = last, x * count
            return last if previous is None else last + previous

        return f

    whole.made(make, (X,), (X,), (X,))


def test_iterator_attribute_is_consumed(same):
    class Loader:
        def __init__(self):
            self.items = iter([1, 2, 3])

    def make():
        loader = Loader()
        return lambda x: x * next(loader.items, 0)

    same.made(make, (X,), (X,), (X,), (X,))


def test_enumerate_and_zip_objects_are_consumed(same):
    def make():
        pairs = zip([1, 2, 3], "abc", strict=True)
        numbered = enumerate("xyz")
        return lambda x: (x * next(pairs)[0], next(numbered))

    same.made(make, (X,), (X,), (X,))


def test_exception_half_way_keeps_effects(whole):
    class Stop(Exception):
        pass

    def make():
        log = []

        def f(x, items, d):
            for i, item in enumerate(items):
                log.append(item)
                d[item] = x * i
                if item == "stop":
                    raise Stop(len(log))
            items.clear()
            return log

        return f

    whole.made(make, (X, ["a", "b"], {}), (X, ["a", "stop", "b"], {}), (X, ["c"], {}))


def test_exception_half_way_after_a_graph_break(same, unknown):
    def make():
        log = []

        def f(x, items):
            x.add_(1)
            log.append("one")
            n = unknown(x.sum())
            items.append(n)
            x.mul_(2)
            items[5]
            items.append("never")
            return x

        return f

    same.made(make, (X, []), (X + 1, [1]))


def test_escaping_objects_share_state(same):
    class Box:
        def __init__(self, v):
            self.v = v

    def make():
        kept = []

        def f(x):
            box = Box(x)
            twin = {"box": box}
            kept.append(box)
            kept.append(twin)
            box.v = box.v * 2
            return box.v

        def g(x):
            y = f(x)
            return y, kept[-1]["box"] is kept[-2], kept[-2].v + 1

        return g

    same.made(make, (X,), (X + 1,))


def test_default_argument_object_is_shared(whole):
    def make():
        def f(x, cache={}):  # noqa: B006
            cache[len(cache)] = x.shape
            return x * len(cache)

        return f

    whole.made(make, (X,), (X,), (X,))


def test_in_place_writes_are_seen_by_aliases(whole):
    def f(x, views):
        base = views[0]
        flat = base.view(-1)
        flat[0] = 100
        views.append(flat[1:3])
        base += x
        return views[-1] * 2, flat

    whole(f, (X, [X + 1]), (X, [X * 2]))


def test_same_tensor_in_two_arguments(same):
    def f(a, b):
        a.add_(1)
        return a + b, a is b

    shared = torch.ones(2)
    same(f, (shared, shared), (torch.ones(2), torch.ones(2)), (shared, shared))


def test_result_is_stored_and_changed_later(same):
    def make():
        kept = []

        def f(x):
            if kept:
                kept[-1].add_(1)
            y = x * 2
            kept.append(y)
            return y, len(kept)

        return f

    same.made(make, (X,), (X,), (X,))


def test_warnings_are_issued(same):
    import warnings

    def f(x, n):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.warn(f"n is {n}", UserWarning, stacklevel=1)
        return x * n, [str(w.message) for w in caught]

    same(f, (X, 1), (X, 2))


def test_file_is_written(same, tmp_path):
    path = tmp_path / "out.txt"

    def make():
        path.write_text("")

        def f(x, text):
            y = x + 1
            with open(path, "a") as file:
                file.write(text)
            return y * 2, path.read_text()

        return f

    def both(x, text):
        return make()(x, text)

    same(both, (X, "a"), (X, "b"))


def test_list_argument_returned_as_it_is(whole):
    def f(x, a):
        a.append(x)
        return a

    def g(x, a):
        return f(x, a) is a, len(a)

    whole(g, (X, []), (X, [1]))


def test_swap_of_attributes_between_objects(whole):
    class Node:
        def __init__(self, v):
            self.v = v

    def f(a, b):
        a.v, b.v = b.v, a.v
        a.other, b.other = b, a
        found = a.other.other is a
        del b.other
        return a.v - b.v, found

    whole(f, (Node(X), Node(X + 1)), (Node(X), Node(X * 2)))


def test_queue_between_calls(whole):
    from collections import deque

    def make():
        queue = deque(maxlen=3)

        def f(x):
            queue.append(x.mean())
            queue.rotate(1)
            return sum(queue), len(queue)

        return f

    whole.made(make, (X,), (X + 1,), (X + 2,), (X + 3,), (X + 4,))


GLOBAL = {"count": 0}
COUNTER = 0


def test_global_is_assigned(same, forward):
    def make():
        def f(x):
            global COUNTER
            COUNTER = COUNTER + 1
            return x + COUNTER

        return f

    global COUNTER
    values = []
    for wrap in (lambda f: f, optimize(forward)):
        COUNTER = 0
        g = wrap(make())
        values.append([g(X).sum().item() for _ in range(3)] + [COUNTER])
    assert values[0] == values[1]


def test_global_dict_is_mutated(forward):
    def f(x):
        GLOBAL["count"] += 1
        GLOBAL["last"] = x
        return x + GLOBAL["count"]

    fast = optimize(forward)(f)
    GLOBAL.clear()
    GLOBAL["count"] = 0
    for expected in (1, 2, 3):
        assert torch.equal(fast(X), X + expected)
    assert GLOBAL["count"] == 3
    assert GLOBAL["last"] is X
