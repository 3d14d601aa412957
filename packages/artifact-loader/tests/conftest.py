"""An artifact made by hand, of a native object that adds a constant to its input: no part of the stack is needed."""

from __future__ import annotations

import json
import shutil
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from fxstack_artifact import _native
from fxstack_artifact.container import signing
from fxstack_artifact.container.hashing import BLAKE3, CHECKSUM, digest
from fxstack_artifact.container.layout import Entry, local_header, tail
from fxstack_artifact.container.manifest import (
    NAME,
    Manifest,
    content_of,
    system,
    torch_version,
    version_for,
)

ENTRY = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void tell(void) {
    const char *path = getenv("FXA_TEST_LOADED");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) fclose(file);
}
typedef void *H;
static int32_t (*empty)(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, H *);
static int32_t (*data)(H, void **);
static int32_t (*index_error)(const char *);
const int32_t fx_abi = 4;
int32_t fx_bind(void *(*find)(const char *), const char **missing) {
    *missing = "aoti_torch_empty_strided";
    empty = find(*missing);
    data = find("aoti_torch_get_data_ptr");
    index_error = find("fx_index_error");
    return !empty || !data || !index_error;
}
/* x, weight, n -> x + weight, n + 1; an IndexError where x begins with -1 */
int32_t fx_entry(void *graph, const H *in, const int64_t *numbers, H *out, int64_t *out_numbers) {
    const int64_t sizes[] = {numbers[0], 3}, strides[] = {3, 1};
    float *x, *w, *y;
    (void)graph;
    if (empty(2, sizes, strides, 6, 0, -1, &out[0]) || data(in[0], (void **)&x)) return 1;
    if (data(in[1], (void **)&w) || data(out[0], (void **)&y)) return 1;
    if (x[0] == -1) return index_error("model.py:1");
    for (int64_t i = 0; i < 3 * numbers[0]; i++) y[i] = x[i] + w[i % 3];
    out_numbers[0] = numbers[0] + 1;
    return 0;
}
"""

CONTRACT = [
    *(1, 1, 0, 0, 2, 8),  # a symbol: size 0 of leaf 0, from 2 to 8
    *(1, 0, 6, 0, 2, 2, 1, 0, 2, 0, 3, 2, 0, 3, 2, 0, 1),  # a leaf: float32[n, 3] with strides [3, 1]
    *(1, 1, 2, 1, 0, 2, 0, 7),  # n != 7
    *(3, 0, 0, 1, 0, 2, 0),  # the graph takes leaf 0, constant 0, symbol 0
    *(2, 0, 1),  # and gives a tensor and an integer
    *(0, 1),  # nothing is written; one constant
]


@pytest.fixture
def loaded_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is there once the native object has been loaded."""
    monkeypatch.setenv("FXA_TEST_LOADED", str(tmp_path / "loaded"))
    return tmp_path / "loaded"


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The content of the native object."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("native")
    (folder / "entry.c").write_text(ENTRY)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-w", "entry.c", "-o", "entry.so"], cwd=folder, check=True
    )
    return (folder / "entry.so").read_bytes()


def entry_point() -> dict[str, Any]:
    """``f(x) -> {"y": x + weight, "n": len(x) + 1}``."""
    return {
        "kind": "inference",
        "parameters": [{"name": "x", "kind": "either", "node": {"leaf": None}}],
        "symbols": {"names": ["batch"], "sources": [[0, 0, 2, 8]]},
        "graph": {
            "objects": {"here": "native/0.here.so"},
            "contract": CONTRACT,
            "constants": [0],
            "operators": [],
            "release_gil": True,
            "scratch_limit": 0,
        },
        "results": {
            "makes": [
                ["graph", 0],
                ["graph", 1],
                ["view", ["graph", 0], [["aten::select.int", [0, 0], {}, None]]],
            ],
            "node": {"dict": [["y", {"leaf": 0}], ["n", {"leaf": 1}], ["first", {"leaf": 2}]]},
        },
        "written": [],
        "shown": {"inputs": ["x: float32[batch, 3]"], "relations": ["batch != 7"]},
    }


def program() -> dict[str, Any]:
    """The program of that one entry point."""
    weight = {"name": "w", "tensor": "w", "dtype": "float32", "sizes": [3], "strides": [1], "role": "buffer"}
    return {"constants": [weight], "entry_points": {"forward": entry_point()}}


def archived(contents: dict[str, bytes], wide: bool = False, signature: bytes = b"", **changes: Any) -> bytes:
    """The bytes of a file with these contents; ``changes`` are of its manifest."""
    kind = changes.get("kind", BLAKE3 if signature else CHECKSUM)
    requirements: dict[str, Any] = {
        "made_by": {"torch": torch.__version__},
        "entry_abi": _native.ENTRY_ABI,
        "torch": torch_version(torch.__version__),
        "system": system(),
        "targets": ("here",),
        "contents": {name: content_of(data, kind) for name, data in contents.items()},
        "kind": kind,
        "version": version_for(kind),
    }
    manifest = Manifest(**(requirements | changes)).to_bytes()
    made, entries = b"", []
    signed = {signing.NAME: signature} if signature else {}
    for name, data in {NAME: manifest, **contents, **signed}.items():
        entries.append(Entry(name, len(data), zlib.crc32(data), len(made), wide))
        made += local_header(entries[-1]) + data
    return made + tail(entries, len(made), digest(manifest + signature))


Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path, native: bytes, monkeypatch: pytest.MonkeyPatch) -> Make:
    """``make(program, **changes)`` writes an artifact for a target that is this processor's. ``more`` are contents
    besides."""
    monkeypatch.setattr(_native, "cpu_levels", lambda: ["better", "here"])

    def made(
        described: dict[str, Any] | None = None, more: dict[str, bytes] | None = None, **changes: Any
    ) -> Path:
        contents = {
            "program.json": json.dumps(program() if described is None else described).encode(),
            "native/0.here.so": native,
            "weights.safetensors": safetensors.torch.save({"w": torch.tensor([1.0, 2.0, 3.0])}),
            **(more or {}),
        }
        path = tmp_path / "made.fxa"
        path.write_bytes(archived(contents, **changes))
        return path

    return made
