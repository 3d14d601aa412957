"""A program for a GPU as a callable, out of one artifact: its native entry, with what it computes on the CPU besides,
and its Triton kernels."""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from fx_interface.events import span
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import ShapeEnv
from inductor_codegen.cache import Artifact, ArtifactStore, content_key
from inductor_codegen.codegen.triton.launch.images import read, written
from inductor_codegen.codegen.triton.launch.kernels import KernelLoader, KernelRecord
from inductor_codegen.codegen.triton.launch.module import check_triton
from inductor_codegen.codegen.triton.out_of_place import out_of_place
from inductor_codegen.codegen.triton.wrapper import kernels_source
from inductor_codegen.codegen.wrapper import EntrySource, write_entry
from inductor_codegen.codegen.wrapper.kernel_calls import CPU
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.ir.program import Program
from inductor_codegen.native.cpu import build_entry, graph_key, load_again, sources
from inductor_codegen.native.library import LIBRARY
from inductor_codegen.native.parallel_kernels import begin_kernels, target_of
from inductor_codegen.native.recordable import why_not_recorded
from inductor_codegen.native.shared_kernels import with_shared_kernels
from inductor_codegen.native_errors import ArtifactLoadError
from inductor_codegen.pipeline import kernel_sources
from inductor_codegen.runtime import CompiledGraph, GraphRecord, load
from inductor_codegen.toolchain.cpp_compiler import Compiler, find_compiler
from inductor_codegen.trusted import Folder

_MODULE, _IMAGES = "kernels.py", "images"


def prepare_triton_graph(
    program: Program,
    device: torch.device,
    store: ArtifactStore,
    compiler_command: str | None = None,
    *,
    env: ShapeEnv | None = None,
    debug: bool = False,
    autotune: bool = False,
) -> Callable[[], CompiledGraph]:
    """What gives the callable for a program whose kernels run on a CUDA ``device``, out of the store if it is there;
    all text is written now.

    ``env``: its sizes, for which kernels are compiled beside the entry, by several processes. ``debug`` as for
    ``build_graph``; the lines of kernels in Triton are those of ``kernels.py`` always. ``autotune``: launches are
    chosen by measuring. ImportError without Triton; MissingCompilerError IND111 without a C++ compiler, which the entry
    needs.
    """
    check_triton()
    if not debug:  # names of kernels are for people then
        program = with_shared_kernels(program, program.kernels_on(device))
    compiler = find_compiler(compiler_command, memo=store.folder)
    entry = write_entry(out_of_place(program), device)
    there, here = (replace(program, kernels=program.kernels_on(at)) for at in (device, CPU))
    text, on_cpu = kernels_source(there), kernel_sources(here) if here.kernels else ()
    records = list(map(KernelRecord.of, there.kernels))
    if autotune:
        from inductor_codegen.native.tuning.launches import tuned_records  # asked for by few

        records = tuned_records(there, there.kernels, records, text, device, store)
    tuned = repr([(record.name, record.tuned) for record in records if record.tuned is not None])
    target = str(target_of(device))  # of a card's architecture are the images
    versions = ("triton", importlib.metadata.version("triton"), str(device), target, text, tuned, *on_cpu)
    key = content_key(graph_key(entry, versions, compiler, debug=debug))
    work = _Work(
        program, there.kernels, records, text, entry, on_cpu, device, env or ShapeEnv(), compiler, debug
    )
    return functools.partial(_build, work, key, store)


@dataclass(frozen=True, slots=True)
class _Work:
    """What is compiled: kernels for a GPU with their text, an entry, and kernels for the CPU."""

    program: Program
    kernels: Sequence[Kernel]
    records: Sequence[KernelRecord]
    text: str
    entry: EntrySource
    on_cpu: Sequence[str]
    device: torch.device
    env: ShapeEnv
    compiler: Compiler
    debug: bool


def _build(work: _Work, key: str, store: ArtifactStore) -> CompiledGraph:
    def create(folder: Folder) -> tuple[Any, Mapping[str, bytes]]:
        event.note(hit=False)
        return _compiled(work, key, store.path(key).absolute(), folder)

    with span("cache", what="library", key=key, hit=True) as event:
        try:
            return load_triton_graph(store.get_or_create(key, create))
        except ArtifactLoadError:
            return load_again(key, create, store, load_triton_graph)


def _compiled(work: _Work, key: str, place: Path, folder: Folder) -> tuple[Any, Mapping[str, bytes]]:
    """The metadata and the files of an artifact that will lie at ``place``."""
    kept, entry, on_cpu = place if work.debug else None, work.entry, work.on_cpu
    module = str(place / _MODULE)
    begun = begin_kernels(work.program, work.kernels, work.records, work.text, module, work.device, work.env)
    with begun as batch:
        library, record = build_entry(entry, on_cpu, key, work.compiler, folder, kept)
        table, images = written(batch.wait())
    metadata = {
        "kind": "triton",
        "graph": record.to_data(),
        "device": work.device.index or 0,
        "kernels": [record.to_data() for record in work.records],
        "images": table,
        "not_recorded": why_not_recorded(work.program),
    }
    texts = {_MODULE: work.text.encode(), _IMAGES: images, **sources(entry, on_cpu, key, kept)}
    return metadata, {LIBRARY: library, **texts}


def load_triton_graph(artifact: Artifact) -> CompiledGraph:
    """The callable of a stored artifact. ArtifactLoadError IND401 when it cannot be read or loaded."""
    metadata = artifact.metadata
    try:
        kernels = tuple(map(KernelRecord.from_data, metadata["kernels"]))
        device = int(metadata["device"])
        record = replace(
            GraphRecord.from_data(metadata["graph"]),
            gpu=device,
            not_recorded=str(metadata["not_recorded"]),
        )
        images = read(metadata["images"], artifact.files[_IMAGES].read_bytes())
        loader = KernelLoader(artifact.files[_MODULE], kernels, device, images)
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise ArtifactLoadError(
            "IND401", f"the record of a compiled graph cannot be read: {error}"
        ) from error
    return load(record, artifact.files[LIBRARY], loader)
