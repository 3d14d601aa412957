"""Models at the sizes that people use them in, for a GPU: random weights, no dropout, 5 to 50 ms a step in eager."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.models import NormMLP, Workload


def _tokens(vocabulary: int, batch: int, length: int) -> Tensor:
    return torch.randint(0, vocabulary, (batch, length), generator=torch.Generator().manual_seed(length))


def _language(vocabulary: int, batch: int, length: int) -> Any:
    def inputs(other: int | None) -> dict[str, Any]:
        ids = _tokens(vocabulary, batch, other or length)
        return {"input_ids": ids, "labels": ids}

    return inputs


def _images(batch: int, size: int, labels: bool = True) -> Any:
    def inputs(_: int | None) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(1)
        made = {"pixel_values": torch.randn(batch, 3, size, size, generator=generator)}
        if labels:
            made["labels"] = torch.randint(0, 1000, (batch,), generator=generator)
        return made

    return inputs


def _gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)
    model: nn.Module = GPT2LMHeadModel(config)
    return model


def _resnet50() -> nn.Module:
    from transformers import ResNetConfig, ResNetForImageClassification

    model: nn.Module = ResNetForImageClassification(ResNetConfig(num_labels=1000))
    return model


def _llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=32000,
        hidden_size=2048,
        intermediate_size=5632,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        use_cache=False,
    )
    model: nn.Module = LlamaForCausalLM(config)
    return model


def _bert() -> nn.Module:
    from transformers import BertConfig, BertForMaskedLM

    model: nn.Module = BertForMaskedLM(BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
    return model


def _deberta() -> nn.Module:
    from transformers import DebertaV2Config, DebertaV2ForMaskedLM

    config = DebertaV2Config(
        vocab_size=50265,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        relative_attention=True,
        position_buckets=256,
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        pos_att_type=["p2c", "c2p"],
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model: nn.Module = DebertaV2ForMaskedLM(config)
    return model


def _vit() -> nn.Module:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=1000)
    model: nn.Module = ViTForImageClassification(config)
    return model


def _convnext() -> nn.Module:
    from transformers import ConvNextConfig, ConvNextForImageClassification

    model: nn.Module = ConvNextForImageClassification(ConvNextConfig(num_labels=1000))
    return model


def _mlp_inputs(length: int | None) -> dict[str, Any]:
    return {"x": torch.randn(length or 8192, 1024, generator=torch.Generator().manual_seed(2))}


GPU_WORKLOADS: dict[str, Workload] = {
    w.name: w
    for w in (
        Workload("gpt2", _gpt2, _language(50257, 8, 512)),
        Workload("resnet50", _resnet50, _images(32, 224)),
        Workload("llama", _llama, _language(32000, 4, 512)),
        Workload("bert", _bert, _language(30522, 16, 128)),
        Workload("deberta", _deberta, _language(50265, 8, 256)),
        Workload("vit", _vit, _images(32, 224)),
        Workload("convnext", _convnext, _images(32, 224)),
        Workload("mlp", lambda: NormMLP(1024, 2048), _mlp_inputs),
    )
}
"""Every workload by name."""
