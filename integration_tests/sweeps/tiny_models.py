"""Tiny models with random weights of the architectures that ``transformers`` registers, made by rule.

No architecture is written down here: ``tiny_configurations`` makes the sizes of a default configuration small by their
names, ``tiny_inputs`` makes inputs from the signature of ``forward``. An architecture that this does not fit says why
and is left out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from mistakes import line_of
from tiny_configurations import has_parts_left_out, rebuilt, shortened, shrink
from tiny_inputs import BATCH, LENGTH, Maker
from torch import nn

MOST_PARAMETERS = 100_000_000
_VARIANTS = (functools.partial(rebuilt, sections=True), functools.partial(rebuilt, complete=True))


class NotFitting(Exception):
    """The rules give no model, or no inputs, of an architecture; the text says why."""


@dataclass(frozen=True, slots=True)
class TinyModel:
    """A model in evaluation mode and the keyword arguments of one call."""

    model: nn.Module
    inputs: dict[str, Any]
    choice: Any = field(default=None)

    def resized(self, batch: int, length: int) -> dict[str, Any] | None:
        """Inputs of the same kind for another batch size and sequence length, if the model runs on them."""
        inputs = Maker(self.model, batch, length).make(self.choice)
        return inputs if inputs is not None and _failure(self.model, inputs) is None else None


def architectures() -> list[str]:
    """The model types for which ``transformers`` has a base model, in order of their names."""
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    return sorted(MODEL_MAPPING_NAMES)


def build(model_type: str, training: bool = False) -> TinyModel:
    """A tiny model of that type that has run once in eager, also in training if asked for; NotFitting otherwise."""
    failures: list[NotFitting] = []
    for make in (_whole, rebuilt, *_VARIANTS, shrink, shortened):
        try:
            return _fitting(_model(model_type, make).train(training))
        except NotFitting as error:
            failures.append(error)
    raise failures[1]  # that of the default configuration made small


def _whole(config: Any) -> Any:
    """The configuration made small, with the parts that the default one leaves out."""
    if not has_parts_left_out(config):
        raise ValueError("no parts left out")
    return rebuilt(config, whole=True)


def _fitting(model: nn.Module) -> TinyModel:
    """The model with the first inputs that it runs on."""
    first: Exception | None = None
    for choice, inputs in Maker(model, BATCH, LENGTH).candidates():
        failure = _failure(model, inputs)
        if failure is None:
            return TinyModel(model, inputs, choice)
        first = first or failure
    raise NotFitting(
        "no inputs by rule: " + ("none made" if first is None else line_of(first, 120))
    ) from first


def _model(model_type: str, make: Callable[[Any], Any]) -> nn.Module:
    from transformers import CONFIG_MAPPING, AutoModel

    try:
        config = make(CONFIG_MAPPING[model_type]())
        config.architectures = config.architectures or []  # which of several classes: the first
        with torch.device("meta"):  # its size, before memory is taken
            parameters = sum(p.numel() for p in AutoModel.from_config(config).parameters())
        if parameters <= MOST_PARAMETERS:
            torch.manual_seed(0)
            config = make(CONFIG_MAPPING[model_type]())
            config.architectures = config.architectures or []
            model: nn.Module = AutoModel.from_config(config)
            return model.eval()
    except Exception as error:
        raise NotFitting(f"no model from the tiny configuration: {line_of(error, 120)}") from error
    raise NotFitting(f"{parameters:,} parameters after shrinking")


def _failure(model: nn.Module, inputs: dict[str, Any]) -> Exception | None:
    try:
        with torch.no_grad():
            model(**inputs)
    except Exception as error:
        return error
    return None
