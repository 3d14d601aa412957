"""Small configurations of Hugging Face transformers with random weights, 10 to 100 ms a step in eager on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn

from fxstack_dashboard.suites.workload import Workload

_VOCABULARY = 1000


def _text(batch: int = 4, length: int = 128) -> dict[str, Any]:
    ids = torch.randint(2, _VOCABULARY, (batch, length))
    return {"input_ids": ids, "labels": ids}


def _masked_text() -> dict[str, Any]:
    given = _text()
    mask = torch.ones_like(given["input_ids"])
    mask[:, -8:] = 0
    return given | {"attention_mask": mask}


def _pairs() -> dict[str, Any]:
    return {
        "input_ids": torch.randint(2, _VOCABULARY, (4, 96)),
        "labels": torch.randint(2, _VOCABULARY, (4, 48)),
    }


def _images(size: int) -> dict[str, Any]:
    return {"pixel_values": torch.randn(4, 3, size, size), "labels": torch.randint(0, 2, (4,))}


def _images_and_text() -> dict[str, Any]:
    ids = torch.randint(2, _VOCABULARY, (4, 32))
    ids[:, -1] = _VOCABULARY - 1  # where CLIP pools
    return {"input_ids": ids, "pixel_values": torch.randn(4, 3, 64, 64), "return_loss": True}


def _speech() -> dict[str, Any]:
    return {"input_features": torch.randn(2, 80, 400), "labels": torch.randint(2, _VOCABULARY, (2, 32))}


class Row(NamedTuple):
    """A model: the class with its head, the class of its configuration, what differs from that one's defaults, and the
    inputs. ``parts``: configurations inside, by name."""

    name: str
    model: str
    config: str
    inputs: Callable[[], dict[str, Any]]
    values: Mapping[str, Any]
    parts: Mapping[str, Mapping[str, Any]] = {}


_WIDE = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
_ENCODER = _WIDE | {
    "vocab_size": _VOCABULARY,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
_DECODER = _WIDE | {
    "vocab_size": _VOCABULARY,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "use_cache": False,
    "pad_token_id": None,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
_BOTH = {
    "vocab_size": _VOCABULARY,
    "d_model": 256,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 1024,
    "decoder_ffn_dim": 1024,
    "dropout": 0.0,
    "use_cache": False,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 0,
}
_CLIP = {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 512}

TABLE = (
    Row("albert", "AlbertForMaskedLM", "AlbertConfig", _masked_text, _ENCODER | {"embedding_size": 128}),
    Row(
        "bart", "BartForConditionalGeneration", "BartConfig", _pairs, _BOTH | {"max_position_embeddings": 256}
    ),
    Row("bert", "BertForMaskedLM", "BertConfig", _masked_text, _ENCODER),
    Row(
        "clip",
        "CLIPModel",
        "CLIPConfig",
        _images_and_text,
        {"projection_dim": 64},
        {
            "text_config": _CLIP | {"vocab_size": _VOCABULARY, "eos_token_id": _VOCABULARY - 1},
            "vision_config": _CLIP | {"image_size": 64, "patch_size": 16},
        },
    ),
    Row(
        "convnext",
        "ConvNextForImageClassification",
        "ConvNextConfig",
        partial(_images, 96),
        {"hidden_sizes": [32, 64, 128, 256], "depths": [1, 1, 3, 1]},
    ),
    Row(
        "distilbert",
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        _masked_text,
        {
            "vocab_size": _VOCABULARY,
            "dim": 256,
            "n_layers": 4,
            "n_heads": 4,
            "hidden_dim": 1024,
            "dropout": 0.0,
            "attention_dropout": 0.0,
        },
    ),
    Row(
        "gpt2",
        "GPT2LMHeadModel",
        "GPT2Config",
        _text,
        {
            "vocab_size": _VOCABULARY,
            "n_embd": 256,
            "n_layer": 4,
            "n_head": 4,
            "resid_pdrop": 0.0,
            "embd_pdrop": 0.0,
            "attn_pdrop": 0.0,
            "use_cache": False,
            "bos_token_id": 0,
            "eos_token_id": 1,
        },
    ),
    Row("llama", "LlamaForCausalLM", "LlamaConfig", _text, _DECODER),
    Row("qwen3", "Qwen3ForCausalLM", "Qwen3Config", _text, _DECODER | {"head_dim": 64}),
    Row(
        "resnet",
        "ResNetForImageClassification",
        "ResNetConfig",
        partial(_images, 112),
        {
            "embedding_size": 32,
            "hidden_sizes": [64, 128, 256, 512],
            "depths": [2, 2, 2, 2],
            "layer_type": "basic",
        },
    ),
    Row(
        "swin",
        "SwinForImageClassification",
        "SwinConfig",
        partial(_images, 96),
        {
            "image_size": 96,
            "embed_dim": 48,
            "depths": [2, 2, 2],
            "num_heads": [2, 4, 8],
            "window_size": 6,
            "drop_path_rate": 0.0,
        },
    ),
    Row(
        "t5",
        "T5ForConditionalGeneration",
        "T5Config",
        _pairs,
        {
            "vocab_size": _VOCABULARY,
            "d_model": 256,
            "d_kv": 64,
            "d_ff": 1024,
            "num_layers": 3,
            "num_heads": 4,
            "dropout_rate": 0.0,
            "use_cache": False,
            "decoder_start_token_id": 0,
            "feed_forward_proj": "gated-gelu",
        },
    ),
    Row(
        "vit",
        "ViTForImageClassification",
        "ViTConfig",
        partial(_images, 128),
        _WIDE | {"image_size": 128, "patch_size": 16},
    ),
    Row(
        "whisper",
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        _speech,
        _BOTH | {"max_source_positions": 200, "max_target_positions": 64, "num_mel_bins": 80},
    ),
)
"""The suite, by name."""


def _make(row: Row) -> nn.Module:
    import transformers

    values = dict(row.values)
    for name, part in row.parts.items():
        values[name] = dict(part)
    config = getattr(transformers, row.config)(**values)
    module: nn.Module = getattr(transformers, row.model)(config)
    return module


def workloads() -> list[Workload]:
    """The suite."""
    return [Workload(row.name, partial(_make, row), row.inputs) for row in TABLE]
