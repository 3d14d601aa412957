"""Models at the sizes that people use them in, for a GPU: random weights, no dropout, 5 to 50 ms a step in eager."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.image_models import DenseNet, MLPMixer, MobileNetV3, UNetBlock
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


def _t5() -> nn.Module:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(dropout_rate=0.0, use_cache=False, decoder_start_token_id=0)
    model: nn.Module = T5ForConditionalGeneration(config)
    return model


def _whisper() -> nn.Module:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        d_model=512,
        encoder_layers=6,
        decoder_layers=6,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        dropout=0.0,
        use_cache=False,
    )
    model: nn.Module = WhisperForConditionalGeneration(config)
    return model


def _sound(_: int | None) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(3)
    return {
        "input_features": torch.randn(8, 80, 3000, generator=generator),
        "labels": torch.randint(0, 51865, (8, 128), generator=generator),
    }


def _mixtral() -> nn.Module:
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        vocab_size=32000,
        hidden_size=1024,
        intermediate_size=3584,
        num_hidden_layers=6,
        num_attention_heads=16,
        num_key_value_heads=4,
        num_local_experts=8,
        use_cache=False,
    )
    model: nn.Module = MixtralForCausalLM(config)
    return model


def _gemma2() -> nn.Module:
    from transformers import Gemma2Config, Gemma2ForCausalLM

    config = Gemma2Config(
        vocab_size=32000,
        hidden_size=1152,
        intermediate_size=4608,
        num_hidden_layers=10,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=144,
        sliding_window=256,
        use_cache=False,
    )
    model: nn.Module = Gemma2ForCausalLM(config)
    return model


def _swin() -> nn.Module:
    from transformers import SwinConfig, SwinForImageClassification

    config = SwinConfig(num_labels=1000, drop_path_rate=0.0, hidden_dropout_prob=0.0)
    model: nn.Module = SwinForImageClassification(config)
    return model


def _efficientnet() -> nn.Module:
    from transformers import EfficientNetConfig, EfficientNetForImageClassification

    config = EfficientNetConfig(
        image_size=224,
        width_coefficient=1.0,
        depth_coefficient=1.0,
        hidden_dim=1280,
        dropout_rate=0.0,
        drop_connect_rate=0.0,
        num_labels=1000,
    )
    model: nn.Module = EfficientNetForImageClassification(config)
    return model


def _sequence(_: int | None) -> dict[str, Any]:
    return {"input": torch.randn(64, 256, 512, generator=torch.Generator().manual_seed(4))}


def _features(_: int | None) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(5)
    return {
        "x": torch.randn(8, 320, 64, 64, generator=generator),
        "time": torch.randn(8, 1280, generator=generator),
    }


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
        Workload("t5", _t5, _language(32128, 16, 256)),
        Workload("swin", _swin, _images(32, 224)),
        Workload("whisper", _whisper, _sound),
        Workload("mixtral", _mixtral, _language(32000, 4, 512)),
        Workload("gemma2", _gemma2, _language(32000, 4, 512)),
        Workload("mobilenet_v3", MobileNetV3, _images(64, 224, labels=False)),
        Workload("densenet", DenseNet, _images(32, 224, labels=False)),
        Workload("mixer", MLPMixer, _images(32, 224, labels=False)),
        Workload("efficientnet", _efficientnet, _images(64, 224)),
        Workload("lstm", lambda: nn.LSTM(512, 512, 2, batch_first=True), _sequence),
        Workload("unet", UNetBlock, _features),
    )
}
"""Every workload by name."""
