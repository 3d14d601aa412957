"""A program that fails under compilation becomes a few lines that fail in the same way."""

from fxstack.minify.comparing import Settings
from fxstack.minify.minifying import Minified, NothingToMinifyError, check_file, minify
from fxstack.minify.outcomes import Outcome

__all__ = ["Minified", "NothingToMinifyError", "Outcome", "Settings", "check_file", "minify"]
