"""``import`` inside functions."""

import sys
import types

import torch

X = torch.arange(6.0).reshape(2, 3) + 1


def test_forms(same):
    def f(x):
        import collections.abc
        import os.path as where
        from math import pi
        from math import sqrt as root

        return x + pi + root(4), where.join("a", "b"), collections.abc.Mapping.__name__

    same(f, (X,), (X,), graphs=1, eager=0)


def test_a_submodule_without_an_attribute(same, monkeypatch):
    package = types.ModuleType("capture_test_package")
    package.__path__ = []
    inner = types.ModuleType("capture_test_package.inner")
    inner.number = 3
    monkeypatch.setitem(sys.modules, package.__name__, package)
    monkeypatch.setitem(sys.modules, inner.__name__, inner)

    def f(x):
        from capture_test_package import inner

        return x + inner.number

    same(f, (X,), graphs=1, eager=0)


def test_a_module_that_is_replaced_is_seen(same, monkeypatch):
    name = "capture_test_module"

    def f(x):
        import capture_test_module

        return x + capture_test_module.number

    def number(value):
        module = types.ModuleType(name)
        module.number = value
        monkeypatch.setitem(sys.modules, name, module)

    from dynamo_capture import optimize

    fast = optimize(lambda graph_module, inputs: graph_module.forward)(f)
    number(1)
    assert torch.equal(fast(X), X + 1)
    number(2)
    assert torch.equal(fast(X), X + 2)


def test_failures(same):
    def f(x):
        found = []
        try:
            import capture_no_such_module
        except ModuleNotFoundError as error:
            found.append((error.args, error.name))
        else:
            found.append(capture_no_such_module)
        try:
            from math import capture_no_such_name
        except ImportError as error:
            found.append((type(error), error.name, "cannot import name" in str(error)))
        else:
            found.append(capture_no_such_name)
        return x + 1, found

    same(f, (X,), eager=0)
