"""The name of a stored program: a hash of everything that tracing and compiling it read.

docs/soundness.md, "What a key contains", lists what is read, and where it is in the key. A graph for which that cannot
be said (it calls code of the program that tracing runs) has no key, and is compiled in each process.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket
from torch.fx import GraphModule

import aot_autograd
import dynamo_capture
import fx_interface
import inductor_codegen
import primtorch_decomps
from fx_interface import SymSpec, UnsupportedProgramError, canonical_hash, signature_of
from fx_interface.torch_internals import torch_state
from fxstack.options import Options
from inductor_codegen.cache import content_key
from inductor_codegen.toolchain.cpp_compiler import processor

logger = logging.getLogger("fxstack")

_FORMAT = 2
"""Part of every key: what an earlier version of this file named is not found any more."""

_OF_TORCH = frozenset(
    {
        "aten",
        "prims",
        "rngprims",
        "debugprims",
        "aot_autograd",
        "c10d",
        "_c10d_functional",
        "_c10d_functional_autograd",
        "mkl",
        "mkldnn",
        "onednn",
        "quantized",
    }
)
"""Namespaces whose Python code comes with torch and with these packages, whose versions are in the key."""


def program_key(
    graph_module: GraphModule, example_inputs: Sequence[Any], options: Options | None = None
) -> str | None:
    """The name under which the compiled program is kept; None for a graph that has no stable form."""
    foreign = next(_code_of_the_program(graph_module), None)
    if foreign is not None:
        logger.info("a graph is not kept in the cache: %s is written in Python, by the program", foreign)
        return None
    state = torch_state.described()
    if state is None:
        logger.info("a graph is not kept in the cache: a mode of the program is entered")
        return None
    try:
        form = canonical_hash(graph_module)
    except UnsupportedProgramError as error:
        logger.info("a graph is not kept in the cache: %s", error)
        return None
    signature = signature_of(graph_module)
    declared = () if signature is None else signature.inputs
    names = " ".join(str(decl.spec.expr) for decl in declared if isinstance(decl.spec, SymSpec))
    symbolic = [isinstance(decl.spec, SymSpec) for decl in declared] or [False] * len(example_inputs)
    chosen = options or Options()
    choices = f"{chosen.activation_budget} {chosen.mode} {chosen.rng} {chosen.compiler} {chosen.autotune}"
    inputs = _inputs(example_inputs, symbolic)
    return content_key(
        "program", str(_FORMAT), form, names, inputs, choices, state, _toolchain(), _libraries()
    )


def _inputs(example_inputs: Sequence[Any], symbolic: Sequence[bool]) -> str:
    """What tracing reads of the inputs beyond their specs: history, marks, the memory that some of them share."""
    memories: dict[int, list[int]] = {}
    for index, value in enumerate(example_inputs):
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            memories.setdefault(value.untyped_storage()._cdata, []).append(index)
    shared = {
        index: f"memory {members[0]} from {example_inputs[index].storage_offset()}"
        for members in memories.values()
        if len(members) > 1
        for index in members
    }
    return "\n".join(
        f"{_facts_of(value)} {shared.get(index, '')}" if isinstance(value, torch.Tensor) else f"{value!r}"
        for index, (value, is_symbol) in enumerate(zip(example_inputs, symbolic, strict=True))
        if not is_symbol
    )


def _facts_of(tensor: torch.Tensor) -> str:
    facts = {
        "trained": tensor.requires_grad,
        "leaf": tensor.is_leaf,
        "inference": tensor.is_inference(),
        "conj": tensor.is_conj(),
        "neg": tensor.is_neg(),
        "zeros": tensor._is_zerotensor(),
    }
    plain = "" if type(tensor) is torch.Tensor else type(tensor).__qualname__
    return f"{plain} {' '.join(name for name, holds in facts.items() if holds)}"


def _code_of_the_program(graph_module: GraphModule) -> Iterator[str]:
    """Operators in the graph for which the program has registered Python code, which tracing runs: fake kernels,
    derivatives, kernels of composite operators. What that code does may differ in the next process."""
    registered = _registered_in_python(len(torch.library._impls))
    for module in graph_module.modules():
        if not isinstance(module, GraphModule):
            continue
        for node in module.graph.nodes:
            target = node.target
            if isinstance(target, (OpOverload, OpOverloadPacket)):
                packet = target.overloadpacket if isinstance(target, OpOverload) else target
                if packet._qualified_op_name in registered:
                    yield packet._qualified_op_name


@cache
def _registered_in_python(count: int) -> frozenset[str]:
    """The operators among the ``count`` registrations that Python knows of."""
    found = set()
    for key in torch.library._impls:
        namespace, name, dispatch = key.split("/")
        is_traced = dispatch.startswith(("Autograd", "Composite"))
        if namespace not in _OF_TORCH or (namespace == "aten" and is_traced):
            found.add(f"{namespace}::{name.partition('.')[0]}")
    return frozenset(found)


def _libraries() -> str:
    """Shared libraries with operators that the program has loaded."""
    paths = sorted(torch.ops.loaded_libraries)
    return " ".join(_file(path, os.path.basename(path), partial(os.stat, path)) for path in paths)


@cache
def _toolchain() -> str:
    """torch, the processor, and the very files of the packages that compile."""
    parts = [torch.__version__, str(torch.version.git_version), processor()]
    packages = (fx_interface, aot_autograd, primtorch_decomps, inductor_codegen, dynamo_capture)
    folders = [Path(str(package.__file__)).parent for package in packages]
    for folder in (*folders, Path(__file__).parent.parent):
        _add_files(os.fspath(folder), parts)
    return content_key(*parts)


def _add_files(folder: str, parts: list[str]) -> None:
    """The files of a folder and of those in it, in an order of their own; links to folders are not followed."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=attrgetter("name"))
    for entry in entries:
        name = entry.name
        if name.endswith((".py", ".so")):
            parts.append(_file(entry.path, name, entry.stat))
        elif name != "__pycache__" and entry.is_dir(follow_symlinks=False):
            parts.append(f"in {name}")
            _add_files(entry.path, parts)
            parts.append("out")


def _file(path: str, name: str, ask: Callable[[], os.stat_result]) -> str:
    """A file's name, size and time of its last change."""
    try:
        status = ask()
    except OSError:
        return path
    return f"{name} {status.st_size} {status.st_mtime_ns}"
