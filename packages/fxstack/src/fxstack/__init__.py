"""A compiler for PyTorch programs: ``fxstack.compile(model)``."""

from fxstack.__about__ import __version__
from fxstack.backends import resolve as _resolve
from fxstack.compile import compile
from fxstack.options import Options


def backend(name: str, options: Options | None = None):  # type: ignore[no-untyped-def]
    """The installed backend of that name, with options: what ``compile(backend=name)`` would use."""
    return _resolve(name, Options.make(options))
