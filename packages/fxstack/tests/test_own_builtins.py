"""All modules of the stack have builtins of their own, and copies of the modules of functions that they import."""

from __future__ import annotations

import json
import subprocess
import sys

_PROGRAM = """
import builtins, sys, functools, itertools, json, math, operator
import fxstack.pipeline, aot_autograd.pipeline, inductor_codegen.compile, primtorch_decomps
len(primtorch_decomps.DECOMPOSITIONS)  # loads all families
from fx_interface.python_runtime.own_builtins import STACK_PACKAGES
shared = (functools, itertools, math, operator)
of_stack = {name: vars(module) for name, module in sys.modules.items() if name.partition(".")[0] in STACK_PACKAGES}
of_python = {name: names for name, names in of_stack.items() if str(names.get("__file__")).endswith(".py")}
print(len(of_python))
own = fxstack.pipeline.__builtins__
assert own["isinstance"] is not isinstance and all(own[name] is vars(builtins)[name] for name in ("len", "type"))
print(json.dumps([name for name, names in of_python.items() if names["__builtins__"] is not own]))
print(json.dumps([name for name, names in of_python.items() if any(x is y for x in names.values() for y in shared)]))
"""
_BEFORE = [
    "fxstack",
    "fxstack.shadowed",
    "fx_interface",
    "fx_interface.python_runtime",
    "fx_interface.python_runtime.own_builtins",
]
"""What is run before there is a finder that gives modules their own builtins."""


def test_all_modules_but_those_that_arrange_it() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], check=True, capture_output=True, text=True)
    count, without_builtins, with_shared_modules = map(json.loads, done.stdout.splitlines())
    assert count > 500
    assert sorted(without_builtins) == sorted(_BEFORE)
    assert sorted(with_shared_modules) == ["fx_interface.python_runtime.own_builtins"]
