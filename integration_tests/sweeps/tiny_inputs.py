"""Inputs for a model of ``transformers``, made from the signature of its ``forward`` and its configuration.

Where a name alone does not say the shape, each usual one is tried; the first call that runs in eager is taken.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from media_inputs import BESIDE, MEDIA, companions, image_shapes, masked_by_tile, placed
from tiny_configurations import VOCABULARY, WIDTH, is_configuration, settings
from torch import nn

BATCH, LENGTH = 2, 12
MOST_TRIES = 40
LARGEST_IMAGE = 256
Inputs = dict[str, Any]


class Maker:
    """Makes inputs of one model; ``batch`` and ``length`` may be other ones than those it was found with."""

    def __init__(self, model: nn.Module, batch: int = BATCH, length: int = LENGTH) -> None:
        self._model = model
        self._config: Any = model.config
        self._accepted = inspect.signature(model.forward).parameters
        self.batch, self.length = batch, length

    def candidates(self) -> Iterator[tuple[Any, Inputs]]:
        """Inputs that may fit, likely ones first, each with a key that names the choice."""
        required = [name for name, p in self._accepted.items() if _is_required(p)]
        media = [name for name in MEDIA if name in self._accepted]
        text = [name for name in ("input_ids", "decoder_input_ids") if name in self._accepted]
        if not getattr(self._config, "is_encoder_decoder", False):
            text = text[:1]
        seen_as = [name for name in self._accepted if name.startswith("visual_")]
        tries = [[one, *text] for one in media] + [text, media, media[:1]] if media else [text, []]
        tries = [*tries, [*text, *seen_as]]
        for more in ("bbox", "encoder_hidden_states"):  # optional by name, and yet needed by some
            if more in self._accepted:
                tries += [[*media[:1], *text, more], [*text, more]]
        seen: list[set[str]] = []
        for names in tries:
            chosen = {*names, *required}
            if chosen and chosen not in seen:
                seen.append(chosen)
                yield from self._shapes([name for name in self._accepted if name in chosen])

    def make(self, choice: Any) -> Inputs | None:
        """The inputs of a choice that ``candidates`` gave, again."""
        return next((inputs for key, inputs in self.candidates() if key == choice), None)

    def _shapes(self, names: list[str]) -> Iterator[tuple[Any, Inputs]]:
        options = [self._makers(name) for name in names]
        if any(not option for option in options):
            return
        for numbers in itertools.islice(itertools.product(*map(range, map(len, options))), MOST_TRIES):
            generator = torch.Generator().manual_seed(1)
            made: Inputs = {}
            for option, number in zip(options, numbers, strict=True):
                made.update(option[number](generator))
            beside = companions(made, self._accepted, self._first)
            choices = [more for more in (beside, masked_by_tile(beside, made)) if more]
            for which, more in enumerate([*choices, {}]):
                for number, whole in enumerate(self._variants({**made, **more})):
                    yield (tuple(names), numbers, which, number), whole

    def _variants(self, made: Inputs) -> Iterator[Inputs]:
        """What may have to be said beside the inputs: the tokens of media, which tokens count, no cache."""
        prompts = [made]
        if "input_ids" in made and len(made) > 1:
            prompts = [placed(made, self._model, self._accepted, self._first, least) for least in (0, 1)]
        for position, prompt in enumerate(prompts):
            if position and prompt["input_ids"].shape == prompts[0]["input_ids"].shape:
                continue
            yield prompt
            if "use_cache" in self._accepted:
                yield {**prompt, "use_cache": False}
            if "attention_mask" in self._accepted and len(prompts) > 1:
                yield {**prompt, "attention_mask": torch.ones_like(prompt["input_ids"])}

    def _makers(self, name: str) -> list[Callable[[torch.Generator], Inputs]]:
        """How an input may be made."""
        batch, length = self.batch, self.length
        if name in ("input_ids", "decoder_input_ids", "qformer_input_ids"):
            vocabulary = int(self._first("vocab_size") or VOCABULARY)
            return [lambda g: {name: torch.randint(3, max(4, vocabulary - 20), (batch, length), generator=g)}]
        if name in ("pixel_values", "pixel_values_videos") and self._grid(name):
            return [lambda g, rows=rows: self._patches(name, g, rows) for rows in (True, False)]
        if name in BESIDE or (name.endswith("_mask") and name.removesuffix("_mask") in MEDIA):
            return [lambda g: {}]  # made with its medium
        shapes = self._shapes_of(name)
        if shapes and name.endswith("observed_mask"):
            return [lambda g: {name: torch.ones(shapes[-1])}]
        if shapes:
            return [lambda g, shape=shape: {name: torch.randn(shape, generator=g)} for shape in shapes]
        if name == "bbox":
            return [lambda g: {name: torch.randint(0, 30, (batch, length, 4), generator=g).sort(-1).values}]
        if name == "grid_thw":
            return [lambda g: {name: torch.tensor([[1, 4, 4]] * batch)}]
        if name == "merge_sizes":
            return [lambda g: {name: torch.ones(batch, dtype=torch.int64)}]
        if name == "freq":
            return [lambda g: {name: torch.zeros(batch, 1, dtype=torch.int64)}]
        if name.endswith("attention_mask"):
            return [lambda g: {name: torch.ones(batch, length, dtype=torch.int64)}]
        return []

    def _shapes_of(self, name: str) -> list[tuple[int, ...]]:
        batch, length = self.batch, self.length
        width = self._first("hidden_size", "d_model", "embed_dim") or WIDTH
        match name:
            case "pixel_values" | "pixel_values_videos":
                height, width = self._image()
                image = (self._first("num_channels", "in_channels", "in_chans") or 3, height, width)
                patch = self._first("patch_size") or 8
                frames, pooled = self._first("num_frames") or 2, self._first("pooling_kernel_size") or 1
                shapes = image_shapes(batch, image, patch if type(patch) is int else 8, frames, pooled)
                if type(times := self._first("temporal_patch_size")) is int and type(patch) is int:
                    shapes.append((batch, height // patch * (width // patch), times * image[0] * patch**2))
                if "input_ids" not in self._accepted:  # networks that halve an image often need a larger one
                    shapes.append((batch, image[0], 4 * height, 4 * width))
                return shapes
            case "input_values" | "audio_values":
                mel = self._first("num_mel_bins", "feature_size") or 128
                rows = (batch, self._first("max_length") or 1024, mel)
                return [(batch, 1600), (batch, 1, 1920), rows, (batch, 7680), (batch, 1, 7680)]
            case "input_features":
                mel = self._first("num_mel_bins", "feature_size", "feature_projection_input_dim") or 80
                positions = 2 * (self._first("max_source_positions") or length)
                window = 2 * (self._first("n_window") or length)
                lengths = (2 * length, positions, window)
                return [
                    (batch, mel, lengths[0]),
                    (batch, lengths[0], mel),
                    *((batch, mel, n) for n in lengths[1:]),
                    (batch, lengths[0], 128),
                    (batch, lengths[0], 4 * mel),
                    (batch, 1, lengths[0], mel),
                ]
            case "hidden_states" if "grid_thw" in self._accepted:
                return [(batch * 16, self._patch_width())]
            case "spectrogram" | "visual_feats" | "visual_pos":
                return [(batch, length, self._first(f"{name}_dim", "visual_feat_dim") or width)]
            case "prompt_pixel_values" | "prompt_masks":
                return [(batch, self._first("num_channels") or 3, *self._image())]
            case "hidden_states":
                return [(batch, length, width)]
            case _ if name.endswith(("_embeds", "_hidden_states")):
                return [(batch, length, width)]
            case _ if name.startswith(("past_", "future_")):
                return self._series(name, width)
            case _:
                return []

    def _series(self, name: str, width: int) -> list[tuple[int, ...]]:
        """Values of a time series before and after now, and what is known of each moment."""
        lags = self._first("lags_sequence") or [0]
        steps = self._first("prediction_length") or 4
        if name.startswith("past_"):
            steps = (self._first("context_length") or self.length) + max(lags)
        if name.endswith("_features"):
            return [(self.batch, steps, self._first("num_time_features") or 0)]
        if "past_time_features" in self._accepted:
            return [(self.batch, steps)]
        several = (self.batch, steps, self._first("num_input_channels") or 1)
        return [(self.batch, self.length, width), several, (self.batch, steps)]

    def _grid(self, name: str) -> str:
        """The input that says how many patches each of the images or videos has, if the model takes one."""
        names = ("video_grid_thw" if name.endswith("videos") else "image_grid_thw", "grid_thw")
        return next((one for one in names if one in self._accepted), "")

    def _patches(self, name: str, generator: torch.Generator, rows: bool) -> Inputs:
        """The patches of all images, each a row of numbers or a small image."""
        patches = torch.randn((self.batch * 16, self._patch_width()), generator=generator)
        side = self._first("patch_size")
        if not rows and type(side) is int:
            patches = patches.view(self.batch * 16, -1, side, side)
        return {name: patches, self._grid(name): torch.tensor([[1, 4, 4]] * self.batch)}

    def _patch_width(self) -> int:
        channels = self._first("num_channels", "in_channels", "in_chans") or 3
        return channels * (self._first("temporal_patch_size") or 1) * (self._first("patch_size") or 8) ** 2

    def _image(self) -> tuple[int, int]:
        size = self._first("image_size", "img_size") or 32
        if is_configuration(size) or isinstance(size, dict):
            size = 32
        height, width = (size[0], size[-1]) if isinstance(size, (list, tuple)) else (size, size)
        return min(height, LARGEST_IMAGE), min(width, LARGEST_IMAGE)

    def _first(self, *names: str) -> Any:
        return _found(self._config, names)


def _found(config: Any, names: tuple[str, ...]) -> Any:
    """The first of these settings, of a configuration or one inside it."""
    inside = [value for _, value in settings(config) if is_configuration(value)]
    for name in names:
        for place in (config, *inside):
            try:
                value = getattr(place, name, None)
            except Exception:  # one that differs by layer
                continue
            if value is not None and not (isinstance(value, float) and math.isnan(value)):
                return value
    deeper = (_found(value, names) for value in inside)
    return next((value for value in deeper if value is not None), None)


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind in (
        parameter.POSITIONAL_OR_KEYWORD,
        parameter.KEYWORD_ONLY,
    )
