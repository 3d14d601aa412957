#include "method_load.h"

#if PY_VERSION_HEX >= 0x030D0000
#include "internal/pycore_object.h"
#endif

static PyObject *caller; /* operator.call */

static int find_caller(void)
{
    PyObject *module = caller == NULL ? PyImport_ImportModule("_operator") : NULL;
    if (module != NULL) {
        caller = PyObject_GetAttrString(module, "call");
        Py_DECREF(module);
    }
    return caller == NULL ? -1 : 0;
}

PyObject *fxs_load_method(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyUnicode_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "load_method(owner, name)");
        return NULL;
    }
    if (find_caller() < 0) {
        return NULL;
    }
    PyObject *found = NULL;
    int takes_self = _PyObject_GetMethod(args[0], args[1], &found);
    if (found == NULL) {
        return NULL;
    }
    PyObject *pair = takes_self ? PyTuple_Pack(2, args[0], found) : PyTuple_Pack(2, found, caller);
    Py_DECREF(found);
    return pair;
}

PyObject *fxs_leaves_methods(PyObject *Py_UNUSED(module), PyObject *cls)
{
    if (!PyType_Check(cls)) {
        PyErr_Format(PyExc_TypeError, "a class is needed, not %R", Py_TYPE(cls));
        return NULL;
    }
    return PyBool_FromLong(((PyTypeObject *)cls)->tp_getattro == PyObject_GenericGetAttr);
}
