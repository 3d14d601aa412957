"""A graph on a GPU as native objects for other machines: the entry, with all of its kernels compiled, and no Triton."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.fx import GraphModule

from fx_interface.signature import SHAPE_ENV_KEY
from fx_interface.symbols import ShapeEnv
from inductor_codegen.cache import ArtifactStore, content_key, temporary_store
from inductor_codegen.codegen.triton.launch.kernels import KernelRecord
from inductor_codegen.codegen.triton.launch.module import check_triton
from inductor_codegen.codegen.triton.out_of_place import out_of_place
from inductor_codegen.codegen.triton.wrapper import kernels_source
from inductor_codegen.codegen.wrapper import EntrySource, write_entry
from inductor_codegen.codegen.wrapper.kernel_calls import CPU
from inductor_codegen.errors import unsupported
from inductor_codegen.ir.program import Program
from inductor_codegen.lower.chosen_layouts import Layouts
from inductor_codegen.native.ahead_of_time import NativeObject
from inductor_codegen.native.cpu import build_entry, graph_key
from inductor_codegen.native.kernel_images import images_source
from inductor_codegen.native.launch_classes import LaunchClass, launch_classes
from inductor_codegen.native.library import LIBRARY
from inductor_codegen.native.shared_kernels import with_shared_kernels
from inductor_codegen.options import CodegenOptions
from inductor_codegen.pipeline import device_of, kernel_sources, plan
from inductor_codegen.runtime import GraphRecord
from inductor_codegen.toolchain.cpp_compiler import Compiler, find_compiler
from inductor_codegen.trusted import Folder

_MODULE = "kernels.py"
_GPU = torch.device("cuda", 0)
_ANY = {"x86_64": "x86-64", "AMD64": "x86-64", "aarch64": "armv8-a", "arm64": "armv8-a"}
"""The level that every processor of a family runs: the host has little to compute."""


def compile_for_gpus(
    graph_module: GraphModule,
    architectures: Sequence[str],
    options: CodegenOptions | None = None,
    *,
    store: ArtifactStore | None = None,
    layouts: Layouts | None = None,
) -> NativeObject:
    """The native objects of a graph in dialect ``prims`` on GPU 0, one for each architecture (``sm_80``).

    The arguments are those of ``compile_graph``, and so are the errors; IND105 for a graph that is not on GPU 0, IND107
    without Triton, IND109 for one whose sizes vary too widely. No GPU is needed.
    """
    options = options or CodegenOptions()
    program = plan(graph_module, layouts)
    env = graph_module.meta.get(SHAPE_ENV_KEY) or ShapeEnv()
    device = device_of(program) if program.buffers() else _GPU
    if device.type != "cuda" or device.index:
        raise unsupported("IND105", "kernels are compiled ahead of time for graphs on GPU 0", None)
    _check_triton()
    if store is None and not options.cache:
        with temporary_store() as passing:
            return _compile(program, env, device, architectures, passing, options)
    store = store or ArtifactStore(options.cache_dir)
    return _compile(program, env, device, architectures, store, options)


def _check_triton() -> None:
    try:
        check_triton()
    except ImportError as error:
        action = "pip install inductor-codegen[triton]"
        raise unsupported("IND107", f"Triton cannot be used: {error}", None, action) from error
    if os.environ.get("TRITON_INTERPRET") == "1":
        raise unsupported(
            "IND107", "Triton interprets kernels in this process", None, "unset TRITON_INTERPRET"
        )


def _compile(
    program: Program,
    env: ShapeEnv,
    device: torch.device,
    architectures: Sequence[str],
    store: ArtifactStore,
    options: CodegenOptions,
) -> NativeObject:
    compiler = find_compiler(options.compiler, memo=store.folder)
    compiler = compiler.for_level(_ANY.get(platform.machine(), platform.machine()))
    program = with_shared_kernels(program, program.kernels_on(device))
    there, here = (replace(program, kernels=program.kernels_on(at)) for at in (device, CPU))
    entry = write_entry(out_of_place(program), device)
    on_cpu = kernel_sources(here) if here.kernels else ()
    records = tuple(KernelRecord.of(kernel) for kernel in there.kernels)
    launches = launch_classes(program, there.kernels, records, env)
    made = _Kernels(kernels_source(there), records, tuple(launches))
    libraries = {arch: _library(entry, on_cpu, made, arch, compiler, store) for arch in architectures}
    record = GraphRecord("", entry.input_kinds, entry.output_kinds, entry.operators, entry.release_gil, gpu=0)
    return NativeObject(record, libraries)


class _Kernels:
    """Triton's text, what compiling it needs besides, and what it is launched with."""

    def __init__(
        self, text: str, records: tuple[KernelRecord, ...], launches: tuple[LaunchClass, ...]
    ) -> None:
        self.text, self.records, self.launches = text, records, launches

    @property
    def versions(self) -> tuple[str, ...]:
        """All that decides what is compiled."""
        launches = [[one.number, one.rows, one.points, one.traits] for one in self.launches]
        records = [record.to_data() for record in self.records]
        return ("triton", importlib.metadata.version("triton"), self.text, str(records), str(launches))


def _library(
    entry: EntrySource,
    on_cpu: Sequence[str],
    kernels: _Kernels,
    arch: str,
    compiler: Compiler,
    store: ArtifactStore,
) -> bytes:
    key = content_key("gpu images 1", arch, graph_key(entry, (*kernels.versions, *on_cpu), compiler))

    def create(folder: Folder) -> tuple[Any, Mapping[str, bytes]]:
        folder.replace(_MODULE, kernels.text.encode())
        images = images_source(folder.path / _MODULE, kernels.records, kernels.launches, arch)
        library, record = build_entry(entry, (*on_cpu, images), key, compiler, folder)
        return record.to_data(), {LIBRARY: library}

    return store.get_or_create(key, create).files[LIBRARY].read_bytes()
