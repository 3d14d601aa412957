"""All tables, in the order of the page docs/torch-compile.md."""

from __future__ import annotations

from fxstack.torch_compile.arguments import ARGUMENTS, MODES
from fxstack.torch_compile.functions import CHECKS, COMPILER, DYNAMO
from fxstack.torch_compile.settings import COMPILER_SETTINGS, ENVIRONMENT, SETTINGS

TABLES = (
    ("Arguments", "argument", ARGUMENTS),
    ("Modes", "mode", MODES),
    ("Functions of `torch.compiler`", "function", COMPILER),
    ("Functions of `torch._dynamo`", "function", DYNAMO),
    ("Checks", "function of `torch`", CHECKS),
    ("Flags of `torch._dynamo.config`", "flag", SETTINGS),
    ("Flags of `torch.compiler.config`", "flag", COMPILER_SETTINGS),
    ("Variables of the environment", "variable", ENVIRONMENT),
)
"""Each with its title and the head of its first column."""
