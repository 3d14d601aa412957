"""Images, videos and sounds among a model's inputs: their shapes, what goes with them, and their tokens in the prompt.

Nothing here knows a model: a medium's shapes follow the configuration, what goes with it (masks, sizes, positions)
follows the signature, and the number of its tokens is asked of the model's own ``get_image_features``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

Inputs = dict[str, Any]
Setting = Callable[..., Any]
"""The first setting of these names that a configuration has."""

MEDIA = (
    "pixel_values",
    "pixel_values_videos",
    "input_features",
    "input_values",
    "input_audio_embeds",
    "audio_input_ids",
    "flattened_patches",
)
BESIDE = (
    "pixel_position_ids",
    "image_position_ids",
    "spatial_shapes",
    "target_sizes",
    "pixel_mask",
    "pixel_attention_mask",
    "image_sizes",
)
"""What ``companions`` makes for images."""
KINDS = {"image": 1, "video": 2, "audio": 3}
"""Kinds of tokens in a prompt, and their numbers among the types of tokens; text is 0."""
_KIND_OF = {"pixel_values": "image", "flattened_patches": "image", "pixel_values_videos": "video"}
MOST_FEATURES = 256
"""Tokens of one prompt."""


def image_shapes(
    batch: int, image: tuple[int, int, int], patch: int, frames: int, pooled: int = 1
) -> list[tuple[int, ...]]:
    """How the images of a batch may come: one each, several each, as frames or tiles, or as rows of patches, or of so
    many times as wide ones that are pooled."""
    channels, height, width = image
    patches = (height // patch) * (width // patch)
    joined = channels * (patch * pooled) ** 2
    return [
        (batch, *image),
        (batch, frames, *image),
        (batch, 1, *image),
        (1, batch, 1, *image),
        (batch, 3, *image),
        (batch, patches, channels * patch * patch),
        (batch, 1, 4, *image),
        *([(batch, patches, joined)] if pooled > 1 else []),
    ]


def companions(made: Inputs, accepted: Any, setting: Setting) -> Inputs:
    """What the model takes beside the media in ``made``."""
    found: Inputs = {}
    for name in MEDIA:
        value = made.get(name)
        if value is None or not value.is_floating_point():
            continue
        options = (
            _of_images(value, made, setting) if name.startswith("pixel") else _of_sounds(name, value, setting)
        )
        found |= {key: item for key, item in options.items() if key in accepted and key not in made}
    return found


def masked_by_tile(beside: Inputs, made: Inputs) -> Inputs:
    """The same with a mask that says which images there are, in place of one that says which of their pixels."""
    value = made.get("pixel_values")
    if value is None or value.ndim != 5 or "pixel_attention_mask" not in beside:
        return {}
    return {**beside, "pixel_attention_mask": torch.ones(value.shape[:2], dtype=torch.int64)}


def _of_images(value: torch.Tensor, made: Inputs, setting: Setting) -> Inputs:
    if value.ndim == 2:  # patches of all images in one row; their grids say how many each has
        return {}
    batch, several = value.shape[0], value.shape[:-3]
    if value.ndim == 3:
        side = int(value.shape[1] ** 0.5)
        places = torch.stack(torch.meshgrid(torch.arange(side), torch.arange(side), indexing="xy"), -1)
        return {
            "spatial_shapes": torch.tensor([[side, side]] * batch),
            "pixel_attention_mask": torch.ones(batch, side * side, dtype=torch.int64),
            "image_position_ids": places.reshape(1, -1, 2).repeat(batch, 1, 1),
            "pixel_position_ids": places.reshape(1, -1, 2).repeat(batch, 1, 1),
        }
    height, width = value.shape[-2:]
    mask = torch.ones(*several, height, width, dtype=torch.int64)
    found = {
        "image_sizes": torch.tensor([[height, width]] * batch),
        "pixel_attention_mask": mask,
        "pixel_mask": mask,
        "high_res_pixel_values": value * 0.5,
    }
    patch = setting("patch_size")
    if type(patch) is int:
        found["target_sizes"] = torch.tensor([[height // patch, width // patch]] * batch)
    queries = setting("latent_query_num")
    if type(queries) is int and "input_ids" in made:  # images are put in the places of the first tokens
        places = torch.arange(made["input_ids"].shape[1]) < queries
        found["image_embeds_position_mask"] = places.long().expand(made["input_ids"].shape).clone()
    if value.ndim == 5:
        found["num_frames_per_video"] = torch.full((batch,), several[1])
    if value.ndim == 5 and "input_ids" in made:
        found["image_attention_mask"] = torch.ones(*made["input_ids"].shape, several[1], dtype=torch.int64)
    if value.ndim == 6:
        tiles = value.shape[2]
        found["aspect_ratio_ids"] = torch.ones(several[:-1], dtype=torch.int64)
        found["aspect_ratio_mask"] = torch.ones(several, dtype=torch.int64)
        found["cross_attention_mask"] = torch.ones(batch, 1, value.shape[1], tiles, dtype=torch.int64)
    return found


def _of_sounds(name: str, value: torch.Tensor, setting: Setting) -> Inputs:
    bands = setting("num_mel_bins", "feature_size", "feature_projection_input_dim") or 0
    frames = next((n for n in reversed(value.shape[1:]) if n != bands), value.shape[-1])
    mask = torch.ones(value.shape[0], frames, dtype=torch.int64)
    return {f"{name}_mask": mask, "feature_attention_mask": mask, "padding_mask": mask.bool()}


def placed(made: Inputs, model: nn.Module, accepted: Any, setting: Setting, least: int = 0) -> Inputs:
    """``made`` with a token in the prompt for each feature that the model makes of its media; ``least`` tokens for a
    medium of which the model does not say how many there are."""
    ids = made["input_ids"]
    types = torch.zeros_like(ids)
    for kind, number in KINDS.items():
        token = setting(f"{kind}_token_id", f"{kind}_token_index")
        count = 0 if token is None else _features(made, model, kind, least * ids.shape[0]) // ids.shape[0]
        if not 0 < count <= MOST_FEATURES:
            continue
        begin, end = _around(setting, kind)
        inner = [*begin, *[token] * count, *end]
        row = torch.tensor(inner).expand(ids.shape[0], -1)
        kinds = torch.tensor([0] * len(begin) + [number] * count + [0] * len(end)).expand(ids.shape[0], -1)
        ids = torch.cat([ids[:, :2], row, ids[:, 2:]], dim=1)
        types = torch.cat([types[:, :2], kinds, types[:, 2:]], dim=1)
    if not types.any():
        return made
    found = {**made, "input_ids": ids}
    for name in ("mm_token_type_ids", "token_type_ids"):
        if name in accepted:
            found[name] = types
            break
    if "cross_attention_mask" in found:
        found["cross_attention_mask"] = found["cross_attention_mask"].expand(-1, ids.shape[1], -1, -1)
    return found


def _around(setting: Setting, kind: str) -> tuple[list[int], list[int]]:
    """Tokens that begin and end an image, where the model has some."""
    names = (
        ("vision_start_token_id", "image_start_token_id") if kind != "audio" else ("audio_start_token_id",)
    )
    begin, end = setting(*names), setting(*(name.replace("start", "end") for name in names))
    return [x for x in [begin] if isinstance(x, int)], [x for x in [end] if isinstance(x, int)]


def _features(made: Inputs, model: nn.Module, kind: str, unknown: int) -> int:
    """How many features there are of the media of that kind; ``unknown`` if the model does not say."""
    if not any(kind == _KIND_OF.get(name, "audio") for name in MEDIA if name in made):
        return 0
    method = getattr(model, f"get_{kind}_features", None)
    if method is None:
        return unknown
    taken = inspect.signature(method).parameters
    given = {name: value for name, value in made.items() if name in taken and name != "input_ids"}
    if not any(name in given for name in MEDIA):
        return 0
    try:
        with torch.no_grad():
            found = method(**given)
    except Exception:
        return unknown
    results = (getattr(found, name, None) for name in ("pooler_output", "last_hidden_state"))
    features = next((one for one in results if one is not None), found)
    return sum(t.numel() // t.shape[-1] for t in _tensors(features) if t.ndim)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
