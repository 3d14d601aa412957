"""Who holds an object: weak references, cycles, copies, finalizers."""

import copy
import dataclasses
import functools
import typing
import weakref

import pytest
import torch

X = torch.arange(6.0).reshape(2, 3) + 1


def test_weak_references(whole):
    class Node:
        def __init__(self, v):
            self.v = v

    node = Node(2)
    ref = weakref.ref(node)
    whole.made(lambda: lambda x: (x * ref().v, ref() is node, ref() is None), (X,), (X,))


def test_dead_weak_reference():
    from dynamo_capture import optimize

    class Node:
        pass

    node = Node()
    ref = weakref.ref(node)
    fast = optimize(lambda gm, ex: gm.forward)(lambda x: x + 1 if ref() is None else x - 1)
    assert torch.equal(fast(X), X - 1)
    del node
    assert torch.equal(fast(X), X + 1)


def test_object_becomes_none():
    from dynamo_capture import optimize

    class Node:
        pass

    class Holder:
        node = None

    fast = optimize(lambda gm, ex: gm.forward)(lambda x, h: x + 1 if h.node is None else x - 1)
    holder = Holder()
    for holder.node in (Node(), None, Node(), 5):
        assert torch.equal(fast(X, holder), X + 1 if holder.node is None else X - 1)


def test_weak_dictionaries(same):
    class Node:
        pass

    node = Node()
    table = weakref.WeakKeyDictionary({node: 3})
    same.made(lambda: lambda x: x * table[node] + len(table), (X,), (X,))


def test_object_graph_with_cycles(whole):
    class Node:
        def __init__(self, v):
            self.v = v
            self.links = []

    def f(x):
        a, b = Node(x), Node(2)
        a.links.append(b)
        b.links.append(a)
        return a.v * b.v, a.links[0].links[0] is a

    whole(f, (X,))


def test_copies_of_objects(whole):
    class Config:
        def __init__(self):
            self.items = [1]
            self.inner = {"k": [2]}

    def f(x, c):
        shallow, deep = copy.copy(c), copy.deepcopy(c)
        shallow.items.append(3)
        deep.inner["k"].append(4)
        shallow.new = 1
        return x, c.items, c.inner, deep.items, deep.inner, hasattr(c, "new"), shallow.items is c.items

    whole(f, (X, Config()), (X, Config()))


def test_own_copy_methods(whole):
    class Special:
        def __init__(self, v):
            self.v = v

        def __copy__(self):
            return Special(self.v + 1)

        def __deepcopy__(self, memo):
            return Special(self.v + 10)

    whole(lambda x, s: (x, copy.copy(s).v, copy.deepcopy([s])[0].v), (X, Special(1)), (X, Special(2)))


def _closing(log):
    class Closed:
        def __init__(self, n):
            self.n = n

        def __del__(self):
            log.append(self.n)

    return Closed


def test_classes_with_a_finalizer(same):
    def make():
        log = []
        closed = _closing(log)

        def f(x):
            closed(1)
            return x + 1, list(log)

        return f

    same.made(make, (X,), (X,))


def test_a_finalizer_runs_when_the_last_name_goes(same):
    def make():
        log = []
        closed = _closing(log)

        def inner(x):
            kept = closed(3)
            log.append(("inner", kept.n))
            return x.sin()

        def f(x):
            first = closed(1)
            y = x + 1
            del first
            log.append("after the first")
            second = closed(2)
            y = y * inner(x)
            log.append(("between", second.n))
            second = None
            log.append("end")
            return y, list(log), second

        return f

    same.made(make, (X,), (X,))


def test_weak_references_that_the_program_makes(whole):
    def make():
        class Node:
            size = 3

        node, other = Node(), Node()
        table = weakref.WeakKeyDictionary({node: 4})
        names = weakref.WeakValueDictionary({"a": node})

        def f(x, n):
            reference = weakref.ref(node)
            return (
                x * reference().size,
                table[node] + n,
                other in table,
                names["a"] is node,
                table.get(other, 7),
            )

        return f

    whole.made(make, (X, 1), (X, 1))


def test_copies(whole):
    @dataclasses.dataclass
    class Batch:
        items: list
        data: typing.Any = None

    class Kept:
        def __setstate__(self, state):
            self.__dict__.update(state, restored=True)

    def f(x):
        deep, shallow = copy.deepcopy(x), copy.copy(x)
        deep.add_(1)
        shallow.mul_(2)
        batch = Batch([1, [2]], x)
        other = copy.deepcopy(batch)
        other.items[1].append(3)
        return deep, x, batch.items, other, dataclasses.asdict(batch)["data"] is x

    whole(f, (X.clone(),), ignore={"own version"})  # torch's deep copy counts as a write


def test_a_copy_of_a_tensor_counts_its_own_writes(whole):
    def f(w, x):
        y = w * x
        copy.copy(x).add_(1)
        return y, x

    whole(f, (X.clone().requires_grad_(), X.clone()))


@pytest.mark.parametrize("other", [lambda x: x, lambda x: x.view(-1), lambda x: x.detach()])
def test_deep_copies_share_memory_as_what_they_copy(same, other):
    def f(x):
        y = x * 2
        copied, shown = copy.deepcopy([y, other(y)])
        copied.add_(1)
        return copied, shown, y

    same(f, (X,), ignore={"own version"})


def test_deep_copies_of_arguments_that_share_memory(same):
    def f(x, y):
        copied, shown = copy.deepcopy([x, y])
        copied.add_(1)
        return copied, shown, y

    x = X.clone()
    same(f, (x, x.view(-1)), (X.clone(), X.view(-1).clone()))


def test_copies_of_objects_with_a_protocol_of_their_own(same):
    class Kept:
        def __init__(self):
            self.restored = False

        def __setstate__(self, state):
            self.__dict__.update(state, restored=True)

    class Slotted:
        __slots__ = ("__dict__", "a")

    def f(x):
        slotted = Slotted()
        slotted.a, slotted.b = 1, 2
        found = copy.copy(slotted)
        return x + 1, copy.copy(Kept()).restored, copy.deepcopy(Kept()).restored, found.a, found.b

    same(f, (X,))


class Finalized:
    def __init__(self, log, what):
        self.log, self.what = log, what

    def __del__(self):
        self.log.append(self.what)


def closing(log, t):
    try:
        yield t + 1
        yield t + 2
    finally:
        log.append("closed")


def test_a_generator_that_a_loop_leaves_is_closed_there(same):
    def f(x, log):
        for v in closing(log, x):
            print(end="")
            if bool((v > 0).any()):
                break
        log.append("after")
        return v

    def g(x, log):
        v = None
        for v in closing(log, x):
            if v.sum() > 0:
                break
        log.append("after")
        return v

    same(f, (X, []), (X - 9, []))
    same(g, (X, []), (X - 9, []))


def test_what_a_graph_break_hands_over_dies_where_it_is_dropped(same):
    def f(x, make, log):
        held = make(log, "died")
        print(end="")
        log.append("held")
        y = x + 1
        held = y
        log.append("dropped")
        return held

    def g(x, make, log):
        held = make(log, "died")
        print(end="")
        log.append(held.what)
        del held
        log.append("dropped")
        return x + 1

    made = torch.compiler.disable(Finalized)
    same(f, (X, made, []))
    same(g, (X, made, []))


def test_a_tensor_that_is_deleted_after_a_break_is_freed(same):
    def f(x):
        y = x * 2
        ref = weakref.ref(y)
        print(end="")
        z = y.sum()
        del y
        print(end="")
        return z, ref() is None

    same(f, (X,))


class Box:
    pass


def box_in(log):
    box = Box()
    log.append(weakref.ref(box))
    print(end="")
    log.append(log[-1]() is None)
    return 1


def test_what_only_a_dead_local_holds_lives_until_the_function_ends(same):
    def made_inside(x, log):
        box = Box()
        ref = weakref.ref(box)
        y = x + 1
        print(end="")
        z = y * 2
        print(end="")
        return z, ref() is None

    def in_an_inlined_call(x, log):
        y = x + box_in(log)
        print(end="")
        return y, log[0]() is None

    def given(x, make):
        box = make()
        ref = weakref.ref(box)
        print(end="")
        y = x + sum(p for p in [1, 2])
        print(end="")
        return y, ref() is None

    def of_a_function(x, log):
        def inner():
            return log

        ref = weakref.ref(inner)
        print(end="")
        return x + 1, ref() is None

    def in_a_list(x, log):
        box = Box()
        ref = weakref.ref(box)
        box = [(box, 1)]
        print(end="")
        return x + 1, ref() is None

    same(in_a_list, (X, []))
    same(made_inside, (X, []))
    same(in_an_inlined_call, (X, []))
    same(given, (X, torch.compiler.disable(Box)))
    same(of_a_function, (X, []))


def test_a_dead_local_that_is_given_another_value_drops_its_object(same):
    def f(x, make):
        box = make()
        ref = weakref.ref(box)
        print(end="")
        box = None
        print(end="")
        return x + 1, ref() is None

    def g(x, make):
        for _ in range(3):
            box = make()
            ref = weakref.ref(box)
            print(end="")
        del box
        print(end="")
        return x + 1, ref() is None

    def h(x):
        box = Box()
        ref = weakref.ref(box)
        del box
        return x + 1, ref() is None

    same(f, (X, torch.compiler.disable(Box)))
    same(g, (X, torch.compiler.disable(Box)))
    same(h, (X,))


def test_a_generator_that_only_a_dead_local_holds_is_closed_when_the_function_ends(same):
    def f(x, log):
        items = closing(log, x)
        for _ in items:
            break
        print(end="")
        log.append("after")
        print(end="")
        log.append(len(log))
        return x + 1

    same(f, (X, []))


def test_what_a_weak_reference_leads_to_may_die_before_it_is_changed():
    """Only a dead local holds the tensor, and it the dictionary that a handle removes a hook from."""
    from dynamo_capture import optimize

    def f(x):
        held = x * 2
        handle = torch.autograd.graph.register_multi_grad_hook((held, held), lambda gradients: None)
        result = x.sin()
        handle.remove()
        return result

    fast = optimize(lambda gm, ex: gm.forward)(f)
    x = X.clone().requires_grad_()
    assert torch.equal(fast(x), x.sin())
    assert torch.equal(fast(x), x.sin())


def test_an_object_that_only_guards_know_is_dropped_inside_of_a_graph():
    from dynamo_capture import optimize

    class Recipe:
        pass

    recipes = [Recipe(), Recipe()]

    @functools.lru_cache
    def size(recipe, number):
        return number * 2

    def f(x):
        for recipe in recipes:
            print(end="")
            x = x * size(recipe, 2)
        return x

    fast = optimize(lambda gm, ex: gm.forward)(f)
    assert torch.equal(fast(X), f(X))
    codes = [one.stopped.code for _, one in fast.__fxstack_capture__.report.replacements if one.stopped]
    assert set(codes) == {"CAP236"}


@pytest.mark.parametrize("module", ["torch._dynamo.utils", "model"])
def test_modules_that_stock_counts_are_dropped_in_a_graph(same, module):
    from dynamo_capture import graph_break

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x):
            y = self.linear(x)
            graph_break()
            return self.linear(y)

    def dies(reference):
        pass

    counting = type(dies)(dies.__code__, {"__name__": module})

    def make():
        torch.manual_seed(0)
        net = torch.nn.Sequential(Block(), torch.nn.ReLU(), Block())
        references = [weakref.ref(block, counting) for block in net]
        return lambda x: (net(x), len(references))

    same.made(make, (X,))
    stops = [made.stopped.kind.code for _, made in same.capture.report.replacements if made.stopped]
    assert ("CAP240" in stops) is (module == "model")
