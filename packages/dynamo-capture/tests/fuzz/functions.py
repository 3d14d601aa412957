"""Has the translator capture functions of the standard library or of torch, with arguments drawn for them.

    python functions.py standard 5000 --seed 3     # or torch

Prints what became of them; the exit status is 1 if the translator made a mistake of its own, or changed something
outside. Nothing of what is captured is run. A process of its own: what is imported on the way changes much.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import faulthandler
import importlib
import inspect
import logging
import os
import pkgutil
import random
import sys
import traceback
import types
import warnings
from dataclasses import dataclass
from typing import Any

import torch

import fx_interface
from dynamo_capture.bytecode.instruction import GENERATOR_FLAGS
from dynamo_capture.driver.compile_frame import FrameCompiler
from dynamo_capture.session.session import Session
from dynamo_capture.shapes import TrialLibrary

LEFT_OUT = frozenset(
    {
        "__main__", "antigravity", "this", "test", "idlelib", "turtledemo", "lib2to3", "ensurepip", "venv", "distutils",
        "tkinter", "turtle", "pydoc_data", "msilib",
    }
)  # fmt: skip
"""Packages whose import has effects, or that need a screen."""
ANOTHER_COMPILER = ("torch._dynamo", "torch._inductor", "torch._functorch", "torch.testing", "torch.onnx")


def _standard_modules():
    for name in sorted(sys.stdlib_module_names - LEFT_OUT):
        with contextlib.suppress(ImportError):
            module = importlib.import_module(name)
            yield module
            for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
                if not found.name.startswith(("_", "test")):
                    with contextlib.suppress(ImportError):
                        yield importlib.import_module(f"{name}.{found.name}")


def _torch_modules():
    for name in sorted(sys.modules):
        if name.partition(".")[0] == "torch" and not name.startswith(ANOTHER_COMPILER):
            module = sys.modules[name]
            if isinstance(module, types.ModuleType):
                yield module


def _functions_of(space: dict[str, Any], module: str, owner: type | None):
    for _, value in sorted(space.items(), key=lambda item: str(item[0])):
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if isinstance(value, property):
            value = value.fget
        if isinstance(value, types.FunctionType) and value.__module__ == module:
            yield value, owner
        elif isinstance(value, type) and owner is None and value.__module__ == module:
            yield from _functions_of(dict(vars(value)), module, value)


def functions(modules) -> list[tuple[types.FunctionType, type | None]]:
    """Every Python function of these modules that the hook would ask about, with its class, in a fixed order."""
    found: dict[int, tuple[types.FunctionType, type | None]] = {}
    for module in modules:
        for function, owner in _functions_of(dict(vars(module)), module.__name__, None):
            if not function.__code__.co_flags & GENERATOR_FLAGS:
                found.setdefault(id(function.__code__), (function, owner))
    return sorted(found.values(), key=lambda pair: (pair[0].__module__, pair[0].__qualname__))


class Plain:
    """An object of the program."""

    def __init__(self):
        self.name, self.items, self.weight = "plain", [1, 2], torch.ones(3)

    def method(self, x=1):
        return x


_MAKERS = [
    lambda r: torch.arange(6.0).reshape(2, 3), lambda r: torch.ones(3, requires_grad=True), lambda r: torch.tensor(2),
    lambda r: torch.nn.Parameter(torch.ones(3, 3)), lambda r: torch.tensor([True, False]), lambda r: None,
    lambda r: r.choice([0, 1, 2, 3, -1, 7, 255]), lambda r: r.choice([0.0, 0.5, -2.5, float("inf")]),
    lambda r: r.choice([True, False]), lambda r: r.choice(["", "text", "a.b", "x=1", "%s", "utf-8"]), lambda r: b"raw",
    lambda r: [1, 2, 3], lambda r: [], lambda r: (1, 2), lambda r: {"a": 1, "b": [2]}, lambda r: {}, lambda r: {1, 2},
    lambda r: [torch.ones(2, 3), torch.ones(2, 3)], lambda r: (torch.ones(2), 1), lambda r: {"t": torch.ones(2)},
    lambda r: range(3), lambda r: slice(0, 2), lambda r: len, lambda r: (lambda *a, **k: a), lambda r: int,
    lambda r: Plain(), lambda r: Plain, lambda r: Plain().method, lambda r: types.SimpleNamespace(a=1, b="two"),
    lambda r: iter([1, 2]), lambda r: enumerate("ab"), lambda r: collections.deque([1, 2]), lambda r: torch.float32,
    lambda r: collections.OrderedDict(a=1), lambda r: collections.Counter("aab"), lambda r: torch.device("cpu"),
    lambda r: collections.defaultdict(list), lambda r: torch.nn.Linear(3, 2), lambda r: torch.Size([2, 3]),
    lambda r: 1 + 2j, lambda r: frozenset("ab"), lambda r: Ellipsis, lambda r: (i for i in range(2)), lambda r: types,
    lambda r: ValueError("given"), lambda r: ValueError, lambda r: bytearray(b"ab"), lambda r: property(len),
    lambda r: torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()), lambda r: memoryview(b"ab"),
]  # fmt: skip


def _instance(owner: type) -> Any:
    """An object of a class, without running its constructor: ``__getattr__`` without it may never end."""
    made = owner.__new__(owner) if issubclass(owner, torch.nn.Module) else object.__new__(owner)
    if isinstance(made, torch.nn.Module):
        torch.nn.Module.__init__(made)
    return made


def _defaults(function: types.FunctionType) -> dict[str, Any]:
    """By name; the code is asked, as ``inspect.signature`` shows what a decorator says of it."""
    code, given = function.__code__, function.__defaults__ or ()
    first = code.co_argcount - len(given)
    positional = dict(zip(code.co_varnames[first : code.co_argcount], given, strict=True))
    return positional | (function.__kwdefaults__ or {})


def arguments(function: types.FunctionType, owner: type | None, r: random.Random) -> dict[str, Any]:
    """What the frame's argument slots hold in one call."""
    code = function.__code__
    named = code.co_argcount + code.co_kwonlyargcount
    defaults = _defaults(function)
    chosen = {}
    for place, name in enumerate(code.co_varnames[:named]):
        if place == 0 and owner is not None and name in ("self", "cls"):
            chosen[name] = owner
            if name == "self" and hasattr(owner, "__getattr__"):
                chosen[name] = r.choice(_MAKERS)(r)
            elif name == "self":
                try:
                    chosen[name] = _instance(owner)
                except TypeError:
                    chosen[name] = r.choice(_MAKERS)(r)
            continue
        as_declared = r.random() < 0.3 and name in defaults
        chosen[name] = defaults[name] if as_declared else r.choice(_MAKERS)(r)
    rest = named
    if code.co_flags & inspect.CO_VARARGS:
        chosen[code.co_varnames[rest]] = tuple(r.choice(_MAKERS)(r) for _ in range(r.randrange(3)))
        rest += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        chosen[code.co_varnames[rest]] = {
            word: r.choice(_MAKERS)(r) for word in ("key", "word")[: r.randrange(3)]
        }
    return chosen


@dataclass
class View:
    """What the hook shows of a frame that starts."""

    code: types.CodeType
    function: types.FunctionType
    globals: dict[str, Any]
    builtins: dict[str, Any]
    closure: tuple[Any, ...]
    locals: dict[str, Any]


def _verified(graph_module, example_inputs):
    fx_interface.verify(graph_module)
    return graph_module.forward


def _outside() -> tuple[Any, ...]:
    """What no capture may change."""
    return (
        torch.get_rng_state().tolist(), random.getstate(), torch.is_grad_enabled(), torch.get_default_dtype(),
        os.getcwd(), sys.getrecursionlimit(), threading_count(),
    )  # fmt: skip


def threading_count() -> int:
    """How many threads there are."""
    return len(sys._current_frames())


def capture(function: types.FunctionType, chosen: dict[str, Any]) -> str:
    """Have the translator do one frame, which is not run afterwards; what became of it."""
    session = Session(_verified, TrialLibrary())
    code = function.__code__
    session.targets[id(code)] = code
    view = View(
        code,
        function,
        function.__globals__,
        vars(sys.modules["builtins"]),
        function.__closure__ or (),
        chosen,
    )
    before = _outside()
    answer = FrameCompiler(session)(view, 0)
    assert before == _outside(), "the capture changed something outside"
    if session.report.replacements:
        stopped = session.report.replacements[0][1].stopped
        return "captured" if stopped is None else f"broke {stopped.code}"
    assert session.report.eager, answer
    return "eager"


MODULES = {"standard": _standard_modules, "torch": _torch_modules}
SECONDS = 60
"""What one capture may take; after that, the stack is shown and the process ends."""


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("origin", choices=sorted(MODULES))
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    sys.unraisablehook = lambda unraisable: None  # objects that were never initialized do not end well
    found = functions(MODULES[options.origin]())
    draw = random.Random(f"{options.origin}{options.seed}")
    outcomes: collections.Counter[str] = collections.Counter()
    mistakes: dict[str, list[str]] = collections.defaultdict(list)
    for number in range(options.count):
        function, owner = draw.choice(found)
        chosen = arguments(function, owner, random.Random(f"{options.seed} {number}"))
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            outcomes[capture(function, chosen)] += 1
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            name = f"{function.__module__}.{function.__qualname__} (number {number})"
            where = f"{place.filename}:{place.lineno}: {place.line}"
            mistakes[f"{type(error).__name__} at {where}"].append(f"{name}: {error}")
    faulthandler.cancel_dump_traceback_later()
    print(f"{len(found)} functions, {options.count} drawn: {dict(outcomes.most_common())}")
    for where, cases in mistakes.items():
        print(f"{len(cases)} x {where}\n    {cases[0][:300]}")
    return 1 if mistakes or outcomes["captured"] < options.count // 50 else 0


if __name__ == "__main__":
    sys.exit(main())
