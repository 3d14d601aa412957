"""Compiled graphs as callables: calls, results, errors and what is left behind by them."""

from __future__ import annotations

import gc
import tempfile
import threading
import weakref
from pathlib import Path

import pytest
import torch

from inductor_codegen.native_errors import ArtifactLoadError
from inductor_codegen.runtime import CompiledGraph, GraphRecord, OperatorCall, Slot, SlotKind, load
from inductor_codegen.runtime.binding import calibrate, exports
from inductor_codegen.toolchain.cpp_compiler import ENTRY_FLAGS, Unit, find_compiler
from inductor_codegen.toolchain.shared_libraries import build_library
from inductor_codegen.trusted import open_folder

PROLOGUE = """
#include <stdint.h>
#include <string.h>
typedef void* H;
static int32_t (*empty_strided)(int64_t, const int64_t*, const int64_t*, int32_t, int32_t, int32_t, H*);
static int32_t (*new_handle)(H, H*);
static int32_t (*data_ptr)(H, void**);
static int32_t (*mm_out)(H, H, H);
static int32_t (*product)(H, H, H, H);
static int32_t (*check)(const H*, const int64_t*, int64_t);
static int32_t (*call)(void*, int64_t, const H*, int64_t, const int64_t*, int64_t, H*, int64_t);
static H (*take)(void*, int64_t);
static void (*give)(void*, H);
extern "C" {
__attribute__((visibility("default"))) extern const int32_t fx_abi = 4;
__attribute__((visibility("default"))) int32_t fx_bind(void* (*lookup)(const char*), const char** missing) {
    if (!(empty_strided = (decltype(empty_strided))lookup(*missing = "aoti_torch_empty_strided"))) return 1;
    if (!(new_handle = (decltype(new_handle))lookup(*missing = "aoti_torch_new_tensor_handle"))) return 1;
    if (!(data_ptr = (decltype(data_ptr))lookup(*missing = "aoti_torch_get_data_ptr"))) return 1;
    if (!(mm_out = (decltype(mm_out))lookup(*missing = "aoti_torch_cpu_mm_out"))) return 1;
    if (!(product = (decltype(product))lookup(*missing = "fx_product"))) return 1;
    if (!(check = (decltype(check))lookup(*missing = "fx_check_inputs"))) return 1;
    if (!(call = (decltype(call))lookup(*missing = "fx_call_operator"))) return 1;
    if (!(take = (decltype(take))lookup(*missing = "fx_scratch_take"))) return 1;
    if (!(give = (decltype(give))lookup(*missing = "fx_scratch_give"))) return 1;
    return 0;
}
__attribute__((visibility("default"))) int32_t fx_entry(
    void* graph, const H* in, const int64_t* numbers, H* out, int64_t* out_numbers) {
"""
EPILOGUE = "    return 0;\n}\n}\n"

DOUBLE = """
    const int64_t expected[] = {6, 0, -1, 2, 4, 8, 8, 1};
    if (int32_t code = check(in, expected, 1)) return code;
    if (empty_strided(2, expected + 4, expected + 6, 6, 0, -1, &out[0])) return 1;
    void *from, *to;
    if (data_ptr(in[0], &from) || data_ptr(out[0], &to)) return 1;
    for (int i = 0; i < 32; i++) ((float*)to)[i] = 2 * ((float*)from)[i];
"""
MATMUL = """
    const int64_t sizes[] = {numbers[0], numbers[0]}, strides[] = {numbers[0], 1};
    if (empty_strided(2, sizes, strides, 6, 0, -1, &out[0])) return 1;
    if (mm_out(out[0], in[0], in[1])) return 1;
    out_numbers[0] = numbers[0] * 3;
    memcpy(&out_numbers[1], &numbers[1], 8);
    if (new_handle(in[0], &out[1])) return 1;
"""
PRODUCT = """
    const int64_t sizes[] = {48, 80}, strides[] = {80, 1};
    if (empty_strided(2, sizes, strides, 6, 0, -1, &out[0])) return 1;
    out_numbers[0] = product(out[0], in[0], in[1], in[2]);
"""
TOPK = """
    H got[2] = {0, 0};
    int32_t code = call(graph, 0, in, 1, numbers, 2, got, 2);
    out[0] = got[0];
    out[1] = got[1];
    if (code) return code;
"""
SCRATCH = """
    H scratch = take(graph, numbers[0]);
    void* memory;
    if (!scratch || data_ptr(scratch, &memory)) return 1;
    out_numbers[0] = (int64_t)memory;
    out_numbers[1] = (int64_t)memory % 64;
    give(graph, scratch);
"""


def make(
    folder: Path,
    body: str,
    inputs: str,
    outputs: str,
    *operators: OperatorCall,
    release_gil: bool = False,
    scratch_limit: int = 1 << 20,
) -> CompiledGraph:
    unit = Unit("entry", PROLOGUE + body + EPILOGUE, ENTRY_FLAGS)
    folder = Path(tempfile.mkdtemp(dir=folder))
    record = GraphRecord("ab", inputs, outputs, operators, release_gil, scratch_limit)
    build_library(find_compiler(), [unit], open_folder(folder))
    return load(record, folder / "graph.so")


@pytest.fixture(params=[True, False], ids=["slot", "attribute"])
def slot(request: pytest.FixtureRequest) -> object:
    """Both ways to a tensor: by the calibrated offset, and by asking the object."""
    assert (calibrate(use_slot=request.param) >= 0) == request.param
    yield
    calibrate()


@pytest.mark.usefixtures("slot")
@pytest.mark.parametrize("release_gil", [False, True])
def test_computes_and_wraps(tmp_path: Path, release_gil: bool) -> None:
    graph = make(tmp_path, DOUBLE, "t", "t", release_gil=release_gil)
    x = torch.randn(4, 8, requires_grad=True)
    (y,) = graph(x)
    assert torch.equal(y, 2 * x)
    assert not y.requires_grad
    assert torch.is_grad_enabled()
    assert graph.artifact_key == "ab"
    (z,) = graph(torch.nn.Parameter(x.detach()))
    assert torch.equal(z, y)


@pytest.mark.usefixtures("slot")
def test_numbers_identity_and_library_calls(tmp_path: Path) -> None:
    graph = make(tmp_path, MATMUL, "tiutf", "tinft")
    a, b = torch.randn(3, 3, requires_grad=True), torch.randn(3, 3)
    product, tripled, nothing, number, same = graph(a, 3, object(), b, 0.5)
    torch.testing.assert_close(product, (a @ b).detach())
    assert not product.requires_grad
    assert (tripled, nothing, number) == (9, None, 0.5)
    assert same is a


def test_a_wrong_call_is_an_error_not_a_crash(tmp_path: Path) -> None:
    graph = make(tmp_path, DOUBLE, "t", "t")
    with pytest.raises(TypeError, match="1 inputs was called with 2"):
        graph(torch.ones(4, 8), 1)
    with pytest.raises(TypeError, match="keyword"):
        graph(x=torch.ones(4, 8))
    with pytest.raises(TypeError, match=r"expected a torch\.Tensor, got int"):
        graph(3)
    for wrong in (torch.ones(4, 9), torch.ones(8, 4).t(), torch.ones(4, 8).double(), torch.ones(4, 8, 1)):
        with pytest.raises(ValueError, match="IND301"):
            graph(wrong)
    with pytest.raises(ValueError, match="IND301"):
        graph(torch.ones(4, 8, device="meta"))
    assert graph(torch.ones(4, 8))[0].sum() == 64


def test_a_library_error_becomes_a_python_error(tmp_path: Path) -> None:
    graph = make(tmp_path, MATMUL, "tiutf", "tinft")
    told = exports(
        "torch_exception_get_what_without_backtrace"
    )  # since torch 2.13; older ones log the reason
    reason = (
        "shapes cannot be multiplied" if told else "failed in torch; this version of torch wrote the reason"
    )
    with pytest.raises(RuntimeError, match=reason):
        graph(torch.randn(3, 4), 3, None, torch.randn(3, 3), 0.0)
    assert torch.is_grad_enabled()


def test_products_are_computed_or_left_to_the_caller(tmp_path: Path) -> None:
    graph = make(tmp_path, PRODUCT, "ttt", "ti")
    row, lhs, rhs = torch.randn(80), torch.randn(48, 32), torch.randn(80, 32).t()
    result, refused = graph(row, lhs, rhs)
    if not refused:
        torch.testing.assert_close(result, row + lhs @ rhs)
        assert torch.equal(graph(row, lhs, rhs)[0], result)
    assert graph(row, lhs, torch.randn(31, 80))[1] == 1  # sizes that do not fit raise in C++
    with torch.backends.mkldnn.flags(enabled=False):
        assert graph(row, lhs, rhs)[1] == 1
    assert graph(row, lhs, rhs)[1] == refused


def test_operators_through_python(tmp_path: Path) -> None:
    call = OperatorCall(
        torch.ops.aten.topk.default,
        (Slot(SlotKind.TENSOR, 0), Slot(SlotKind.INT, 1)),
        (("largest", False),),
        2,
    )
    restored = OperatorCall.from_data(call.to_data())
    assert restored.bind()(torch.tensor([3.0, 1.0, 2.0]), 2, 0)[0].tolist() == [1.0, 2.0]
    for release_gil in (False, True):
        graph = make(tmp_path, TOPK, "tii", "tt", restored, release_gil=release_gil)
        values, indices = graph(torch.tensor([3.0, 1.0, 2.0], requires_grad=True), 2, 0)
        assert values.tolist() == [1.0, 2.0]
        assert indices.tolist() == [1, 2]
        assert not values.requires_grad
        with pytest.raises(RuntimeError, match="selected index k out of range"):
            graph(torch.ones(2), 7, 0)
        with pytest.raises(IndexError):
            make(tmp_path, TOPK, "tii", "tt", OperatorCall(torch.ops.aten.topk.default, (
                Slot(SlotKind.TENSOR, 0), 1, Slot(SlotKind.INT, 1)), (), 2))(torch.ones(2), 5, 0)  # fmt: skip


def test_a_float_arrives_as_a_float() -> None:
    call = OperatorCall(torch.ops.aten.mul.Scalar, (Slot(SlotKind.TENSOR, 0), Slot(SlotKind.FLOAT, 1)), (), 1)
    bits = torch.tensor([2.5], dtype=torch.float64).view(torch.int64).item()
    assert call.bind()(torch.ones(2), bits)[0].tolist() == [2.5, 2.5]


def test_scratch_memory_is_kept_up_to_its_limit(tmp_path: Path) -> None:
    graph = make(tmp_path, SCRATCH, "i", "ii", scratch_limit=1 << 30)
    first, misalignment = graph(4096)
    assert misalignment == 0
    assert graph(4096)[0] == first
    assert graph(64)[0] == first
    unkept = make(tmp_path, SCRATCH, "i", "ii", scratch_limit=10)
    assert unkept(4096)[1] == 0


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_nothing_leaks_on_any_path(tmp_path: Path) -> None:
    call = OperatorCall(torch.ops.aten.topk.default, (Slot(SlotKind.TENSOR, 0), Slot(SlotKind.INT, 1)), (), 2)
    matmul = make(tmp_path, MATMUL, "tiutf", "tinft")
    topk = make(tmp_path, TOPK, "tii", "tt", call)
    big, wrong = torch.randn(128, 128), torch.randn(7, 128)

    def once() -> None:
        matmul(big, 128, None, big, 0.0)
        topk(big, 2, 0)
        with pytest.raises(RuntimeError):
            matmul(big, 128, None, wrong, 0.0)
        with pytest.raises(TypeError):
            matmul(big, 128, None, "not a tensor", 0.0)
        with pytest.raises(RuntimeError):
            topk(big, 1000, 0)

    for _ in range(20):
        once()
    before = _resident_bytes()
    for _ in range(300):
        once()
    # 300 leaked results would be 19 MB
    assert _resident_bytes() - before < 4 << 20


def test_a_graph_dies_with_its_last_reference(tmp_path: Path) -> None:
    graph = make(tmp_path, DOUBLE, "t", "t")
    reference = weakref.ref(graph)
    argument = torch.ones(4, 8)
    watch = weakref.ref(argument)
    graph(argument)
    del graph, argument
    gc.collect()
    assert reference() is None
    assert watch() is None


def test_several_threads_call_one_graph(tmp_path: Path) -> None:
    graph = make(tmp_path, DOUBLE, "t", "t", release_gil=True)
    bad: list[int] = []

    def work(seed: int) -> None:
        x = torch.full((4, 8), float(seed))
        for _ in range(2000):
            if not torch.equal(graph(x)[0], x + x):
                bad.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not bad


def test_the_record_survives_json() -> None:
    call = OperatorCall(torch.ops.aten.topk.default, (Slot(SlotKind.TENSOR, 0), 2), (("largest", False),), 2)
    record = GraphRecord("ab12", "tifu", "tifn", (call,), True, 5)
    assert GraphRecord.from_data(record.to_data()) == record
    with pytest.raises(ArtifactLoadError, match="IND401"):
        GraphRecord.from_data({**record.to_data(), "abi": 0})
    with pytest.raises(ArtifactLoadError, match="IND401"):
        GraphRecord.from_data({})


def test_a_library_that_is_none_of_ours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactLoadError, match="IND401"):
        load(GraphRecord("ab", "", ""), tmp_path / "absent.so")
    unit = Unit("other", "int unrelated;\n", ENTRY_FLAGS)
    build_library(find_compiler(), [unit], open_folder(tmp_path))
    with pytest.raises(ArtifactLoadError, match="not a compiled graph of this version"):
        load(GraphRecord("ab", "", ""), tmp_path / "graph.so")
