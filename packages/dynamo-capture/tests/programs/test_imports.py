"""``import`` inside functions."""

import importlib
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


def test_an_import_sees_what_was_done_to_the_table_of_modules(same, monkeypatch):
    module = types.ModuleType("capture_test_module")

    def f(x):
        sys.modules["capture_test_module"] = module
        import capture_test_module as first

        sys.modules.pop("capture_test_module")
        try:
            import capture_test_module as second
        except ImportError:
            second = None
        return x + 1, first is module, second

    same(f, (X,), (X,))


def test_a_module_whose_code_runs_sees_the_effects_before(same, monkeypatch, tmp_path):
    (tmp_path / "capture_test_counting.py").write_text(
        "import builtins\nseen = len(builtins.capture_test_list)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("builtins.capture_test_list", held := [], raising=False)

    def f(x):
        held.clear()
        held.append(1)
        sys.modules.pop("capture_test_counting", None)
        held.append(2)
        import capture_test_counting

        return x + 1, capture_test_counting.seen, importlib.import_module("capture_test_counting").seen

    same(f, (X,), (X,))


def test_a_part_that_a_module_imports_when_it_is_asked_for(monkeypatch, tmp_path, caplog):
    """As ``numpy.random``: the attribute is there once the part has been imported, in the first call already."""
    package = tmp_path / "capture_test_lazy"
    package.mkdir()
    (package / "__init__.py").write_text(
        "def __getattr__(name):\n"
        "    if name == 'part':\n"
        "        import capture_test_lazy.part as part\n"
        "        return part\n"
        "    raise AttributeError(name)\n"
    )
    (package / "part.py").write_text("number = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import capture_test_lazy

    from dynamo_capture import optimize

    made = []

    def backend(graph_module, inputs):
        made.append(graph_module)
        return graph_module.forward

    fast = optimize(backend)(lambda x: x * capture_test_lazy.part.number)
    for _ in range(2):
        assert torch.equal(fast(X), X * 3)
    assert len(made) == 1
    capture_test_lazy.part.number = 4
    assert torch.equal(fast(X), X * 4)
    assert not caplog.records
    monkeypatch.delitem(sys.modules, "capture_test_lazy")
    monkeypatch.delitem(sys.modules, "capture_test_lazy.part")
