"""Processes that compile kernels beside this one, and what happens where they cannot."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from fx_interface.dialects import prims as p
from fx_interface.symbols import ShapeEnv
from inductor_codegen.codegen.triton.launch.kernels import KernelRecord
from inductor_codegen.codegen.triton.wrapper import kernels_source
from inductor_codegen.ir.program import Program
from inductor_codegen.native import parallel_kernels
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import GpuGraph
from inductor_codegen.toolchain import kernel_processes, kernel_worker

pytest.importorskip("triton")
SM_90 = ("cuda", 90, 32)


@pytest.fixture(autouse=True)
def pool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """Two processes of this test's own, with an empty cache."""
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.setattr(kernel_processes, "processors", lambda: 2)
    monkeypatch.setattr(kernel_processes, "FEWEST_JOBS", 1)
    monkeypatch.setattr(kernel_processes, "_POOL", kernel_processes._Pool())
    yield kernel_processes._POOL
    kernel_processes._POOL.end()


def program_of(*sizes: int) -> Program:
    """A sum of columns that is split, one that is not, and a pointwise kernel."""
    graph = GpuGraph()
    x = graph.input(torch.randn(1 << 14, 48))
    total = graph.call(p.sum, x, [0])
    rows = graph.call(p.sum, graph.call(p.exp, x), [1])
    return plan(graph.build(total, rows, graph.call(p.sin, x)))


def jobs_of(program: Program) -> list[kernel_processes.Job]:
    records = [KernelRecord.of(kernel) for kernel in program.kernels]
    launches = parallel_kernels.launches_of(program, program.kernels, ShapeEnv())
    return [job for launch in launches for _, job in parallel_kernels._jobs(records, launch)]


def compiled_in(folder: Path) -> set[Path]:
    return {file for file in folder.rglob("*.cubin") if file.name != "begin.cubin"}


def test_kernels_are_found_in_the_cache(tmp_path: Path) -> None:
    """That a launch finds them there is tested on a GPU (``integration_tests/test_gpu.py``)."""
    program = program_of()
    jobs = jobs_of(program)
    assert {job["function"].rpartition("_")[2] for job in jobs} >= {"parts", "joined"}
    with kernel_processes.compile_beside(kernels_source(program), "k.py", jobs, SM_90) as batch:
        batch.wait()
    assert len(compiled_in(tmp_path / "triton")) == len(jobs)


def test_images_are_those_of_the_jobs(tmp_path: Path) -> None:
    program = program_of()
    jobs = jobs_of(program)
    with kernel_processes.compile_beside(kernels_source(program), "k.py", jobs, SM_90) as batch:
        batch.wait()
    assert sorted(batch.images) == list(range(len(jobs)))
    for place, job in enumerate(jobs):
        image = batch.images[place]
        assert image.name == job["function"]
        assert image.threads == 32 * job["options"]["num_warps"]
        assert image.content.startswith(b"\x7fELF")
        assert job["function"].encode() in image.content
    kept = {file.read_bytes() for file in compiled_in(tmp_path / "triton")}
    assert {image.content for image in batch.images.values()} == kept


def test_prepared_processes_do_the_work(pool: Any) -> None:
    kernel_processes.prepare(7, SM_90)
    ready = list(pool._processes)
    assert len(ready) == 2
    program = program_of()
    with kernel_processes.compile_beside(kernels_source(program), "k.py", jobs_of(program), SM_90) as batch:
        assert set(batch._processes) <= set(ready)
        batch.wait()
    assert batch.images


def test_processes_are_used_again(pool: Any) -> None:
    program = program_of()
    for _ in range(2):
        with kernel_processes.compile_beside(
            kernels_source(program), "k.py", jobs_of(program), SM_90
        ) as batch:
            batch.wait()
        found = list(pool._processes)
    assert found == pool._processes
    assert len(found) == 2
    assert all(process.is_alive for process in found)


def test_several_batches_at_once(pool: Any) -> None:
    program, other_program = program_of(), program_of()
    jobs = jobs_of(program)
    with (
        kernel_processes.compile_beside(kernels_source(program), "k.py", jobs, SM_90) as one,
        kernel_processes.compile_beside(kernels_source(other_program), "l.py", jobs, SM_90) as other,
    ):
        assert set(one._processes) == set(other._processes)
        other.wait()
        assert len(other.images) == len(jobs)
        one.wait()
    assert len(one.images) == len(jobs)


def test_a_batch_that_nobody_waits_for_is_passed_over(pool: Any) -> None:
    program = program_of()
    jobs = jobs_of(program)
    with kernel_processes.compile_beside(kernels_source(program), "k.py", jobs, SM_90):
        pass
    with kernel_processes.compile_beside(kernels_source(program), "k.py", jobs, SM_90) as batch:
        batch.wait()
    assert len(batch.images) == len(jobs)


def test_a_kernel_that_cannot_be_compiled_is_passed_over(tmp_path: Path) -> None:
    program = program_of()
    jobs = jobs_of(program)
    missing = {**jobs[0], "function": "missing"}
    with kernel_processes.compile_beside(kernels_source(program), "k.py", [missing, *jobs], SM_90) as batch:
        batch.wait()
    assert len(compiled_in(tmp_path / "triton")) == len(jobs)


def test_processes_that_end_are_left_out(pool: Any) -> None:
    program = program_of()
    with kernel_processes.compile_beside(kernels_source(program), "k.py", jobs_of(program), SM_90) as batch:
        for process in batch._processes:
            process._process.kill()
        batch.wait()
    with kernel_processes.compile_beside(kernels_source(program), "k.py", jobs_of(program), SM_90) as batch:
        batch.wait()
        assert len(batch._processes) == 2


def test_processes_that_say_nothing_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_processes, "_SILENCE", 0.2)
    monkeypatch.setattr(kernel_worker, "__file__", os.devnull)
    silent = [sys.executable, "-c", "import time; time.sleep(60)"]
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: start(silent, **options))
    program = program_of()
    with kernel_processes.compile_beside(kernels_source(program), "k.py", jobs_of(program), SM_90) as batch:
        processes = list(batch._processes)
        batch.wait()
    assert processes
    assert not any(process.is_alive for process in processes)


def test_a_program_with_many_open_files(tmp_path: Path) -> None:
    """``select`` takes no descriptor from 1024 on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1200:
        pytest.skip("no more than 1,200 files may be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        program = program_of()
        jobs = jobs_of(program)
        with kernel_processes.compile_beside(kernels_source(program), "k.py", jobs, SM_90) as batch:
            assert batch._processes
            batch.wait()
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(compiled_in(tmp_path / "triton")) == len(jobs)


def test_without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    program = program_of()
    with kernel_processes.compile_beside(kernels_source(program), "k.py", jobs_of(program), SM_90) as batch:
        assert not batch._processes
        batch.wait()


def test_a_process_ends_when_nothing_comes() -> None:
    script = (
        "import runpy, sys; worker = runpy.run_path(sys.argv[1]); main = worker['main']; "
        "main.__globals__['IDLE_SECONDS'] = 0.1; main()"
    )
    command = [sys.executable, "-c", script, kernel_worker.__file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"path": ["/nowhere"]}\n')
        process.stdin.flush()
        assert process.wait(30) == 0


def test_functions_of_a_module_are_made_when_they_are_asked_for() -> None:
    text = """import triton

FACTOR = 3


@triton.jit
def helper(x):
    return x * FACTOR


@triton.jit
def one(x):
    return helper(x)


@triton.jit
def two(x):
    return one.never
"""
    found = kernel_worker.functions_of(text)
    assert {name: line for name, (line, _) in found.items()} == {"helper": 6, "one": 11, "two": 16}
    module = kernel_worker._module(text, "somewhere.py", ["one", "two"])
    assert "one" not in vars(module)
    assert "helper" in vars(module)
    assert module.one.starting_line_number == 11
    assert module.one is module.one
    assert "two" not in vars(module)
    with pytest.raises(AttributeError):
        _ = module.three
