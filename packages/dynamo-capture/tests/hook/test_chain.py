"""Living with another frame hook, installed before, after or inside ours; it is compiled here."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dynamo_capture.hook import frame_hook
from dynamo_capture.hook.frame_hook import Entry

SOURCE = r"""
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define Py_BUILD_CORE 1
#include "internal/pycore_frame.h"
#if PY_VERSION_HEX >= 0x030D0000
#include "internal/pycore_ceval.h"
#endif

static _PyFrameEvalFunction below;
static long frames;

static PyObject *count(PyThreadState *tstate, struct _PyInterpreterFrame *frame, int throwflag)
{
    frames++;
    return below(tstate, frame, throwflag);
}

static PyObject *install(PyObject *module, PyObject *ignored)
{
    below = _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), count);
    Py_RETURN_NONE;
}

/* As a hook does that knows of no other: puts back what it found. */
static PyObject *remove_(PyObject *module, PyObject *ignored)
{
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), below);
    Py_RETURN_NONE;
}

static PyObject *reset(PyObject *module, PyObject *ignored)
{
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), _PyEval_EvalFrameDefault);
    Py_RETURN_NONE;
}

static PyObject *taken(PyObject *module, PyObject *ignored)
{
    long now = frames;
    frames = 0;
    return PyLong_FromLong(now);
}

static PyMethodDef methods[] = {
    {"install", install, METH_NOARGS, NULL}, {"remove", remove_, METH_NOARGS, NULL},
    {"reset", reset, METH_NOARGS, NULL}, {"taken", taken, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "other_hook", NULL, -1, methods};
PyMODINIT_FUNC PyInit_other_hook(void) { return PyModule_Create(&definition); }
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    compiler = shlex.split(os.environ.get("CC") or "cc")
    if shutil.which(compiler[0]) is None:
        pytest.skip("no C compiler")
    folder: Path = tmp_path_factory.mktemp("other_hook")
    source, library = folder / "other_hook.c", folder / "other_hook.so"
    source.write_text(SOURCE)
    include = sysconfig.get_paths()["include"]
    subprocess.run(
        [*compiler, "-O1", "-fPIC", "-shared", f"-I{include}", str(source), "-o", str(library)], check=True
    )
    spec = importlib.util.spec_from_file_location("other_hook", library)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def other(built: Any) -> Iterator[Any]:
    built.taken()
    yield built
    built.reset()


def original(x: int) -> int:
    return inner(x) + 1


def inner(x: int) -> int:
    return x


def replacement(x: int) -> int:
    return inner(x) * 100


def wrapped_original() -> frame_hook.RegionFunction:
    code = original.__code__.replace()
    function = type(original)(code, globals(), "original")
    return frame_hook.optimize(
        function, lambda frame, count: Entry(replacement.__code__) if frame.code is code else None
    )


def test_installed_before_ours(other: Any) -> None:
    other.install()
    wrapped = wrapped_original()
    assert [wrapped(i) for i in range(3)] == [0, 100, 200]
    assert other.taken() >= 6, "it sees every frame"
    assert original(1) == 2
    assert other.taken() == 2, "and goes on seeing them once each"
    other.remove()
    assert not frame_hook.is_installed()


def test_installed_on_top_of_ours(other: Any) -> None:
    wrapped = wrapped_original()
    with frame_hook.region(lambda frame, count: None):
        other.install()
        assert wrapped(1) == 100
        assert other.taken() > 0
    assert wrapped(2) == 200
    assert original(1) == 2
    assert [wrapped(i) for i in range(3)] == [0, 100, 200]
    other.taken()
    assert original(1) == 2
    assert other.taken() == 2


def test_removed_by_another_and_asserted_again(other: Any) -> None:
    wrapped = wrapped_original()
    with frame_hook.region(lambda frame, count: None):
        other.reset()
        assert not frame_hook.is_installed()
        assert wrapped(1) == 100
        assert frame_hook.is_installed()


def test_deep_recursion_below_another_hook(other: Any) -> None:
    def down(n: int) -> int:
        return down(n + 1)

    other.install()
    with pytest.raises(RecursionError):
        frame_hook.optimize(down, lambda frame, count: None)(0)
