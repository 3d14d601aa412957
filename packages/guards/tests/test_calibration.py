"""What was measured of this torch is usable, and a wrong measurement is noticed."""

from __future__ import annotations

import dataclasses
import logging

import pytest
import torch

import fx_guards
from fx_guards import _native, torch_bridge
from fx_guards import calibration as module
from fx_guards.kinds.state import FACTS
from fx_guards.kinds.tensor import dispatch_keys
from fx_interface.source import LocalSource


def test_this_torch_is_readable() -> None:
    found = torch_bridge.calibration()
    assert found is not None
    assert found.layout is not None
    assert set(found.readers) == set(FACTS)
    assert found.device_code(torch.device("cuda:1")) == (1, 1)
    assert found.dtype_code(torch.qint8) is None


FIELDS = [f.name for f in dataclasses.fields(module.Layout) if f.name not in ("impl", "grad_flag")]


@pytest.mark.parametrize("field", FIELDS)
def test_a_wrong_offset_turns_native_reading_off(
    field: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    right = module._find_layout()
    wrong = dataclasses.replace(right, **{field: getattr(right, field) + 8})
    monkeypatch.setattr(module, "_find_layout", lambda: wrong)
    try:
        with caplog.at_level(logging.WARNING, "fx_guards"):
            assert module.calibrate().layout is None
        assert "GRD002" in caplog.text
    finally:
        monkeypatch.undo()
        torch_bridge.calibration.cache_clear()
        found = torch_bridge.calibration()
        assert found is not None
        assert found.layout == right


def test_without_a_grad_flag_torch_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    right = module._find_layout()
    assert right.grad_flag >= 0
    monkeypatch.setattr(module, "_find_layout", lambda: dataclasses.replace(right, grad_flag=-1))
    try:
        assert module.calibrate().layout is not None
    finally:
        monkeypatch.undo()
        torch_bridge.calibration.cache_clear()
        torch_bridge.calibration()


def test_odd_tensors_are_not_plain() -> None:
    found = torch_bridge.calibration()
    assert found is not None
    assert found.is_plain(torch.Tensor, dispatch_keys(torch.zeros(2)))
    assert not found.is_plain(torch.Tensor, dispatch_keys(torch.eye(2).to_sparse()))
    assert not found.is_plain(torch.nn.Module, dispatch_keys(torch.zeros(2)))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_tensors_are_read_natively() -> None:
    found = torch_bridge.calibration()
    assert found is not None
    tensor = torch.zeros(3, 4, device="cuda", requires_grad=True)
    assert found.is_plain(torch.Tensor, dispatch_keys(tensor))
    index = torch.cuda.current_device()
    assert _native.tensor_metadata(tensor)[1:8] == (6, 1, index, True, True, (3, 4), (4, 1))
    guard = fx_guards.tensor_match(LocalSource("x"), tensor)
    evaluator = fx_guards.build([guard], varnames=("x",))
    for value in (tensor, tensor.detach(), tensor.cpu(), tensor.half(), tensor.t(), torch.zeros_like(tensor)):
        assert evaluator.check_call(dispatch_keys, value) == guard.holds(value)


def test_an_active_function_mode_does_not_keep_modes_from_being_read_natively() -> None:
    class Mode(torch.overrides.TorchFunctionMode):
        pass

    layout = torch_bridge.calibration()
    assert layout is not None
    with Mode():
        readers, _ = module._state_readers({torch.float32: 6})
    assert "torch_function_modes" in readers
