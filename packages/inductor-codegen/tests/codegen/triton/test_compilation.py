"""Kernels compile to PTX for an H100 or H200 on a machine without a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import sys
from pathlib import Path
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from inductor_codegen.codegen.triton.launch import OPTIONS
from inductor_codegen.codegen.triton.module import load_module
from inductor_codegen.codegen.triton.wrapper import program_source
from inductor_codegen.ir.kernel import BufferParameter, SizeParameter
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph
from fx_interface.dialects import prims as p

def softmax(static):
    graph = ExampleGraph()
    columns = 11 if static else graph.symbol()
    x = graph.call(p.erf, graph.input(torch.randn(8, 11)))
    rows = graph.call(p.amax, x, [1])
    shifted = graph.call(p.exp, graph.call(p.sub, x, graph.call(p.broadcast_in_dim, rows, [8, columns], [0])))
    total = graph.call(p.sum, shifted, [1])
    half = graph.call(p.convert_dtype, graph.call(p.argmax, x, 1), torch.bfloat16)
    return graph.build(
        graph.call(p.div, shifted, graph.call(p.broadcast_in_dim, total, [8, columns], [0])), half)

def take():
    graph = ExampleGraph()
    table = graph.input(torch.randn(5, 3).half())
    index = graph.input(torch.tensor([0, -1, 4]), "i")
    return graph.build(graph.call(p.index, table, [index]))

TYPES = {torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16", torch.int64: "*i64"}
for number, module in enumerate([softmax(True), softmax(False), take()]):
    program = plan(module)
    file = Path(sys.argv[1]) / f"m{number}.py"
    file.write_text(program_source(program))
    functions = load_module(file)
    for kernel in program.kernels:
        signature = {
            q.name: TYPES[q.dtype] if isinstance(q, BufferParameter)
            else "i64" if isinstance(q, SizeParameter) else "fp32"
            for q in kernel.parameters
        }
        signature |= {"XBLOCK": "constexpr", "RBLOCK": "constexpr"}
        source = ASTSource(getattr(functions, kernel.name), signature, {"XBLOCK": 16, "RBLOCK": 16})
        made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4, **OPTIONS})
        assert ".target sm_90" in made.asm["ptx"]
        print("compiled", kernel.name)
"""


@pytest.mark.slow
def test_kernels_compile_for_cuda_90(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    environment["TRITON_CACHE_DIR"] = str(tmp_path / "triton")
    command = [sys.executable, "-W", "ignore", "-c", _PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("compiled") >= 3
