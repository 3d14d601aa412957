"""Configurations of ``transformers`` with every size made small, by the names of the settings.

A configuration is made anew by its class, so that what the class derives from a size follows it. Lists with an item
for each layer are cut so that each kind of layer stays.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

HEADS = 4
WIDTH = 32
VOCABULARY = 160
MOST_LAYERS = 8

_LAYERS = r"(num_|n_)?(hidden_|encoder_|decoder_|text_|vision_)?(layers|layer|blocks)|depth|num_.*layers"
_SIZES: tuple[tuple[str, int], ...] = (
    # first match wins: pattern of the whole attribute name -> value
    (r"(num_|n_)(key_value|kv)_heads|multi_query_group_num", 2),
    (r".*(d_head|mamba_head_dim|ssm_head_dim)", 2 * WIDTH // HEADS),
    (r"(num_|n_)?.*(heads|head)|.*attention_heads", HEADS),
    (
        r"head_dim|(qk|v)_head_dim|qk_nope_head_dim|qk_rope_head_dim|kv_channels|d_kv|attention_head_dim|rotary_dim",
        WIDTH // HEADS,
    ),
    (r"(q|kv)_lora_rank", 16),
    (r".*(intermediate_size|ffn_dim|d_ff|n_inner|mlp_dim|ffn_hidden_size|ffn_size|inner_dim)", 2 * WIDTH),
    (
        r"hidden_size|d_model|n_embd|dim|embed_dim|hidden_dim|embedding_size|d_embed|dec_hid_size|emb_dim",
        WIDTH,
    ),
    (r".*(hidden_size|embed_dim|hidden_dim|projection_dim|embedding_dim|proj_dim|output_dim)", WIDTH),
    (r".*vocab_size.*", VOCABULARY),
    (r"hidden_size_per_.*", WIDTH // HEADS),
    (r"(max_)?(position_embeddings|seq_len(gth)?|n_positions|sequence_length)|n_positions|n_ctx", 64),
    (r"(num_|n_)(local_|routed_)?experts", 4),
    (r"n_group|num_expert_groups?", 2),
    (r"topk_group", 1),
    (r"num_experts_per_tok|moe_k|top_k", 2),
    (r"image_size|(max_)?img_size|input_size", 32),
    (r"context_size", 16),
    (r"visual_prompt_size", 4),
    (r"patch_size|spatial_patch_size", 8),
    (r"num_queries|num_query_tokens|num_latents|latent_query_num", 8),
    (r".*groups", 4),
    (r"num_pos_feats", WIDTH // 2),
    (r"num_frames", 2),
    (r"max_source_positions", 24),
    (r"(mm|vision)_tokens_per_image|image_seq_len", 4),
    (r"projector_(input|output)_dim|output_channels", WIDTH),
)
_WHERE_NONE = {
    "head_dim": WIDTH // HEADS,
    "vocab_size": VOCABULARY,
    "prediction_length": 4,
    "num_key_value_heads": HEADS,
}
_NUMBERS = {
    "n_routed_experts": 4,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "top_k_experts": 2,
    "moe_intermediate_size": WIDTH,
    "n_group": 2,
    "topk_group": 1,
    "sliding_window": 8,
    "pad_token_id": 1,
    "mask_token_id": 2,
    "image_token_id": VOCABULARY - 2,
    "image_token_index": VOCABULARY - 2,
    "video_token_id": VOCABULARY - 3,
    "video_token_index": VOCABULARY - 3,
}
"""For settings that are None by default, where the model then does not run."""
_COEFFICIENTS = {"width_coefficient": 0.25, "depth_coefficient": 0.1}
"""What widths and numbers of blocks are multiplied by."""
_INDICES = re.compile(r".*(block|layers?)_?(indexes|indices|ids)")
_LENGTHS = re.compile(
    rf"{_LAYERS}|depths|layer_depths|.*vocab_size.*|.*_token(_id|_index)?|.*(indexes|indices)"
)
_ROPE = re.compile(r"mrope_section|long_factor|short_factor")


def rebuilt(config: Any, sections: bool = False, whole: bool = False, complete: bool = False) -> Any:
    """A new configuration of the same class with small sizes; ``sections``: rotary widths for time, height and width,
    which some models have by default; ``whole``: with the parts that the default configuration leaves out;
    ``complete``: with numbers for settings that are None, and widths that equal the hidden width equal to it."""
    accepted = inspect.signature(type(config).__init__).parameters
    layers, least = _layers(config)
    given: dict[str, Any] = {}
    for name, value in [*settings(config), *(_left_out(config) if whole else ())]:
        if name in accepted and not _is_count_of_stages(config, name, value):
            small = (
                rebuilt(value, sections, whole, complete)
                if is_configuration(value)
                else _smaller(name, value, layers, least)
            )
            if small is not value:
                given[name] = small
    if complete:
        given |= _completed(config, given)
    given |= _products(config, given)
    if _setting(config, "num_key_value_heads") == _setting(config, "num_attention_heads") is not None:
        given["num_key_value_heads"] = given.get("num_attention_heads", config.num_attention_heads)
    if "rope_parameters" in accepted and config.rope_parameters is not None:
        given["rope_parameters"] = _fitting_rope(config.rope_parameters, given, sections)
    return _with_features(
        config, type(config)(**{name: value for name, value in given.items() if name in accepted})
    )


def shortened(config: Any) -> Any:
    """A new configuration of the same class with few layers and a small vocabulary; widths, which may depend on each
    other in ways that no rule knows, are kept. Tokens for padding and masks are named, which some need."""
    accepted = inspect.signature(type(config).__init__).parameters
    layers, least = _layers(config)
    tokens = {"pad_token_id": 1, "mask_token_id": 2}
    given: dict[str, Any] = {name: n for name, n in tokens.items() if getattr(config, name, n) is None}
    for name, value in settings(config):
        if name in given or _is_count_of_stages(config, name, value):
            continue
        if is_configuration(value):
            given[name] = shortened(value)
        elif _LENGTHS.fullmatch(name) or _by_layer(value, layers):
            given[name] = _smaller(name, value, layers, least)
    return _with_features(
        config, type(config)(**{name: value for name, value in given.items() if name in accepted})
    )


def _is_count_of_stages(config: Any, name: str, value: Any) -> bool:
    """Whether a setting counts what other settings list one by one, and cannot be less."""
    lists = (getattr(config, other, None) for other in ("depths", "hidden_sizes"))
    return bool(re.fullmatch(_LAYERS, name)) and any(
        isinstance(x, (list, tuple)) and len(x) == value for x in lists
    )


def _with_features(config: Any, made: Any) -> Any:
    """``made`` with the features that a backbone is to give, of those stages that it has."""
    stages = getattr(made, "stage_names", None) or ()
    wanted = [name for name in getattr(config, "out_features", None) or () if name in stages]
    if wanted and wanted != made.out_features:
        made.out_features = wanted
    return made


def _by_layer(value: Any, layers: int) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == layers > 0


def has_parts_left_out(config: Any) -> bool:
    """Whether the configuration, or one inside it, leaves out parts that its class knows."""
    inside = [value for _, value in settings(config) if is_configuration(value)]
    return any(True for _ in _left_out(config)) or any(map(has_parts_left_out, inside))


def _left_out(config: Any) -> Iterator[tuple[str, Any]]:
    """Parts that the class knows and this configuration is without, by default."""
    for name, spec in (getattr(type(config), "sub_configs_defaults", None) or {}).items():
        if getattr(config, name, None) is None:
            try:
                yield name, spec.get_config_class(spec.model_type)(**spec.init_kwargs)
            except Exception:  # one that cannot be made of defaults
                continue


def _completed(config: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Numbers for settings without one, and widths that are, or end in, the hidden width."""
    found: dict[str, Any] = {}
    old, new = getattr(config, "hidden_size", None), given.get("hidden_size")
    for name, value in settings(config):
        options = getattr(config, name.removeprefix("default_") + "s", None) if value is None else None
        if value is None and name in _NUMBERS:
            found[name] = _NUMBERS[name]
        elif name.startswith("default_") and isinstance(options, (list, tuple)) and options:
            found[name] = options[0]
        elif type(old) is not int or type(new) is not int or is_configuration(value):
            continue
        elif type(value) is int and value == old and re.search(r"(size|dim|width|channels)$", name):
            found[name] = new
        elif (
            isinstance(value, (list, tuple))
            and value
            and value[-1] == old > new
            and all(type(item) is int and item * new % old == 0 for item in value)
        ):
            found[name] = type(value)(item * new // old for item in value)
    return found


def _products(config: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Widths that are the hidden width times a number of things that are put side by side (the neighbours that a
    pixel shuffle joins, or the last layer and others whose results are used too), or that a coefficient multiplies."""
    old, new = getattr(config, "hidden_size", None), given.get("hidden_size")
    found: dict[str, Any] = {}
    if "width_coefficient" in given and isinstance(width := _setting(config, "hidden_dim"), int):
        found["hidden_dim"] = round(width * given["width_coefficient"] / config.width_coefficient)
    parts = ("qk_nope_head_dim", "qk_rope_head_dim")
    if "qk_head_dim" in given and all(part in given for part in parts):
        found["qk_head_dim"] = sum(given[part] for part in parts)
    if type(old) is not int or type(new) is not int:
        return found
    heads, width, times = (_setting(config, name) for name in ("num_heads", "head_dim", "expand"))
    if all(type(n) is int for n in (heads, width, times)) and heads * width == times * old:
        found["head_dim"] = times * new // given.get("num_heads", heads)
    for name, value in settings(config):
        if name == "pixel_shuffle_ratio" and "intermediate_size" in given:
            found["intermediate_size"] = round(new / value**2)
        if isinstance(value, (list, tuple)) and _INDICES.fullmatch(name):
            before, after = 1 + len(value), 1 + len(given.get(name, value))
            found |= {
                key: new * after for key, width in settings(config) if width == old * before and key in given
            }
    return found


def shrink(config: Any) -> Any:
    """The same configuration, its sizes made small in place, for classes that cannot be made anew."""
    layers, least = _layers(config)
    for name, value in settings(config):
        if is_configuration(value):
            shrink(value)
            continue
        small = _smaller(name, value, layers, least)
        if small is not value:
            try:
                setattr(config, name, small)
            except (AttributeError, TypeError, ValueError):
                continue  # derived from others
    return config


def settings(config: Any) -> Iterator[tuple[str, Any]]:
    """The settings by name: attributes and what the constructor takes."""
    for name in sorted({*vars(config), *inspect.signature(type(config).__init__).parameters}):
        if name.startswith("_"):
            continue
        value = _setting(config, name)
        if not callable(value):
            yield name, value


def _setting(config: Any, name: str) -> Any:
    """A setting, or None if it differs by layer."""
    try:
        return getattr(config, name, None)
    except Exception:
        return vars(config).get(name)


def is_configuration(value: Any) -> bool:
    """Whether a setting is a configuration itself."""
    return hasattr(value, "to_dict")


def _layers(config: Any) -> tuple[int, int]:
    """How many layers there are, and how many are needed for one of each kind."""
    total, needed = 0, 2
    accepted = inspect.signature(type(config).__init__).parameters
    counts = {name: value for name, value in settings(config) if name in accepted and type(value) is int}
    named = [
        name
        for name, value in counts.items()
        if re.fullmatch(_LAYERS, name) and not _is_count_of_stages(config, name, value)
    ]
    if named:
        total = max(counts[name] for name in named)
    properties = [
        name for name in dir(type(config)) if isinstance(getattr(type(config), name, None), property)
    ]
    for name in [*vars(config), *properties]:
        try:
            kinds = getattr(config, name)
        except Exception:
            continue
        if (
            isinstance(kinds, (list, tuple))
            and total > 2
            and len(kinds) == total
            and all(isinstance(k, str) for k in kinds)
        ):
            first = [kinds.index(kind) + 1 for kind in set(kinds)]
            needed = max(needed, *first)
    return total, min(needed, MOST_LAYERS)


def _smaller(name: str, value: Any, layers: int, least: int) -> Any:
    if name in _WHERE_NONE and value is None:
        return _WHERE_NONE[name]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (list, tuple)) and value:
        return _smaller_sequence(name, value, layers, least)
    if name.endswith("patch_to_query_dict"):  # numbers of patches and of what is made of them
        return {16: 4}
    if type(value) is float and name in _COEFFICIENTS:
        return min(value, _COEFFICIENTS[name])
    if type(value) is not int:
        return value
    if re.search(r"_token(_id|_index)?$", name) and value >= VOCABULARY:
        return VOCABULARY - 1 - sum(map(ord, name)) % 16
    if re.fullmatch(_LAYERS, name):
        return min(value, least)
    for pattern, small in _SIZES:
        if re.fullmatch(pattern, name):
            return min(value, small)
    return value


def _smaller_sequence(name: str, value: Any, layers: int, least: int) -> Any:
    """Layer by layer: cut. Stage by stage: widths and heads that double, one block each."""
    if name.endswith("_token_id"):
        return [_smaller(name, item, 0, 2) for item in value]
    if name == "image_grid_pinpoints":  # of which an image is put together: two of it at least
        return [[min(side // min(map(min, value)), 2) * 32 for side in pair] for pair in value]
    if not all(type(item) is int for item in value):
        return value[:least] if len(value) == layers > least else value
    if re.fullmatch(r"depths|layers|num_.*(blocks|layers)|layer_depths", name):
        return type(value)(1 for _ in value)
    if re.fullmatch(r"(hidden|embed|neck_hidden|encoder_hidden)_?(sizes|dims|dim|size)|dims", name):
        return type(value)(min(item, 16 * 2**stage) for stage, item in enumerate(value))
    if re.fullmatch(r"num_(attention_)?heads", name):
        return type(value)(min(item, 2**stage) for stage, item in enumerate(value))
    if re.fullmatch(r"image_size|img_size", name):
        return type(value)(min(item, 32) for item in value)
    if _INDICES.fullmatch(name):
        return type(value)(item for item in value if item < least) or type(value)([least - 1])
    return value[:least] if len(value) == layers > least else value


def _fitting_rope(rope: Any, given: dict[str, Any], sections: bool) -> Any:
    """Rotary settings whose lists fit half of a head's width."""
    if not isinstance(rope, dict):
        return rope
    width = given.get("head_dim") or given.get("hidden_size", WIDTH) // given.get(
        "num_attention_heads", HEADS
    )
    half = int(width * (rope.get("partial_rotary_factor") or 1)) // 2
    fitted: dict[str, Any] = {}
    for name, value in rope.items():
        if isinstance(value, dict):
            value = _fitting_rope(value, given, sections)
        elif name == "mrope_section":
            value = _sections(half)
        elif _ROPE.fullmatch(name) and isinstance(value, list):
            value = value[:half]
        fitted[name] = value
    if sections and "rope_type" in rope:
        fitted["mrope_section"] = _sections(half)
    return fitted


def _sections(half: int) -> list[int]:
    return [half - 2 * (half // 3), half // 3, half // 3]
