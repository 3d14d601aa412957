"""The models that demo, bench and integration tests share: small, with random weights, 10-100 ms a step in eager."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Workload:
    """A model and its inputs. ``inputs(length)`` makes keyword arguments for a sequence length (None: the default)."""

    name: str
    make: Callable[[], nn.Module]
    inputs: Callable[[int | None], dict[str, Any]]
    lengths: tuple[int, ...] = ()
    """Sequence lengths for the dynamic test; empty where the model has no such dimension."""

    def build(self, *, training: bool, seed: int = 1) -> tuple[nn.Module, dict[str, Any]]:
        """A fresh model with fixed random weights, in train or eval mode, and its inputs.

        Dropout is zero in every configuration, so that training is deterministic.
        """
        torch.manual_seed(seed)
        model = self.make().train(training)
        return model, self.inputs(None)


def loss_of(output: Any) -> Tensor:
    """The scalar to differentiate: the model's own loss, or the mean square of its first result."""
    loss = getattr(output, "loss", None)
    if loss is not None:
        assert isinstance(loss, Tensor)
        return loss
    first = output if isinstance(output, Tensor) else output[0]
    return first.float().square().mean()


def _tokens(vocabulary: int, batch: int, length: int) -> Tensor:
    generator = torch.Generator().manual_seed(length)
    return torch.randint(0, vocabulary, (batch, length), generator=generator)


def _bert() -> nn.Module:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=1000,
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model: nn.Module = BertForMaskedLM(config)
    return model


def _bert_inputs(length: int | None) -> dict[str, Any]:
    ids = _tokens(1000, 4, length or 128)
    mask = torch.ones_like(ids)
    mask[:, -8:] = 0
    return {"input_ids": ids, "attention_mask": mask, "labels": ids}


def _gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=1000,
        n_positions=512,
        n_embd=256,
        n_layer=4,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        use_cache=False,
        bos_token_id=0,
        eos_token_id=1,
    )
    model: nn.Module = GPT2LMHeadModel(config)
    return model


def _causal_inputs(length: int | None) -> dict[str, Any]:
    ids = _tokens(1000, 4, length or 128)
    return {"input_ids": ids, "labels": ids}


def _llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=1000,
        hidden_size=256,
        intermediate_size=704,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        use_cache=False,
    )
    model: nn.Module = LlamaForCausalLM(config)
    return model


def _t5() -> nn.Module:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=1000,
        d_model=256,
        d_kv=64,
        d_ff=1024,
        num_layers=3,
        num_heads=4,
        dropout_rate=0.0,
        use_cache=False,
        decoder_start_token_id=0,
        feed_forward_proj="gated-gelu",  # as in T5 1.1; smooth, so that gradients of equal models are equal
    )
    model: nn.Module = T5ForConditionalGeneration(config)
    return model


def _t5_inputs(length: int | None) -> dict[str, Any]:
    return {"input_ids": _tokens(1000, 4, length or 96), "labels": _tokens(1000, 4, (length or 96) // 2)}


def _vit() -> nn.Module:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
        image_size=128,
        patch_size=16,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=10,
    )
    model: nn.Module = ViTForImageClassification(config)
    return model


def _image_inputs(size: int) -> Callable[[int | None], dict[str, Any]]:
    def inputs(length: int | None) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(1)
        return {
            "pixel_values": torch.randn(4, 3, size, size, generator=generator),
            "labels": torch.randint(0, 10, (4,), generator=generator),
        }

    return inputs


def _resnet() -> nn.Module:
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(
        embedding_size=32,
        hidden_sizes=[64, 128, 256, 512],
        depths=[2, 2, 2, 2],
        layer_type="basic",
        num_labels=10,
    )
    model: nn.Module = ResNetForImageClassification(config)
    return model


class NormMLP(nn.Module):
    """Blocks of layer norm, gated GELU and residuals: little matrix work, much pointwise."""

    def __init__(self, width: int = 256, hidden: int = 512, depth: int = 6) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.ups = nn.ModuleList(nn.Linear(width, 2 * hidden) for _ in range(depth))
        self.downs = nn.ModuleList(nn.Linear(hidden, width) for _ in range(depth))
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, width) -> (batch, 10)."""
        for norm, up, down in zip(self.norms, self.ups, self.downs, strict=True):
            value, gate = up(norm(x)).chunk(2, dim=-1)
            x = x + down(value * nn.functional.gelu(gate, approximate="tanh"))
            x = x * torch.sigmoid(x) + torch.tanh(x)
        result: Tensor = self.head(nn.functional.softmax(x, dim=-1) * x)
        return result


def _mlp_inputs(length: int | None) -> dict[str, Any]:
    return {"x": torch.randn(length or 512, 256, generator=torch.Generator().manual_seed(2))}


WORKLOADS: dict[str, Workload] = {
    w.name: w
    for w in (
        Workload("bert", _bert, _bert_inputs, (32, 48, 64, 96, 128)),
        Workload("gpt2", _gpt2, _causal_inputs, (32, 48, 64, 96, 128)),
        Workload("llama", _llama, _causal_inputs, (32, 48, 64, 96, 128)),
        Workload("t5", _t5, _t5_inputs, (32, 48, 64, 80, 96)),
        Workload("vit", _vit, _image_inputs(128)),
        Workload("resnet", _resnet, _image_inputs(112)),
        Workload("mlp", NormMLP, _mlp_inputs, (64, 128, 256, 320, 512)),
    )
}
"""Every workload by name."""
