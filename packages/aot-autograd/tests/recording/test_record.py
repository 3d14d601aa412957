"""Equal calls are one value; random ones and constants of other types are not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from aot_autograd.recording.record import Recorder, is_random
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec

aten = torch.ops.aten
SPEC = TensorSpec((2, 3), (3, 1), torch.float32, torch.device("cpu"))


@pytest.fixture
def recorder(library: Any) -> Recorder:
    return Recorder(library, ShapeEnv())


def test_equal_calls_are_one_value(recorder: Recorder) -> None:
    x = recorder.input("x", SPEC)
    assert recorder.call(aten.sin.default, (x,)) is recorder.call(aten.sin.default, (x,))
    assert recorder.call(aten.sum.dim_IntList, (x, [0])) is not recorder.call(aten.sum.dim_IntList, (x, [1]))


@pytest.mark.parametrize(("one", "two"), [(1, 1.0), (1, True), (0.0, -0.0)])
def test_constants_differ_by_type_and_sign(recorder: Recorder, one: Any, two: Any) -> None:
    x = recorder.input("x", SPEC)
    assert recorder.call(aten.mul.Tensor, (x, one)) is not recorder.call(aten.mul.Tensor, (x, two))


def test_random_calls_are_never_merged(recorder: Recorder) -> None:
    x = recorder.input("x", SPEC)
    assert is_random(aten.bernoulli.p)
    assert recorder.call(aten.bernoulli.p, (x, 0.5)) is not recorder.call(aten.bernoulli.p, (x, 0.5))


def test_a_call_that_must_be_new_is(recorder: Recorder) -> None:
    x = recorder.input("x", SPEC)
    assert recorder.call_again(aten.clone.default, (x,)) is not recorder.call_again(aten.clone.default, (x,))


def test_specs_are_inferred_once_for_equal_operands(recorder: Recorder) -> None:
    asked: list[Any] = []
    infer = recorder.operators.infer
    recorder.operators = type("Counting", (), {"infer": lambda self, *a: asked.append(a[0]) or infer(*a)})()
    x, y = recorder.input("x", SPEC), recorder.input("y", SPEC)
    assert recorder.call(aten.sin.default, (x,)).spec is recorder.call(aten.sin.default, (y,)).spec
    assert len(asked) == 1


@pytest.mark.parametrize(
    "undo",
    [
        lambda r, x: r.call(aten.t.default, (r.call(aten.t.default, (x,)),)),
        lambda r, x: r.call(aten.transpose.int, (r.call(aten.transpose.int, (x, 0, 1)), -1, 0)),
        lambda r, x: r.call(aten.view.default, (r.call(aten.view.default, (x, [6])), [2, 3])),
        lambda r, x: r.call(aten.permute.default, (r.call(aten.permute.default, (x, [1, 0])), [1, 0])),
        lambda r, x: r.call(aten.clone.default, (x,)),
        lambda r, x: r.call(aten.expand.default, (x, [2, 3])),
        lambda r, x: r.call(aten.slice.Tensor, (x, 1, 0, 99)),
        lambda r, x: r.call(aten._to_copy.default, (x,), {"dtype": torch.float32}),
    ],
)
def test_calls_that_change_nothing_are_not_recorded(recorder: Recorder, undo: Any) -> None:
    x = recorder.input("x", SPEC)
    assert undo(recorder, x) is x


def test_calls_that_change_the_layout_are(recorder: Recorder) -> None:
    x = recorder.call(aten.t.default, (recorder.input("x", SPEC),))
    copied = recorder.call(aten.clone.default, (x,), {"memory_format": torch.contiguous_format})
    assert copied is not x
    assert copied.spec.is_contiguous


def test_a_backward_that_is_given_its_seed_draws_nothing() -> None:
    assert is_random(aten._scaled_dot_product_efficient_attention.default)
    assert not is_random(aten._scaled_dot_product_efficient_attention_backward.default)
