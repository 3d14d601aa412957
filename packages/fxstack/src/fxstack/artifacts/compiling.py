"""``fxstack.aot_compile``: exports become native objects, and a file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import safetensors.torch
from torch.fx import GraphModule

from fxstack.artifacts.archive import write_archive, write_beside
from fxstack.artifacts.contract import Contract
from fxstack.artifacts.devices import Entries, by_device, exports_for, targets_of
from fxstack.artifacts.exporting import Exported, export
from fxstack.artifacts.gradients import check_gradients, described_backward
from fxstack.artifacts.results import Results
from fxstack.artifacts.weights import Store, Weights, check_written, names_of
from fxstack.options import Options, check_choices
from fxstack_artifact.artifact import GPU_PROGRAM, INFERENCE, PROGRAM, TRAINING, WEIGHTS
from fxstack_artifact.container.targets import is_for_gpu
from inductor_codegen import CodegenOptions
from inductor_codegen.cache import ArtifactStore
from inductor_codegen.lower.chosen_layouts import Layouts
from inductor_codegen.native.ahead_of_time import NativeObject, compile_for_levels


def aot_compile(
    model: Callable[..., Any] | Exported | Mapping[str, Exported | Sequence[Exported]],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    path: str | os.PathLike[str],
    dynamic_shapes: Any = None,
    training: bool = False,
    target: str | Sequence[str] | None = None,
    weights: Literal["inside", "beside", "outside"] = "inside",
    sign_with: str | os.PathLike[str] | None = None,
    options: Options | Mapping[str, Any] | None = None,
) -> Path:
    """Compile ``model`` for arguments like these and write an artifact to ``path``, which is returned.

    ``model``: a module or function, what ``fxstack.export`` returned, or several of these by the names of the entry
    points (``{"prefill": ..., "decode": ...}``), which share weights. ``dynamic_shapes`` and ``training`` are as for
    ``export``.
    ``target``: one of ``x86-64-v2``, ``-v3``, ``-v4`` or several, of which the best is chosen when the file is loaded;
    None: this processor's. A model on GPU 0 has architectures for targets (``sm_80``, ``sm_90``; None: this GPU's).
    With levels and architectures (``("x86-64-v3", "sm_90")``) a copy of the model is exported on the other device too,
    and the file runs on both; an entry point that was exported before is a list of its exports, one on each.
    ``weights``: where the model's parameters and buffers are. ``"inside"`` the file; ``"beside"`` it, in a safetensors
    file of its name with ``.safetensors`` behind it, which ``fxstack.load`` checks and maps; or ``"outside"``: passed
    to it (``load(path, weights=...)``: a state dict, or a safetensors file). ``sign_with``: a file with a private key,
    with which the artifact is signed (``fxstack.make_key``).

    ExportError (FXS5xx) if it cannot be exported; MissingCompilerError IND111 and CompilationError (IND11x) if it
    cannot be compiled; OSError if the file cannot be written.
    """
    chosen = Options.make(options)
    check_choices({"weights": weights}, {"weights": ("inside", "beside", "outside")})
    if not isinstance(model, (Exported, Mapping)):

        def exported(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Exported:
            return export(
                model, args, kwargs, dynamic_shapes=dynamic_shapes, training=training, options=options
            )

        model = {"forward": exports_for(model, args, kwargs or {}, target, exported)}
    given = {"forward": model} if isinstance(model, Exported) else model
    exports = {name: (one,) if isinstance(one, Exported) else tuple(one) for name, one in given.items()}
    programs = by_device(exports)
    targets = targets_of(target, list(programs))
    is_trained = any(one.training for several in exports.values() for one in several)
    store = Store()
    contents: dict[str, bytes] = {}
    written: dict[str, dict[str, Any]] = {}
    for on_gpu, entries in programs.items():
        held = Weights(store, inside=weights == "inside", trained=is_trained)
        name = GPU_PROGRAM if on_gpu and len(programs) > 1 else PROGRAM
        written[name] = _program(entries, chosen, contents, targets[on_gpu], held)
    stored = {WEIGHTS: safetensors.torch.save(store.tensors)} if store.tensors else {}
    place = Path(path)
    beside = write_beside(place, store.left_out) if weights == "beside" and store.left_out else {}
    texts = {name: _text({**written[name], **beside}) for name in (PROGRAM, GPU_PROGRAM) if name in written}
    every = tuple(name for on_gpu in targets for name in targets[on_gpu])
    write_archive(place, {**texts, **contents, **stored}, every, sign_with)
    return place


def _program(
    entries: Entries, options: Options, contents: dict[str, bytes], targets: Sequence[str], held: Weights
) -> dict[str, Any]:
    """The program of one device; its native objects are added to ``contents``."""
    entry_points = {}
    for number, (name, (exported, contract)) in enumerate(entries.items()):
        native = _native_object(exported.graphs.forward, exported.graphs.layouts, options, targets)
        objects = _added(contents, native, f"native/{number}")
        entry_points[name] = _entry_point(exported, contract, native, objects, held)
        if exported.training:
            entry_points[name]["backward"] = _backward(exported, contract, options, contents, number, targets)
    return {"constants": held.described, "entry_points": entry_points}


def _text(program: Mapping[str, Any]) -> bytes:
    return json.dumps(program, separators=(",", ":"), allow_nan=False).encode()


def _native_object(
    graph: GraphModule, layouts: Layouts | None, options: Options, targets: Sequence[str]
) -> NativeObject:
    codegen = CodegenOptions(cache_dir=options.cache_dir, cache=options.cache, compiler=options.compiler)
    store = ArtifactStore(options.cache_dir) if options.cache and options.cache_dir is not None else None
    if not is_for_gpu(targets):
        return compile_for_levels(graph, targets, codegen, store=store, layouts=layouts)
    from inductor_codegen.native.gpu_ahead_of_time import compile_for_gpus  # which needs Triton

    return compile_for_gpus(graph, targets, codegen, store=store, layouts=layouts)


def _added(contents: dict[str, bytes], native: NativeObject, name: str) -> dict[str, str]:
    """The names of a native object's contents, by level."""
    objects = {level: f"{name}.{level}.so" for level in native.libraries}
    contents.update({objects[level]: library for level, library in native.libraries.items()})
    return objects


def _backward(
    exported: Exported,
    contract: Contract,
    options: Options,
    contents: dict[str, bytes],
    number: int,
    targets: Sequence[str],
) -> dict[str, Any]:
    """The backward of a training entry point, as the loader's ``Differentiable`` reads it."""
    graphs = exported.graphs
    check_gradients(graphs.plan)
    assert graphs.backward is not None
    native = _native_object(graphs.backward, graphs.backward_layouts, options, targets)
    objects = _added(contents, native, f"native/{number}b")
    return described_backward(graphs.plan, contract, native.record, objects)


def _entry_point(
    exported: Exported,
    contract: Contract,
    native: NativeObject,
    objects: Mapping[str, str],
    weights: Weights,
) -> dict[str, Any]:
    """An entry point as the loader's ``EntryPoint`` reads it."""
    record, plan = native.record, exported.graphs.plan
    writes = [(*contract.inputs[m.input_index], m.graph_index) for m in plan.mutated]
    written = [contract.constants[number] for of, number, _ in writes if of == 1]
    check_written(written, contract.constants)
    names = names_of(exported.model)
    identities = {id(tensor) for tensor in written}
    results = Results(exported, contract)
    return {
        "kind": TRAINING if exported.training else INFERENCE,
        "mode": exported.mode,
        "parameters": [parameter.to_data() for parameter in exported.arguments.parameters],
        "symbols": {"names": contract.names, "sources": list(contract.symbols.values())},
        "graph": {
            "objects": dict(objects),
            "contract": contract.words(record, writes),
            "constants": [
                weights.add(tensor, names, written=id(tensor) in identities) for tensor in contract.constants
            ],
            "operators": [call.to_data() for call in record.operators],
            "release_gil": record.release_gil,
            "scratch_limit": record.scratch_limit,
        },
        "results": {"makes": results.makes, "node": results.node},
        "written": sorted({number for of, number, _ in writes if of == 0}),
        "shown": _shown(exported, contract),
    }


def _shown(exported: Exported, contract: Contract) -> dict[str, list[str]]:
    """Inputs and relations as texts, in which sizes have the names that the user gave them."""
    chosen = {atom.name: name for atom, name in zip(contract.symbols, contract.names, strict=True)}

    def text(value: Any) -> str:
        return re.sub(r"\b[A-Za-z_]\w*\b", lambda found: chosen.get(found[0], found[0]), str(value))

    inputs = [
        f"{name}: {'int' if number in contract.integers else 'anything' if spec is None else text(spec)}"
        for number, (name, spec) in enumerate(zip(exported.arguments.names, contract.leaves, strict=True))
    ]
    relations = [(text(lhs), op, text(rhs)) for op, lhs, rhs in contract.relations]
    return {"inputs": inputs, "relations": [" ".join(one) for one in relations if one[0] != one[2]]}
