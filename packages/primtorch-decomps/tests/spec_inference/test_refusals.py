"""Dtypes that eager's kernels refuse are refused, whatever a decomposition could make of them."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps import LIBRARY
from primtorch_decomps.spec_inference import refusals
from primtorch_decomps.spec_inference.library import Library

ATEN = torch.ops.aten
INTEGERS = torch.arange(6).view(2, 3)
CALLS: list[tuple[Any, tuple[Any, ...]]] = [
    (ATEN.gelu.default, (INTEGERS,)),
    (ATEN.neg.default, (INTEGERS > 2,)),
    (ATEN.sub.Tensor, (INTEGERS > 2, INTEGERS > 1)),
    (ATEN._softmax.default, (INTEGERS, 0, False)),
    (ATEN.add.Tensor, (INTEGERS, INTEGERS, 0.5)),
    (ATEN.where.self, (INTEGERS, INTEGERS, INTEGERS)),
    (ATEN.index.Tensor, (torch.ones(3), [torch.ones(2)])),
    (ATEN.embedding.default, (torch.ones(3, 2), torch.ones(2))),
    (ATEN.fill.Tensor, (torch.ones(3), torch.ones(2))),
    (ATEN.clamp.default, (torch.ones(3),)),
    (ATEN.positive.default, (INTEGERS > 2,)),
    (ATEN.native_layer_norm.default, (INTEGERS, [3], None, None, 1e-5)),
    (ATEN.scalar_tensor.default, (1e39,)),
    (ATEN.full.default, ([3], 1e39)),
    (ATEN.where.ScalarOther, (INTEGERS > 2, torch.ones(2, 3), 1e39)),
    (ATEN.fill.Scalar, (torch.ones(70, 70), 1e39)),
    (ATEN.sort.default, (torch.ones(2, 2) * 1j,)),
    (ATEN.topk.default, (torch.ones(3) * 1j, 1)),
    (ATEN.cummax.default, (torch.ones(3) * 1j, 0)),
    (ATEN.kthvalue.default, (torch.ones(3) > 0, 1)),
    (ATEN.linalg_inv_ex.default, (torch.ones(2, 2).half(),)),
    (ATEN._cdist_forward.default, (INTEGERS, INTEGERS, 2.0, None)),
    (ATEN.im2col.default, (INTEGERS[None, None], [2, 2], [1, 1], [0, 0], [1, 1])),
]


def _infer(op: Any, args: tuple[Any, ...]) -> Any:
    if "alpha" in str(op._schema) and len(args) > 2:
        return LIBRARY.infer(op, _specs(args[:2]), {"alpha": args[2]}, ShapeEnv())
    return LIBRARY.infer(op, _specs(args), {}, ShapeEnv())


def _specs(args: Any) -> list[Any]:
    return [
        TensorSpec(tuple(a.shape), a.stride(), a.dtype, a.device)
        if isinstance(a, torch.Tensor)
        else _specs(a)
        if isinstance(a, list) and a and isinstance(a[0], torch.Tensor)
        else a
        for a in args
    ]


@pytest.mark.parametrize(("op", "args"), CALLS, ids=lambda value: str(value) if callable(value) else "")
def test_what_the_kernel_refuses(op: Any, args: tuple[Any, ...]) -> None:
    with pytest.raises((RuntimeError, IndexError)) as expected:
        op(*args[:2], alpha=args[2]) if op is ATEN.add.Tensor else op(*args)
    with pytest.raises(type(expected.value)):
        _infer(op, args)


def test_views_are_not_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(LIBRARY.decompositions, LIBRARY.rules)
    monkeypatch.setattr(refusals, "_takes", lambda *args: pytest.fail("a kernel was asked"))
    specs = _specs([INTEGERS])
    for op, *args in ((ATEN.view.default, [6]), (ATEN.t.default,), (ATEN.expand.default, [2, 2, 3])):
        library.infer(op, (*specs, *args), {}, ShapeEnv())


def test_what_only_another_kernel_can_fill_is_not_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel of a backward believes its forward's workspace: of zeros it would read memory that is not its own."""
    asked = []
    monkeypatch.setattr(refusals, "_takes", lambda op, *rest: asked.append(op) or True)
    x, hidden, weights = torch.ones(5, 3, 4), torch.ones(3, 6), (torch.ones(24, 4), torch.ones(24, 6))
    biases, workspace = (torch.ones(24), torch.ones(24)), torch.ones(100, dtype=torch.uint8)
    options = (False, 2, 6, 1, True, True, False, [], False)
    layer, output = (x, *weights, *biases, hidden, hidden), torch.ones(5, 3, 6)
    given = (*layer, output, hidden, hidden, output, None, None, *options, workspace)
    refusals.Kernels().check(ATEN.mkldnn_rnn_layer_backward.default, _specs(given), {}, ShapeEnv())
    assert asked == []
    refusals.Kernels().check(ATEN.gelu.default, _specs([x]), {}, ShapeEnv())
    assert asked == [ATEN.gelu.default]


def test_sizes_stay_open() -> None:
    env = ShapeEnv()
    size = env.create_symbol(7, low=2)
    spec = TensorSpec((size, 3), (3, 1), torch.int64, torch.device("cpu"))
    assert LIBRARY.infer(ATEN.add.Tensor, (spec, spec), {}, env).sizes == (size, 3)
    with pytest.raises(NotImplementedError):
        LIBRARY.infer(ATEN.silu.default, (spec,), {}, env)
    assert not env.replacements


def test_large_tensors_are_not_made() -> None:
    huge = TensorSpec((1 << 30, 1 << 20), (1 << 20, 1), torch.int64, torch.device("cpu"))
    assert LIBRARY.infer(ATEN.mul.Tensor, (huge, huge), {}, ShapeEnv()).dtype is torch.int64
    with pytest.raises(NotImplementedError):
        LIBRARY.infer(ATEN.silu.default, (huge,), {}, ShapeEnv())


class _Held:
    """What the frame has that asks."""


def _divides(held: _Held) -> bool:
    """A kernel that refuses zeros, and takes ones."""
    spec = TensorSpec((3,), (1,), torch.int64, torch.device("cpu"))
    return refusals._takes_now(ATEN.floor_divide.default, (spec, spec), {}, (spec, spec), ShapeEnv())


def test_a_refusal_that_does_not_count_leaves_no_frames() -> None:
    given = _Held()
    held = weakref.ref(given)
    gc.disable()
    try:
        assert _divides(given)
        del given
        assert held() is None
    finally:
        gc.enable()


def test_what_depends_on_the_numbers_is_not_refused() -> None:
    spec = TensorSpec((3,), (1,), torch.int64, torch.device("cpu"))
    assert LIBRARY.infer(ATEN.floor_divide.default, (spec, spec), {}, ShapeEnv()) == spec


def test_a_number_that_was_taken_does_not_speak_for_larger_ones() -> None:
    library = Library(LIBRARY.decompositions, LIBRARY.rules)
    spec = TensorSpec((3,), (1,), torch.float16, torch.device("cpu"))
    env = ShapeEnv()
    library.infer(ATEN.fill.Scalar, (spec, 1e4), {}, env)
    with pytest.raises(RuntimeError, match="overflow"):
        library.infer(ATEN.fill.Scalar, (spec, 1e6), {}, env)
    library.infer(ATEN.scalar_tensor.default, (100,), {"dtype": torch.int8}, env)
    with pytest.raises(RuntimeError, match="overflow"):
        library.infer(ATEN.scalar_tensor.default, (300,), {"dtype": torch.int8}, env)


MADE: list[tuple[Any, tuple[Any, ...], torch.dtype]] = [
    (ATEN.arange.default, (3,), torch.bool),
    (ATEN.arange.start_step, (0, 5, 2), torch.complex64),
    (ATEN.linspace.default, (0, 1, 3), torch.bool),
    (ATEN.randperm.default, (3,), torch.bool),
    (ATEN.rand.default, ([3],), torch.int64),
    (ATEN.randint.low, (0, 3, [3]), torch.bool),
]


@pytest.mark.parametrize(("op", "args", "dtype"), MADE, ids=str)
def test_what_is_made_of_numbers_alone_needs_a_kernel_for_its_dtype(
    op: Any, args: tuple[Any, ...], dtype: torch.dtype
) -> None:
    with pytest.raises(RuntimeError) as told:
        op(*args, dtype=dtype)
    with pytest.raises(type(told.value)) as found:
        LIBRARY.infer(op, args, {"dtype": dtype, "device": torch.device("cpu")}, ShapeEnv())
    assert str(found.value) == str(told.value)


def test_a_gpu_is_asked_about_what_does_not_look_at_content(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(refusals, "_takes", lambda op, *args: asked.append(op) or True)
    for free in (False, True):
        monkeypatch.setattr(refusals, "_has_free_gpu", lambda free=free: free)
        library = Library(LIBRARY.decompositions, LIBRARY.rules)
        spec = TensorSpec((3,), (1,), torch.bool, torch.device("cuda", 0))
        index = TensorSpec((2,), (1,), torch.int64, torch.device("cuda", 0))
        library.infer(ATEN.relu.default, (spec,), {}, ShapeEnv())
        library.infer(ATEN.index_select.default, (spec, 0, index), {}, ShapeEnv())
        library.infer(ATEN.bernoulli.p, (spec, 0.5), {}, ShapeEnv())
        assert asked == [ATEN.relu.default] * free


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_refuses() -> None:
    value = torch.ones(3, dtype=torch.bool, device="cuda")
    with pytest.raises(RuntimeError, match="Boolean inputs not supported"):
        LIBRARY.infer(ATEN.relu.default, _specs((value,)), {}, ShapeEnv())


def test_asking_draws_no_random_number() -> None:
    state = torch.get_rng_state()
    library = Library(LIBRARY.decompositions, LIBRARY.rules)
    options = {"dtype": torch.float32, "device": torch.device("cpu")}
    library.infer(ATEN.rand.default, ([3],), options, ShapeEnv())
    library.infer(ATEN.uniform.default, _specs((torch.ones(3),)), {}, ShapeEnv())
    with pytest.raises(NotImplementedError, match="check_uniform_bounds"):
        library.infer(ATEN.uniform.default, _specs((INTEGERS,)), {}, ShapeEnv())
    assert torch.equal(state, torch.get_rng_state())
