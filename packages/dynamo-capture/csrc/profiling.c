/* Ranges that a profiler shows for calls of compiled functions: one comparison where there is no profiler. */
#include "profiling.h"
#include "watched_name.h"

static FXSWatchedName flag; /* owns its dict and its name */
static PyObject *begin;

int fxs_watch_profiler(PyObject *where, PyObject *name, PyObject *function)
{
    if (!PyDict_Check(where) || !PyUnicode_Check(name) || !PyCallable_Check(function)) {
        PyErr_SetString(PyExc_TypeError, "watch_profiler(variables, name, begin): a dict, a text and a function");
        return -1;
    }
    Py_XSETREF(flag.dict, Py_NewRef(where));
    Py_XSETREF(flag.name, Py_NewRef(name));
    flag.version = 0;
    Py_XSETREF(begin, Py_NewRef(function));
    return 0;
}

PyObject *fxs_begin_range(PyObject *region)
{
    if (FXS_LIKELY(flag.dict == NULL || fxs_named(&flag) != Py_True)) {
        return NULL;
    }
    PyObject *range = PyObject_CallOneArg(begin, region);
    if (range == NULL) {
        PyErr_WriteUnraisable(begin);
    } else if (range == Py_None) {
        Py_CLEAR(range);
    }
    return range;
}

void fxs_end_range(PyObject *range)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *done = PyObject_CallMethod(range, "__exit__", "OOO", Py_None, Py_None, Py_None);
    if (done == NULL) {
        PyErr_WriteUnraisable(range);
    }
    Py_XDECREF(done);
    Py_DECREF(range);
    PyErr_Restore(type, value, traceback);
}
