"""Which tiles are tried for a matrix product, and that nothing is measured where nothing can be."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from inductor_codegen.cache import ArtifactStore
from inductor_codegen.compile import chooser
from inductor_codegen.options import CodegenOptions

pytest.importorskip("triton")
from inductor_codegen.native.tuning import memory
from inductor_codegen.native.tuning.products import ProductChooser, tiles_for


@pytest.mark.parametrize("sizes", [(1, 4096, 768, 3072), (1, 1, 768, 3072), (8, 33, 64, 17)])
def test_tiles_fit_and_are_not_mostly_empty(sizes: tuple[int, int, int, int]) -> None:
    tiles = tiles_for(sizes, 2)
    assert tiles
    for one in tiles:
        assert (one.rows + one.columns) * one.between * 2 * one.stages <= 220 << 10
        assert one.rows < 2 * max(sizes[1], 16)
        assert one.columns < 2 * max(sizes[3], 16)


def test_a_product_of_two_columns_has_no_tiles() -> None:
    assert tiles_for((1, 30522, 768, 2), 2) == []


def test_nothing_is_measured_without_being_asked_for(tmp_path: Any) -> None:
    assert chooser(CodegenOptions(), ArtifactStore(tmp_path)) is None


def test_nothing_is_measured_on_a_cpu(tmp_path: Any) -> None:
    from inductor_codegen.pipeline import plan
    from inductor_codegen.testing import ExampleGraph

    graph, example = ExampleGraph(), torch.randn(64, 64).half()
    made = graph.call(torch.ops.aten.mm.default, graph.input(example), graph.input(example, "w"))
    module = graph.build(made)
    with_choice = plan(module, choose=ProductChooser(ArtifactStore(tmp_path)))
    assert with_choice.steps == plan(module).steps


def test_what_was_measured_is_remembered(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Told:
        name, multi_processor_count = "a card", 132

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Told)
    calls: list[int] = []

    def measure() -> Any:
        calls.append(1)
        return {"tiles": [64, 64, 64, 8, 4, 3]}

    device = torch.device("cuda:0")
    for _ in range(2):
        measured = memory.Measured(device, ArtifactStore(tmp_path))
        assert measured.choice("product", "a text", measure) == {"tiles": [64, 64, 64, 8, 4, 3]}
    assert len(calls) == 1
    monkeypatch.setattr(Told, "name", "another card")
    memory.Measured(device, ArtifactStore(tmp_path)).choice("product", "a text", measure)
    assert len(calls) == 2


def test_modes_of_the_program_see_nothing() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        torch.ones(4, 4) @ torch.ones(4, 4)
        with memory.unseen():
            torch.ones(64, 64) @ torch.ones(64, 64)
    assert counter.get_total_flops() == 2 * 4**3
