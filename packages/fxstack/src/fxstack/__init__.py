"""A compiler for PyTorch programs: ``fxstack.compile(model)``."""

from dynamo_capture import explain_recompiles
from fxstack.__about__ import __version__
from fxstack.backends import backend
from fxstack.compile import compile, reset
from fxstack.options import Options
from fxstack.report import Explanation, explain
from fxstack.verification import Verification, verify

__all__ = [
    "Explanation",
    "Options",
    "Verification",
    "__version__",
    "backend",
    "compile",
    "explain",
    "explain_recompiles",
    "reset",
    "verify",
]
