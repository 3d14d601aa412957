/* What a set remembers of its members. */
#include "set_hashes.h"

#if PY_VERSION_HEX >= 0x030D0000
/* Exported, but declared in a header of the interpreter's own. */
PyAPI_FUNC(int) _PySet_NextEntry(PyObject *set, Py_ssize_t *pos, PyObject **key, Py_hash_t *hash);
#endif

PyObject *fxs_set_hashes(PyObject *Py_UNUSED(module), PyObject *set)
{
    if (!PyAnySet_CheckExact(set)) {
        PyErr_SetString(PyExc_TypeError, "a set or frozenset is needed");
        return NULL;
    }
    PyObject *hashes = PyList_New(0), *member;
    Py_ssize_t position = 0;
    Py_hash_t hash;
    while (hashes != NULL && _PySet_NextEntry(set, &position, &member, &hash)) {
        PyObject *number = PyLong_FromSsize_t(hash);
        if (number == NULL || PyList_Append(hashes, number) < 0) {
            Py_CLEAR(hashes);
        }
        Py_XDECREF(number);
    }
    return hashes;
}
