"""Programs that torch's own documentation shows: the examples of one or two docstrings, read where torch is installed.

Nobody drew them for a compiler. They call operators in the ways that people are told to, with modules, optimizers,
distributions, sparse and nested tensors, transforms, hooks. Each value that an example shows or names is compared.
"""

from __future__ import annotations

import ast
import doctest
import functools
import importlib
import inspect
import math
import re
import textwrap
from collections.abc import Iterable, Iterator
from random import Random
from types import ModuleType
from typing import Any

import torch
from driver import Comparing, main

MODULES = (
    "torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils",
    "torch.nn.utils.parametrizations", "torch.nn.utils.parametrize", "torch.nn.utils.prune",
    "torch.nn.utils.rnn", "torch.nn.utils.stateless", "torch.linalg", "torch.fft", "torch.special",
    "torch.autograd", "torch.autograd.graph", "torch.autograd.functional", "torch.autograd.forward_ad",
    "torch.func", "torch.optim", "torch.optim.lr_scheduler", "torch.optim.swa_utils", "torch.distributions",
    "torch.distributions.constraint_registry", "torch.sparse", "torch.nested", "torch.signal.windows",
    "torch.overrides", "torch.testing", "torch.utils.data", "torch.utils.checkpoint", "torch.random",
    "torch.amp", "torch.ao.nn.quantized", "torch.utils.flop_counter", "torch.nn.attention",
    "torch.nn.attention.bias", "torch.utils.dlpack", "torch.functional",
)  # fmt: skip
LEFT_OUT = (
    "cuda", "xpu", "mps", "distributed", "torchvision", "torchaudio", "torchtext", "compile", "export", "onnx", "open(",
    "save(", "load(", "multiprocessing", "num_workers", "hub", "profiler", "jit", "set_default_device", "pin_memory",
    "input(", "sys.", "memory_format=torch.channels_last_3d", "set_num_threads", "while True", "assert_close", "empty(",
    "data_ptr", "new_empty", "empty_like", "empty_strided", "EmptyStorage", "from_file", "UntypedStorage", "is_warn",
    "seed()", "initial_seed", "dtype.to_real", "_dynamo", "library", "get_default_dtype", "fork_rng", "emit",
    "detect_anomaly", "...", "resize_", "set_flush_denormal", "__config__", "deprecated",
    "memory_budget", "linearize",
)  # fmt: skip
"""Other devices and packages, files, processes, what is set for the whole process, memory that nobody has written,
lines that are left to the reader, what eager refuses since it is for compiled code, and warnings of torch's tracer
(docs/soundness.md)."""

MOST_ELEMENTS = 2_000_000


def _owners() -> Iterator[tuple[str, Any]]:
    for name in MODULES:
        owner = torch.Tensor if name == "torch.Tensor" else importlib.import_module(name)
        for member in sorted(dir(owner)):
            if not member.startswith("_"):
                yield f"{name}.{member}", inspect.getattr_static(owner, member, None)


@functools.cache
def documented() -> list[tuple[str, tuple[str, ...]]]:
    """Names of what has examples that can be run, with their statements."""
    found: dict[tuple[str, ...], str] = {}
    for name, value in _owners():
        if isinstance(value, ModuleType):
            continue
        text = getattr(value, "__doc__", None)
        statements = _statements(text) if isinstance(text, str) and ">>>" in text else ()
        if statements and not any(word in statement for statement in statements for word in LEFT_OUT):
            found.setdefault(statements, name)
    return [(name, statements) for statements, name in found.items()]


def _statements(text: str) -> tuple[str, ...]:
    try:
        examples = doctest.DocTestParser().get_examples(textwrap.dedent(text))
        lines = (line for example in examples for line in _shown(ast.parse(example.source)))
        return tuple(re.sub(r"(?<=\()\d+(?:, \d+)+(?=\))", _of_few_elements, line) for line in lines)
    except (ValueError, SyntaxError):
        return ()


def _of_few_elements(sizes: re.Match[str]) -> str:
    """A batch of one for sizes that eager alone would take seconds for."""
    numbers = list(map(int, sizes[0].split(", ")))
    few = [1, *numbers[1:]] if math.prod(numbers) > MOST_ELEMENTS else numbers
    return ", ".join(map(str, few))


def _shown(module: ast.Module) -> Iterator[str]:
    """The statements of an example; what an expression gives, or an assignment names, is shown."""
    for statement in module.body:
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
                yield ast.unparse(statement)
            case ast.Expr():
                yield f"out.append({ast.unparse(statement.value)})"
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield f"{ast.unparse(statement)}\nout.append({name})"
            case _:
                yield ast.unparse(statement)


HEAD = """\
import contextlib
import io
import math
import warnings
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.prune as prune
import torch.nn.utils.parametrize as parametrize
from torch import Tensor, autograd, optim, tensor
from torch.distributions import *
from torch.nn import *
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence, unpad_sequence

def told(error):
    return type(error).__name__, str(error)
"""


TAIL = """\
with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
    program()
"""
"""Before anything is compared: torch gives some warnings once in a process."""


def draw(random: Random) -> str:
    """The text of one program: a docstring's examples, or two's."""
    return _program(random.sample(documented(), random.choice((1, 1, 2))))


@functools.cache
def listed() -> list[str]:
    """The texts of all programs that have one docstring."""
    return [_program([example]) for example in documented()]


def _program(examples: Iterable[tuple[str, tuple[str, ...]]]) -> str:
    lines = [HEAD, "def program():", "    out = []"]
    for name, statements in examples:
        lines.append(f"    # {name}")
        for statement in statements:
            lines += ["    try:", textwrap.indent(statement, "        ")]
            lines += ["    except Exception as error:", "        out.append(told(error))"]
    return "\n".join([*lines, "    return out", "", "CALLS = [lambda: (), lambda: ()]", "", TAIL])


_VERSIONS = frozenset({"version", "own version"})  # how often composite operators write to their new results
COMPARING = Comparing(
    dict.fromkeys(("eager", "aot_eager", "inductor"), _VERSIONS),
    {"inductor": (1e-4, 1e-5)},
    gradients={"aot_eager": (1e-4, 1e-5)},
)

if __name__ == "__main__":
    main(draw, COMPARING, listed=listed)
