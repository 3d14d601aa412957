"""Kernels compile to PTX for an H100 or H200 on a machine without a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import re
import sys
from pathlib import Path
import torch
from triton.backends.compiler import GPUTarget
from inductor_codegen.codegen.triton.launch.sizes import choose
from inductor_codegen.codegen.triton.launch.module import load_module
from inductor_codegen.codegen.triton.launch.kernels import KernelRecord, compile_kernel
from inductor_codegen.codegen.triton.split import JOINED, PARTS
from inductor_codegen.codegen.triton.wrapper import kernels_source
from inductor_codegen.codegen.wrapper.kernel_calls import ADDED
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

def columns():
    graph = ExampleGraph()
    x = graph.input(torch.randn(80, 11))
    return graph.build(graph.call(p.sum, x, [0]), graph.call(p.argmax, x, 0))

def rounding_up_to_zero():
    graph = ExampleGraph()
    x, y = graph.input(torch.randn(80)), graph.input(torch.randn(80), "y")
    names = "fmod remainder floor_div trunc_div pow atan2 div"
    found = [graph.call(getattr(p, name), x, y) for name in names.split()]
    names = "exp exp2 expm1 log log1p log2 log10 sqrt rsqrt reciprocal floor ceil sin tan asin tanh erf sigmoid"
    return graph.build(*found, *[graph.call(getattr(p, name), x) for name in names.split()])

def transposed():
    graph = ExampleGraph()
    x, y = graph.input(torch.randn(80, 64)), graph.input(torch.randn(64, 80).t(), "y")
    return graph.build(graph.call(p.add, x, y))

made = [softmax(True), softmax(False), take(), columns(), transposed(), rounding_up_to_zero()]
for number, module in enumerate(made):
    program = plan(module)
    file = Path(sys.argv[1]) / f"m{number}.py"
    file.write_text(kernels_source(program))
    functions = load_module(file)
    for kernel in program.kernels:
        record = KernelRecord.of(kernel)
        for traits in (0, 3):
            function, target = getattr(functions, kernel.name), GPUTarget("cuda", 90, 32)
            made = compile_kernel(function, record, record.launch(3, 4), traits, target)
            assert ".target sm_90" in made.asm["ptx"]
            pattern = r"(?:add|sub|mul|fma|abs|cvt|div|ex2|sqrt)[.][a-z0-9.]*ftz[a-z0-9.]*"
            flushing = set(re.findall(pattern, made.asm["ptx"]))
            assert flushing <= {"ex2.approx.ftz.f32"}, flushing  # libdevice's own, of numbers that it has scaled
            given = made.asm["ptx"].split(".entry")[1].split(")")[0].count(".param")
            assert len(record.types) <= given <= len(record.types) + ADDED, given
        if record.cells:
            for suffix in (PARTS, JOINED):
                part = record.split(suffix)
                made = compile_kernel(getattr(functions, part.name), part, choose(8, 64, along_rows=False), 3, target)
                given = made.asm["ptx"].split(".entry")[1].split(")")[0].count(".param")
                assert len(part.types) <= given <= len(part.types) + ADDED, given
                print("compiled", part.name)
        print("compiled", kernel.name)
"""


_CONSTANTS = """
import struct
import sys
from pathlib import Path
import torch
from triton.backends.compiler import GPUTarget
from inductor_codegen.codegen.triton.launch.module import load_module
from inductor_codegen.codegen.triton.launch.kernels import KernelRecord, compile_kernel
from inductor_codegen.codegen.triton.wrapper import kernels_source
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph
from fx_interface.dialects import prims as p

dtype = getattr(torch, sys.argv[2])
numbers = torch.tensor([1e-12, 1e-30, 6e-8, 3e-5, 1e-3, 7.0, -3e4, -3e38], dtype=torch.float64).to(dtype)
numbers = [number for number in numbers.tolist() if 0 < abs(number) < float("inf")]
graph = ExampleGraph()
x = graph.input(torch.randn(64).to(dtype))
program = plan(graph.build(*[graph.call(p.maximum, x, number) for number in numbers]))
file = Path(sys.argv[1]) / "m.py"
file.write_text(kernels_source(program))
(kernel,) = program.kernels
record = KernelRecord.of(kernel)
function, target = getattr(load_module(file), kernel.name), GPUTarget("cuda", 90, 32)
text = compile_kernel(function, record, record.launch(1, 64), 0, target).asm["ptx"].lower()
for number in numbers:
    assert f"0f{struct.unpack('<I', struct.pack('<f', number))[0]:08x}" in text, number
print(len(numbers), "constants")
"""


_CONTRACTED = """
import sys
from pathlib import Path
import torch
from triton.backends.compiler import GPUTarget
from inductor_codegen.codegen.triton.launch.module import load_module
from inductor_codegen.codegen.triton.launch.kernels import KernelRecord, compile_kernel
from inductor_codegen.codegen.triton.wrapper import kernels_source
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph
from fx_interface.dialects import prims as p

dtype = getattr(torch, sys.argv[2])
graph = ExampleGraph()
x, y, z = [graph.input(torch.randn(64, dtype=dtype), name) for name in "xyz"]
neg = lambda value: graph.call(p.neg, value)
made = {
    "xy + z": lambda: graph.call(p.add, graph.call(p.mul, x, y), z),
    "xy - z": lambda: graph.call(p.sub, graph.call(p.mul, x, y), z),
    "z - xy": lambda: graph.call(p.sub, z, graph.call(p.mul, x, y)),
    "z + -(xy)": lambda: graph.call(p.add, z, neg(graph.call(p.mul, x, y))),
    "xy + -z": lambda: graph.call(p.add, graph.call(p.mul, x, y), neg(z)),
    "(-x)y + z": lambda: graph.call(p.add, graph.call(p.mul, neg(x), y), z),
    "x(-2) + z": lambda: graph.call(p.add, graph.call(p.mul, x, -2.5), z),
}
program = plan(graph.build(made[sys.argv[3]]()))
file = Path(sys.argv[1]) / "m.py"
file.write_text(kernels_source(program))
(kernel,) = program.kernels
record = KernelRecord.of(kernel)
function, target = getattr(load_module(file), kernel.name), GPUTarget("cuda", 90, 32)
print("fma." in compile_kernel(function, record, record.launch(1, 64), 0, target).asm["ptx"])
"""


_WINDOWS = """
import operator
import re
import sys
from pathlib import Path
import torch
from triton.backends.compiler import GPUTarget
from inductor_codegen.codegen.triton.launch.module import load_module
from inductor_codegen.codegen.triton.launch.kernels import KernelRecord, compile_kernel
from inductor_codegen.codegen.triton.wrapper import kernels_source
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import GpuGraph

aten = torch.ops.aten
for size in (3, 7):
    graph = GpuGraph()
    x, slope = (
        graph.input(torch.randn(2, 64, 56, 56).bfloat16().to(memory_format=torch.channels_last), name) for name in "xg"
    )
    weight = graph.input(torch.randn(64, 1, size, size).bfloat16(), "w")
    how = ([1, 1], [size // 2] * 2, [1, 1], False, [0, 0], 64)
    result = graph.call(aten.convolution.default, x, weight, None, *how)
    made = graph.call(aten.convolution_backward.default, slope, x, weight, None, *how, [True, True, False])
    program = plan(graph.build(result, *(graph.call(operator.getitem, made, place) for place in (0, 1))))
    file = Path(sys.argv[1]) / f"m{size}.py"
    file.write_text(kernels_source(program))
    functions = load_module(file)
    for kernel in program.kernels:
        record = KernelRecord.of(kernel)
        function, target = getattr(functions, kernel.name), GPUTarget("cuda", 90, 32)
        launch = record.launch(12, 6) if kernel.windows else record.launch(14, 6)
        text = compile_kernel(function, record, launch, 3, target).asm["ptx"]
        if kernel.windows or kernel.taps:
            print("windows" if kernel.windows else "taps")
            loads = re.findall(r"ld[.]global[^ ]*", text)
            wide = [one for one in loads if ".v" in one]
            assert len(wide) >= 3 * len(loads) / 4 - 9 * size, (kernel.name, loads)
            assert ".local" not in text
"""


def _run(program: str, folder: Path, *arguments: str) -> str:
    """What a process prints that compiles kernels (here they may be interpreted)."""
    pytest.importorskip("triton")
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    environment["TRITON_CACHE_DIR"] = str(folder / "triton")
    command = [sys.executable, "-W", "ignore", "-c", program, str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "count"), [("bfloat16", 8), ("float16", 5), ("float32", 8)])
def test_constants_are_the_dtypes(tmp_path: Path, dtype: str, count: int) -> None:
    """Triton makes small ones of bfloat16 by way of float16: normalized rows of zeros were NaN."""
    assert _run(_CONSTANTS, tmp_path, dtype) == f"{count} constants\n"


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "formula", ["xy + z", "xy - z", "z - xy", "z + -(xy)", "xy + -z", "(-x)y + z", "x(-2) + z"]
)
def test_a_difference_of_a_product_is_rounded_alone(tmp_path: Path, dtype: str, formula: str) -> None:
    assert _run(_CONTRACTED, tmp_path, dtype, formula) == f"{formula == 'xy + z'}\n"


@pytest.mark.slow
def test_windows_compile_to_wide_accesses(tmp_path: Path) -> None:
    """Of four channels a thread, for all but the weight, without spilling; all three kernels of 3 x 3 and of 7 x 7."""
    assert _run(_WINDOWS, tmp_path).split() == ["windows", "windows", "taps"] * 2


@pytest.mark.slow
def test_kernels_compile_for_cuda_90(tmp_path: Path) -> None:
    assert _run(_PROGRAM, tmp_path).count("compiled") >= 3
