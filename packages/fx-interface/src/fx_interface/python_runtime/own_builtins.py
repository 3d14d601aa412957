"""The builtins that the stack's own code uses: a copy, taken at import, that a user's program cannot change.

    builtins.len = lambda value: 3        # the user's functions see this one, the compiler's go on with the real one

A function takes its builtins from the entry ``__builtins__`` of its module's globals when it is made. A finder in front
of the others gives each module of the stack that entry before the module's code runs. Every package imports
``fx_interface`` first, so that all of its modules but the first are under it.

The modules ``operator``, ``math``, ``functools`` and ``itertools`` are copies in the stack's modules as well, made at
the same time, so that ``operator.add = ...`` is the program's alone.

The standard library and torch, which the compiler calls, read the builtins that everybody does. ``replaced`` says which
of those are not what they were; while one is that such code computes with, nothing is compiled.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import marshal
import math
import operator
import os
import struct
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from importlib.util import MAGIC_NUMBER, cache_from_source
from types import CodeType, ModuleType
from typing import Any

STACK_PACKAGES = frozenset(
    (
        "fx_interface",
        "fx_guards",
        "dynamo_capture",
        "aot_autograd",
        "primtorch_decomps",
        "inductor_codegen",
        "fxstack",
    )
)
"""Import names of the stack's own packages. Their frames are never the user's program, so capture leaves them alone: a
compiled graph may call Python functions of its own while the user's frames are being captured."""

OWN_BUILTINS: dict[str, Any] = dict(vars(builtins))
"""What a name of the builtins meant at import. Nobody writes to it."""
PROGRAMS_ISINSTANCE: Callable[[Any, Any], bool] = OWN_BUILTINS["isinstance"]
"""As a program's code asks: an object may answer itself (see ``use_isinstance``)."""
_BUILTINS_OF_STACK = dict(OWN_BUILTINS)
"""What a name means in the stack's own modules."""
CURRENT = vars(builtins)
"""The builtins of most programs and libraries, which a program may change at any time."""
_UNUSED_BY_LIBRARIES = frozenset(
    (
        *(
            "print",
            "input",
            "open",
            "breakpoint",
            "help",
            "exit",
            "quit",
            "copyright",
            "credits",
            "license",
            "_",
        ),
        *("__import__", "exec", "eval", "compile"),
        *(name for name in OWN_BUILTINS if name.startswith("__") and name.endswith("__")),
    )
)
"""Names that programs replace by something that does the same and more, or that no computation depends on."""
WATCHED = tuple((name, OWN_BUILTINS[name]) for name in OWN_BUILTINS if name not in _UNUSED_BY_LIBRARIES)
"""What libraries compute with, by name."""


def replaced() -> str | None:
    """A builtin that is not what it was at import, and that libraries compute with; None: all are."""
    for name, value in WATCHED:
        if CURRENT.get(name) is not value:
            return name
    return None


def use_isinstance(function: Callable[[Any, Any], bool]) -> None:
    """Have the stack's modules, those too that are there, call this in place of ``isinstance``, which runs code of the
    program where an object has a property ``__class__`` or a ``__getattribute__``."""
    _BUILTINS_OF_STACK["isinstance"] = function


def _copied(module: ModuleType) -> ModuleType:
    made = ModuleType(module.__name__)
    made.__dict__.update(vars(module))
    return made


_OWN_MODULES = {
    module.__name__: (module, _copied(module)) for module in (functools, itertools, math, operator)
}
"""Modules of functions that the stack calls by name while it runs, and each as it was at import. The stack imports them
under their own names."""


class _OwnSource(SourceFileLoader):
    """Runs a module's code with builtins of our own, and gives it the copies of modules that it has imported."""

    bytecode: str | None = None
    """The file in which Python keeps what it has compiled."""

    def get_code(self, fullname: str) -> CodeType | None:
        """As Python does it; where its file of bytecode is in order, in a third of the time."""
        code = None if self.bytecode is None else _kept_code(self.path, self.bytecode)
        return super().get_code(fullname) if code is None else code

    def exec_module(self, module: ModuleType) -> None:
        names = module.__dict__
        names["__builtins__"] = _BUILTINS_OF_STACK
        super().exec_module(module)
        for name, (shared, own) in _OWN_MODULES.items():
            if names.get(name) is shared:
                names[name] = own


def _kept_code(source: str, bytecode: str) -> CodeType | None:
    """The code in a file of bytecode that belongs to the source as it is now (PEP 552: by time and size); None where
    Python is to look by itself: no such file, an old one, one by hash, one of a source that has been moved."""
    try:
        file = os.open(bytecode, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
        try:
            kept = os.read(file, os.fstat(file).st_size)
        finally:
            os.close(file)
        status = os.stat(source)
    except OSError:
        return None
    facts = _HEADER.pack(MAGIC_NUMBER, 0, int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF)
    if not kept.startswith(facts):
        return None
    try:
        code = marshal.loads(memoryview(kept)[_HEADER.size :])
    except (EOFError, ValueError, TypeError):
        return None
    return code if isinstance(code, CodeType) and code.co_filename == source else None


_HEADER = struct.Struct("<4sLLL")


class _OwnFinder(MetaPathFinder):
    """Finds the stack's modules where they are, and has them run by ``_OwnSource``.

    In a package's folder it looks by itself; whatever else there may be (a zip file, say) is left to ``PathFinder``.
    """

    def __init__(self) -> None:
        self._folders: dict[str, FileFinder] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._bytecode: dict[str, tuple[str, str] | None] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] not in STACK_PACKAGES:
            return None
        for folder in path or ():
            spec = self._source_in(folder, name) or self._in(folder).find_spec(name)
            if spec is not None and spec.loader is not None:
                return spec
        spec = PathFinder.find_spec(name, path, target)
        loader: Loader | None = None if spec is None else spec.loader
        if spec is not None and type(loader) is SourceFileLoader:
            spec.loader = _OwnSource(loader.name, loader.path)
        return spec

    def _source_in(self, folder: str, name: str) -> ModuleSpec | None:
        """A module or package in Python in a folder whose names are known; None: a closer look is needed."""
        last = name.rpartition(".")[2]
        names = self._names_in(folder)
        if last in names:
            package = f"{folder}{os.sep}{last}"
            if "__init__.py" not in self._names_in(package):
                return None
            source, places = f"{package}{os.sep}__init__.py", [package]
        elif f"{last}.py" in names and not any(f"{last}{suffix}" in names for suffix in EXTENSION_SUFFIXES):
            source, places = f"{folder}{os.sep}{last}.py", None
        else:
            return None
        loader = _OwnSource(name, source)
        spec = ModuleSpec(name, loader, origin=source, is_package=places is not None)
        spec.submodule_search_locations = places
        spec.has_location = True
        spec.cached = loader.bytecode = self._bytecode_of(source)
        return spec

    def _bytecode_of(self, source: str) -> str | None:
        """Where Python keeps the bytecode of a source; asked once for each folder."""
        folder, _, name = source.rpartition(os.sep)
        if folder not in self._bytecode:
            try:
                place = cache_from_source(f"{folder}{os.sep}__init__.py")
            except NotImplementedError:  # this Python keeps none
                self._bytecode[folder] = None
            else:
                before, _, after = place.rpartition("__init__")
                self._bytecode[folder] = before, after
        kept = self._bytecode[folder]
        return None if kept is None else f"{kept[0]}{name[:-3]}{kept[1]}"

    def _names_in(self, folder: str) -> frozenset[str]:
        names = self._names.get(folder)
        if names is None:
            try:
                names = frozenset(os.listdir(folder))
            except OSError:
                names = frozenset()
            self._names[folder] = names
        return names

    def _in(self, folder: str) -> FileFinder:
        finder = self._folders.get(folder)
        if finder is None:
            kinds = ((ExtensionFileLoader, EXTENSION_SUFFIXES), (_OwnSource, SOURCE_SUFFIXES))
            finder = self._folders[folder] = FileFinder(folder, *kinds)
        return finder

    def invalidate_caches(self) -> None:
        self._folders.clear()
        self._names.clear()
        self._bytecode.clear()


sys.meta_path.insert(0, _OwnFinder())
