"""Guard soundness by mutation: each file has a table of programs, and of changes to what they read.

``STATES`` maps a name to ``(program, changes, others)``. The program is a module's text that defines ``f`` (which is
compiled) and perhaps ``args``; each change is a statement run in that module between two calls. After any of
``changes`` eager's answer differs (or, where the statement ends in ``# silent``, only has to be worked out again), and
the compiled function must follow. After any of ``others`` nothing that was read has changed: the function must not be
compiled again.
"""

from __future__ import annotations

import itertools
import linecache
import math
import sys
import textwrap
import types

import pytest
import torch

from dynamo_capture import optimize

_COUNT = itertools.count()
SILENT = "# silent"
_FLAGS = ("enabled", "benchmark", "deterministic")


@pytest.fixture(autouse=True)
def _flags_may_be_set(monkeypatch):
    """Torch's own testing code, once imported by any test of the process, forbids to change its global flags."""
    facts = torch.backends.flags_frozen.__globals__
    monkeypatch.setitem(facts, "__allow_nonbracketed_mutation_flag", True)


def pytest_generate_tests(metafunc):
    states = getattr(metafunc.module, "STATES", {})
    for fixture, column in (("change", 1), ("other", 2)):
        if fixture in metafunc.fixturenames:
            cases = [(name, row[0], text) for name, row in states.items() for text in row[column]]
            ids = [f"{name}: {' '.join(text.split())[:60]}" for name, _, text in cases]
            metafunc.parametrize(fixture, cases, ids=ids, indirect=True)


def same(one, two):
    """Whether two results are the same to the last bit, type and stride."""
    if type(one) is not type(two):
        return False
    if isinstance(one, torch.Tensor):
        facts = [(t.dtype, t.shape, t.stride(), t.requires_grad, t.device) for t in (one, two)]
        return facts[0] == facts[1] and (one.is_meta or torch.equal(one.isnan(), two.isnan())) and (
            one.is_meta or torch.equal(one.nan_to_num(), two.nan_to_num())
        )  # fmt: skip
    if isinstance(one, float):
        return (math.isnan(one) and math.isnan(two)) or (
            one == two and math.copysign(1, one) == math.copysign(1, two)
        )
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, dict):
        return list(one) == list(two) and all(map(same, one.values(), two.values()))
    if isinstance(one, BaseException):
        return str(one) == str(two)
    return bool(one == two)


def outcome(function, args):
    """What a call returns, or what it raises."""
    try:
        return function(*args)
    except Exception as error:
        return error


class Frozen(torch.fx.Interpreter):
    """A graph whose functions and methods are those of the time it was made, as in compiled code."""

    def __init__(self, graph_module):
        super().__init__(graph_module)
        names = {node.target for node in graph_module.graph.nodes if node.op == "call_method"}
        self.methods = {name: getattr(torch.Tensor, name) for name in names}

    def call_method(self, target, args, kwargs):
        return self.methods[target](*args, **kwargs)


class Module:
    """A program's text as a real module, so that its names have a place to be read from."""

    def __init__(self, text):
        self.name = f"soundness_program_{next(_COUNT)}"
        self.made = types.ModuleType(self.name)
        self.made.__file__ = f"<{self.name}>"
        sys.modules[self.name] = self.made
        self.run(
            "import torch\nfrom torch import nn\nimport functools, math, operator\n" + textwrap.dedent(text)
        )

    def run(self, text):
        file = f"{self.made.__file__[:-1]} {next(_COUNT)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        exec(compile(text, file, "exec"), vars(self.made))

    @property
    def args(self):
        made = vars(self.made)
        return made["args"]() if "args" in made else (torch.arange(4.0),)


class Pair:
    """One program with one change."""

    def __init__(self, program, text):
        self.module = Module(program)
        self.text = textwrap.dedent(text)
        self.function = self.module.made.f
        self.compiled = optimize(lambda graph, inputs: Frozen(graph).run)(self.function)

    @property
    def report(self):
        return self.compiled.__fxstack_capture__.report

    def call(self):
        """Both ways; the answers must be the same."""
        expected = outcome(self.function, self.module.args)
        actual = outcome(self.compiled, self.module.args)
        assert same(expected, actual), f"after {self.text!r}: eager {expected!r}, compiled {actual!r}"
        return expected

    def start(self):
        """Three calls: compiled, then from the cache twice, the second time by the evaluator's plan."""
        first = self.call()
        assert any(r.graph is not None for _, r in self.report.replacements), "nothing was captured"
        assert not self.report.eager, self.report.eager
        self.call()
        self.call()
        return first

    def must_be_noticed(self):
        """The change is made, and seen."""
        before, compilations = self.start(), len(self.report.replacements)
        self.module.run(self.text)
        after = self.call()
        if self.text.rstrip().endswith(SILENT):
            assert len(self.report.replacements) > compilations, f"{self.text!r} was not noticed"
        else:
            assert not same(before, after), f"{self.text!r} changes nothing"
        self.call()

    def must_not_matter(self):
        """The change is made, and nothing is compiled again."""
        self.start()
        compilations = len(self.report.replacements)
        self.module.run(self.text)
        self.call()
        self.call()
        assert len(self.report.replacements) == compilations, self.report.recompilations


@pytest.fixture
def pair(request):
    """Restores torch's state and forgets the program afterwards."""
    grad, dtype, threads = torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    cudnn = {name: getattr(torch.backends.cudnn, name) for name in _FLAGS}
    made: list[Pair] = []

    def make(param):
        _, program, text = param
        made.append(Pair(program, text))
        return made[-1]

    yield make
    torch.set_grad_enabled(grad)
    torch.set_default_dtype(dtype)
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(deterministic)
    torch.utils.deterministic.fill_uninitialized_memory = True
    torch.set_autocast_enabled("cpu", False)
    torch.set_default_device(None)
    for name, value in cudnn.items():
        setattr(torch.backends.cudnn, name, value)
    for one in made:
        getattr(one.module.made, "restore", lambda: None)()
        one.compiled.__fxstack_capture__.reset()
        sys.modules.pop(one.module.name, None)


@pytest.fixture
def change(request, pair):
    """A pair whose change must be noticed."""
    return pair(request.param)


@pytest.fixture
def other(request, pair):
    """A pair whose change must not matter."""
    return pair(request.param)
