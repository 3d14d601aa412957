"""Running a script as ``python SCRIPT ARGS`` would, in this process."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import os
import runpy
import sys
import types
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import click


def run_script(script: str, arguments: Sequence[str]) -> int:
    """Run a file as ``__main__`` with ``arguments`` as the rest of ``sys.argv``; its exit status. What it raises is
    shown by ``sys.excepthook``, as Python does; KeyboardInterrupt leaves."""
    sys.argv[:] = [script, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(script))
    main = _main_module(script)
    sys.modules["__main__"] = main

    def execute() -> None:
        loader = main.__loader__
        assert isinstance(loader, importlib.machinery.SourceFileLoader)
        code = compile(loader.get_data(script), script, "exec", dont_inherit=True)
        exec(code, main.__dict__)

    return _status_of(execute)


def run_module(module: str, arguments: Sequence[str]) -> int:
    """The same for ``python -m MODULE``; 1 for one that cannot be found or is a package without ``__main__``."""
    sys.argv[:] = [module, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd()
    missing = _missing(module)
    if missing is not None:
        print(f"{sys.executable}: {missing}", file=sys.stderr)
        return 1
    return _status_of(lambda: runpy.run_module(module, run_name="__main__", alter_sys=True))


def _missing(module: str) -> str | None:
    """Why there is no such module to run. Packages around it are imported, as they are to run it; what one raises is
    for the run to show."""
    try:
        found = importlib.util.find_spec(module)
        if found is None:
            return f"No module named {module}"
        if (
            found.submodule_search_locations is not None
            and importlib.util.find_spec(f"{module}.__main__") is None
        ):
            return (
                f"No module named {module}.__main__; {module!r} is a package and cannot be directly executed"
            )
    except ModuleNotFoundError as error:
        if error.name is not None and module.startswith(error.name):
            return f"Error while finding module specification for {module!r} (ModuleNotFoundError: {error})"
    except Exception:
        return None
    return None


def _main_module(script: str) -> types.ModuleType:
    made = types.ModuleType("__main__")
    made.__file__ = script
    made.__loader__ = importlib.machinery.SourceFileLoader("__main__", script)
    made.__dict__.update(__builtins__=sys.modules["builtins"], __cached__=None, __annotations__={})
    return made


def _status_of(execute: Callable[[], Any]) -> int:
    try:
        execute()
    except SystemExit as leaving:
        if leaving.code is None or isinstance(leaving.code, int):
            return leaving.code or 0
        print(leaving.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        error = error.with_traceback(_from_script(error.__traceback__))
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    finally:
        _flush()
    return 0


def _from_script(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without this module's frames, which are around the script's."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    return traceback


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(
            AttributeError, OSError, ValueError
        ):  # the program has closed or replaced it
            stream.flush()


class Script(click.ParamType[str]):
    """The path of a file that can be read."""

    name = "script"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if ctx is not None and ctx.params.get("module"):
            return str(value)
        if not os.path.isfile(value):
            self.fail(f"there is no file {value!r}", param, ctx)
        return str(value)
