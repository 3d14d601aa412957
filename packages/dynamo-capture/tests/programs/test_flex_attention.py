"""``flex_attention`` is one region of one graph; its functions are traced once, as programs of one point."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import GraphModule, Node
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from dynamo_capture import optimize
from fx_interface.regions import REGIONS

LENGTH = 140
BIAS = torch.randn(2, 2 * LENGTH)


def causal(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return q >= kv


def biased(s: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
    return s + BIAS[h][q - kv + LENGTH]


def given() -> list[torch.Tensor]:
    return [torch.randn(1, 2, LENGTH, 8) for _ in range(3)]


class Graphs:
    """A backend that runs graphs as they are and keeps them."""

    def __init__(self) -> None:
        self.modules: list[GraphModule] = []

    def __call__(self, module: GraphModule, examples: Any) -> Callable[..., Any]:
        self.modules.append(module)
        return module.forward

    def regions(self) -> list[Node]:
        """The nodes that call regions."""
        return [node for module in self.modules for node in module.graph.nodes if node.target in REGIONS]


def agree(program: Callable[..., Any], *args: Any) -> Graphs:
    graphs = Graphs()
    found, expected = optimize(graphs, fullgraph=True)(program)(*args), program(*args)
    torch.testing.assert_close(found, expected)
    return graphs


def test_functions_become_sub_graphs_and_tensors_that_they_read_operands() -> None:
    mask = create_block_mask(causal, None, None, LENGTH, LENGTH, device="cpu")
    graphs = agree(lambda q, k, v: flex_attention(q, k, v, score_mod=biased, block_mask=mask), *given())
    (node,) = graphs.regions()
    assert REGIONS[node.target].name == "attention"  # type: ignore[index]
    assert (node.kwargs["score_args"], node.kwargs["mask_args"]) == ((0,), ())
    assert node.kwargs["block_size"] == (128, 128)
    score = graphs.modules[0].get_submodule(str(node.args[0].target))  # type: ignore[union-attr]
    assert len(score.graph.find_nodes(op="call_function", target=torch.ops.aten.index.Tensor)) == 1


def test_a_mask_made_inside_and_numbers_that_vary() -> None:
    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, reach: int, slope: float) -> Any:
        def mask(b: Any, h: Any, q: Any, kv: Any) -> Any:
            return (q >= kv) & (q - kv < reach)

        block_mask = create_block_mask(mask, None, None, q.shape[2], k.shape[2], device="cpu")
        return flex_attention(q, k, v, score_mod=lambda s, *_: s * slope, block_mask=block_mask)

    graphs = Graphs()
    run = optimize(graphs, fullgraph=True)(program)
    for reach, slope in ((10, 0.5), (20, 0.25), (30, 2.0)):
        args = (*given(), reach, slope)
        torch.testing.assert_close(run(*args), program(*args))


def test_another_mask_is_another_program() -> None:
    def attend(q: Any, k: Any, v: Any, block_mask: BlockMask) -> Any:
        return flex_attention(q, k, v, block_mask=block_mask)

    graphs = Graphs()
    run = optimize(graphs, fullgraph=True)(attend)
    tensors = given()
    for mask in (causal, lambda b, h, q, kv: kv >= q):
        made = create_block_mask(mask, None, None, LENGTH, LENGTH, device="cpu")
        torch.testing.assert_close(run(*tensors, made), attend(*tensors, made))


def test_results_besides_and_without_a_mask() -> None:
    graphs = agree(lambda q, k, v: flex_attention(q, k, v, return_lse=True, scale=0.3), *given())
    assert graphs.regions()[-1].kwargs["block_size"] is None


@pytest.mark.parametrize(
    "score",
    [
        lambda s, b, h, q, kv: s + (BIAS * 2)[h, q],
        lambda s, b, h, q, kv: s + BIAS[h].sum(),
    ],
)
def test_what_is_no_program_of_one_point_is_traced_for_all(
    score: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        graphs = agree(lambda q, k, v: flex_attention(q, k, v, score_mod=score), *given())
    assert "keeps all scores in memory" in caplog.text
    assert all(REGIONS[node.target].name == "mapped" for node in graphs.regions())  # type: ignore[index]


def test_arguments_that_torch_refuses_are_refused() -> None:
    with pytest.raises(ValueError, match="same number of heads"):
        optimize(Graphs())(lambda q, k, v: flex_attention(q, k[:, :1], v[:, :1]))(*given())
