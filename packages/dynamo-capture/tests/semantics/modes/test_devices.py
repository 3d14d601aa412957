"""What is asked about CUDA's devices, of two that are made up. (integration_tests/test_gpu.py asks real ones.)"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

import dynamo_capture
from dynamo_capture.semantics import registry
from dynamo_capture.semantics.calls import known_calls
from dynamo_capture.semantics.modes import devices

ASKED = [
    lambda: torch.cuda.get_device_capability(),
    lambda: torch.cuda.get_device_capability("cuda"),
    lambda: torch.cuda.get_device_capability(device=torch.device("cuda:1")),
    lambda: torch.cuda.get_device_name(0),
    lambda: torch.cuda.current_device(),
]


@pytest.fixture
def current(monkeypatch):
    """The number of the current one of two devices, the second of which is newer."""
    chosen = [0]

    def properties(device=None):
        number = chosen[0] if device is None else device
        return SimpleNamespace(major=8 + number, minor=0, name=f"device {number}")

    monkeypatch.setattr(devices, "_begun", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: chosen[0])
    monkeypatch.setattr(torch.cuda, "get_device_properties", properties)
    return chosen


@pytest.mark.parametrize(
    ("ask", "answers"),
    zip(
        ASKED,
        [
            ((8, 0), (9, 0)),
            ((8, 0), (9, 0)),
            ((9, 0), (9, 0)),
            ("device 0", "device 0"),
            (0, 1),
        ],
        strict=True,
    ),
)
def test_answers_are_those_of_the_current_device(current, ask, answers):
    captured = dynamo_capture.optimize("eager", fullgraph=True)(lambda x: (x + 1, ask()))
    for current[0], answer in enumerate(answers):
        for _ in range(2):
            assert captured(torch.ones(2))[1] == answer


def test_devices_of_another_kind_are_refused(current):
    def program(x):
        try:
            torch.cuda.get_device_capability("cpu")
        except ValueError as error:
            return x + 1, str(error)

    captured = dynamo_capture.optimize("eager", fullgraph=True)(program)
    assert captured(torch.ones(2))[1] == "Expected a cuda device, but got: cpu"


def test_facts_of_objects_in_cpp(monkeypatch):
    """A class that torch has without CUDA, too."""
    monkeypatch.setattr(registry, "HANDLERS", {**registry.HANDLERS})
    monkeypatch.setattr(known_calls, "HANDLERS", registry.HANDLERS)
    schema = torch._C.parse_schema("f(Tensor x, int n) -> Tensor")
    devices.declare_facts(type(schema))
    captured = dynamo_capture.optimize("eager", fullgraph=True)(
        lambda x: (x + len(schema.arguments), schema.name)
    )
    made, name = captured(torch.ones(2))
    assert made.tolist() == [3, 3]
    assert name == "f"


@pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA would begin")
def test_without_cuda():
    def program(x):
        try:
            torch.cuda.get_device_capability()
        except AssertionError as error:
            return x + torch.cuda.device_count(), torch.cuda.is_initialized(), str(error)

    x = torch.ones(2)
    made, expected = dynamo_capture.optimize("eager")(program)(x), program(x)
    assert made[1:] == expected[1:]
    assert torch.equal(made[0], expected[0])
