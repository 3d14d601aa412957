"""Tiny models with random weights of the architectures that ``transformers`` registers, made by rule.

No architecture is written down here: sizes in a default configuration are made small by their names, inputs are made
from the signature of ``forward``. An architecture that this does not fit says why and is left out.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

MOST_PARAMETERS = 30_000_000
HEADS = 4
WIDTH = 32
VOCABULARY = 160
BATCH, LENGTH = 2, 12

_SIZES: tuple[tuple[str, int], ...] = (
    # first match wins: pattern of the whole attribute name -> value
    (r"(num_|n_)?(hidden_|encoder_|decoder_|text_|vision_)?(layers|layer|blocks)|depth|num_.*layers", 2),
    (r"(num_|n_)(key_value|kv)_heads|multi_query_group_num", 2),
    (r"(num_|n_)?.*(heads|head)|.*attention_heads", HEADS),
    (
        r"head_dim|(qk|v)_head_dim|qk_nope_head_dim|qk_rope_head_dim|kv_channels|d_kv|attention_head_dim",
        WIDTH // HEADS,
    ),
    (r"(q|kv)_lora_rank", 16),
    (r".*(intermediate_size|ffn_dim|d_ff|n_inner|mlp_dim|ffn_hidden_size|ffn_size|inner_dim)", 2 * WIDTH),
    (
        r"hidden_size|d_model|n_embd|dim|embed_dim|hidden_dim|embedding_size|d_embed|dec_hid_size|emb_dim",
        WIDTH,
    ),
    (r".*(hidden_size|embed_dim|hidden_dim|projection_dim|embedding_dim|proj_dim|output_dim)", WIDTH),
    (r".*vocab_size", VOCABULARY),
    (r"(max_)?(position_embeddings|seq_len(gth)?|n_positions|sequence_length)|n_positions|n_ctx", 64),
    (r"(num_|n_)(local_|routed_)?experts", 4),
    (r"num_experts_per_tok|moe_k|top_k", 2),
    (r"image_size|img_size|input_size", 32),
    (r"patch_size|spatial_patch_size", 8),
    (r"num_queries|num_query_tokens|num_latents", 8),
)


class NotFitting(Exception):
    """The rules give no model, or no inputs, of an architecture; the text says why."""


@dataclass(frozen=True, slots=True)
class TinyModel:
    """A model in evaluation mode and the keyword arguments of one call."""

    model: nn.Module
    inputs: dict[str, Any]


def architectures() -> list[str]:
    """The model types for which ``transformers`` has a base model, in order of their names."""
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    return sorted(MODEL_MAPPING_NAMES)


def build(model_type: str) -> TinyModel:
    """A tiny model of that type that has run once in eager; NotFitting otherwise."""
    from transformers import AutoConfig, AutoModel

    try:
        torch.manual_seed(0)
        config = AutoConfig.for_model(model_type)
        shrink(config)
        model = AutoModel.from_config(config).eval()
    except Exception as error:
        raise NotFitting(f"no model from the tiny configuration: {_line(error)}") from error
    parameters = sum(parameter.numel() for parameter in model.parameters())
    if parameters > MOST_PARAMETERS:
        raise NotFitting(f"{parameters:,} parameters after shrinking")
    inputs = inputs_of(model)
    try:
        with torch.no_grad():
            model(**inputs())
    except Exception as error:
        raise NotFitting(f"no inputs by rule: {_line(error)}") from error
    return TinyModel(model, inputs())


def shrink(config: Any) -> None:
    """Make every size of a configuration, and of those inside it, small, in place."""
    for name, value in _settings(config):
        small = _smaller(name, value)
        if small != value:
            try:
                setattr(config, name, small)
            except (AttributeError, TypeError, ValueError):
                continue  # derived from others
    for name, value in _settings(config):
        if hasattr(value, "to_dict"):
            shrink(value)
        elif isinstance(value, int) and name.endswith("_token_id") and value >= VOCABULARY:
            setattr(config, name, VOCABULARY - 1 - sum(map(ord, name)) % 16)


def _settings(config: Any) -> Iterator[tuple[str, Any]]:
    names = {*vars(config), *inspect.signature(type(config).__init__).parameters}
    for name in sorted(names):
        if not name.startswith("_") and hasattr(config, name) and not callable(getattr(config, name)):
            yield name, getattr(config, name)


def _smaller(name: str, value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (list, tuple)) and value and all(type(item) is int for item in value):
        return _smaller_sequence(name, value)
    if type(value) is not int:
        return value
    for pattern, small in _SIZES:
        if re.fullmatch(pattern, name):
            return min(value, small)
    return value


def _smaller_sequence(name: str, value: Any) -> Any:
    """Stage by stage: widths that double, one block each."""
    if re.fullmatch(r"depths|layers|num_.*(blocks|layers)|layer_depths", name):
        return type(value)(1 for _ in value)
    if re.fullmatch(r"(hidden|embed|neck_hidden|encoder_hidden)_?(sizes|dims|dim|size)|dims", name):
        return type(value)(min(item, 16 * 2**stage) for stage, item in enumerate(value))
    if re.fullmatch(r"image_size|img_size", name):
        return type(value)(min(item, 32) for item in value)
    return value


def inputs_of(model: nn.Module) -> Callable[[], dict[str, Any]]:
    """Makes the keyword arguments of one call, the same each time."""
    accepted = inspect.signature(model.forward).parameters
    config: Any = model.config
    vocabulary = _first(config, "vocab_size") or VOCABULARY
    encodes = bool(getattr(config, "is_encoder_decoder", False))

    def make() -> dict[str, Any]:
        random = torch.Generator().manual_seed(1)
        made: dict[str, Any] = {}
        for name in accepted:
            value = _input(name, config, int(vocabulary), random, decoding=encodes)
            if value is not None:
                made[name] = value
        return made

    return make


def _input(name: str, config: Any, vocabulary: int, random: torch.Generator, *, decoding: bool) -> Any:
    def noise(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=random)

    if name == "input_ids" or (name == "decoder_input_ids" and decoding):
        return torch.randint(3, vocabulary - 20, (BATCH, LENGTH), generator=random)
    if name == "pixel_values":
        size = _first(config, "image_size", "img_size") or 32
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        return noise(BATCH, _first(config, "num_channels", "in_channels", "in_chans") or 3, height, width)
    if name == "input_values":
        return noise(BATCH, 1600)
    if name == "input_features":
        return noise(BATCH, _first(config, "num_mel_bins", "feature_size") or 80, 2 * LENGTH)
    return None


def _first(config: Any, *names: str) -> Any:
    for place in (config, *(v for _, v in _settings(config) if hasattr(v, "to_dict"))):
        for name in names:
            if getattr(place, name, None) is not None:
                return getattr(place, name)
    return None


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:120] if lines else ''}"
