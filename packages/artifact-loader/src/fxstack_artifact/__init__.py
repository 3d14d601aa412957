"""Runs artifacts of fxstack: ``fxstack_artifact.load("model.fxa")(x)``. Needs torch and nothing else of the stack."""

from fxstack_artifact.__about__ import __version__
from fxstack_artifact.artifact import Artifact, inspect, load
from fxstack_artifact.container.signing import make_key
from fxstack_artifact.container.writing import sign
from fxstack_artifact.errors import ArtifactError, ContractError, GradientError

__all__ = [
    "Artifact",
    "ArtifactError",
    "ContractError",
    "GradientError",
    "__version__",
    "inspect",
    "load",
    "make_key",
    "sign",
]
