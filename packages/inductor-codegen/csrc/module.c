/* The extension module inductor_codegen._runtime. */
#include "graph.h"

#include <stdio.h>

#include "described.h"
#include "shim.h"
#include "tensors.h"
#include "watching.h"

static PyObject *exports(PyObject *Py_UNUSED(module), PyObject *name) {
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) return NULL;
    return PyBool_FromLong(shim_lookup(text) != NULL);
}

static PyObject *scalar_type(PyObject *Py_UNUSED(module), PyObject *name) {
    const char *text = PyUnicode_AsUTF8(name);
    char symbol[96];
    if (!text) return NULL;
    snprintf(symbol, sizeof(symbol), "aoti_torch_dtype_%s", text);
    int32_t (*number)(void) = (int32_t(*)(void))shim_lookup(symbol);
    if (!number) return PyErr_Format(PyExc_KeyError, "torch's C interface has no number for the dtype %s", text);
    return PyLong_FromLong(number());
}

static PyMethodDef methods[] = {
    {"calibrate", tensor_calibrate, METH_VARARGS,
     "calibrate(tensor_type, parameter_type, examples, use_slot=True): learn where tensor objects keep their tensor, in "
     "bytes, or -1 where `_cdata` must be asked."},
    {"exports", exports, METH_O, "Whether the loaded torch (or this runtime) has a C function of that name."},
    {"scalar_type", scalar_type, METH_O, "The number of a dtype in torch's C interface; KeyError if it has none."},
    {"described", described, METH_VARARGS,
     "described(values, positions, addresses): bytes that are equal for tensors at these positions that a compiled graph reads "
     "alike: same type, device, sizes and strides, and the same memory, if `addresses` is true."},
    {"watch", watching_watch, METH_O,
     "watch(begins): from now on kernels and library calls of compiled graphs are timed, or no longer; watchers add up."},
    {"watched", watching_watched, METH_O,
     "watched(on_gpu): what was timed in this process, {label: (how often, nanoseconds in all, nanoseconds at least)}."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "inductor_codegen._runtime", "Calls generated code on tensors.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__runtime(void) {
    if (shim_bind() < 0) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    PyObject *type = PyType_FromSpec(&graph_spec);
    if (!type || PyModule_AddObjectRef(module, "CompiledGraph", type) < 0 ||
        PyModule_AddIntConstant(module, "ENTRY_ABI", ENTRY_ABI) < 0) {
        Py_XDECREF(type);
        Py_DECREF(module);
        return NULL;
    }
    Py_DECREF(type);
    return module;
}
