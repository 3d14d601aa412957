"""A model that reads where the images in its prompt are: loops over data, resumed at each graph break."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import fxstack

transformers = pytest.importorskip("transformers")
_IMAGE, _START, _END = 4, 3, 6


def _model() -> Any:
    torch.manual_seed(0)
    sections = {"type": "default", "rope_type": "default", "mrope_section": [2, 1, 1]}
    config = transformers.Qwen2VLConfig(
        text_config={
            "hidden_size": 32,
            "intermediate_size": 37,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": 99,
            "max_position_embeddings": 512,
            "rope_parameters": sections,
            "rope_scaling": sections,
            "bos_token_id": 0,
            "eos_token_id": 1,
            "pad_token_id": 2,
        },
        vision_config={"depth": 2, "embed_dim": 32, "hidden_size": 32, "mlp_ratio": 2, "num_heads": 4},
        image_token_id=_IMAGE,
        video_token_id=5,
        vision_start_token_id=_START,
        vision_end_token_id=_END,
    )
    return transformers.Qwen2VLForConditionalGeneration(config).train()


def _batch(height: int, width: int, words: int) -> dict[str, torch.Tensor]:
    """Two prompts with an image each, of so many patches."""
    row = torch.randint(10, 99, (words,)).tolist()
    ids = torch.tensor([[*row[:3], _START, *[_IMAGE] * (height * width // 4), _END, *row[3:]]] * 2)
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "pixel_values": torch.randn(2 * height * width, 3 * 2 * 14 * 14),
        "image_grid_thw": torch.tensor([[1, height, width]] * 2),
        "mm_token_type_ids": (ids == _IMAGE).long(),
        "labels": ids,
    }


def _trained(model: Any, run: Any, batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, list[Any]]:
    model.zero_grad()
    found = run(**batch)
    found.loss.backward()
    gradients = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    return found.logits.detach().clone(), [found.loss.detach(), *gradients, model.model.rope_deltas.clone()]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_qwen2_vl_with_images_of_several_sizes(backend: str) -> None:
    model = _model()
    compiled = fxstack.compile(model, backend=backend)
    for shape in ((4, 4, 9), (4, 6, 11), (8, 4, 6)):
        batch = _batch(*shape)
        logits, expected = _trained(model, model, batch)
        found, actual = _trained(model, compiled, batch)
        torch.testing.assert_close(found, logits, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5, equal_nan=True)
        assert actual[-1].lt(0).all()  # the images' places were read
