#include "described.h"

#include <string.h>

#include "tensors.h"

/* Words of a tensor besides its sizes and strides: type, device, rank, address. */
enum { FIXED_WORDS = 5 };

/* Write the words of a tensor to `out`, or only count them where that is NULL; -1 with an exception. */
static Py_ssize_t describe(Handle tensor, int addresses, int64_t *out) {
    int64_t rank = 0, *sizes = NULL, *strides = NULL;
    int32_t dtype = 0, type = 0, index = 0;
    void *address = NULL;
    int failed = shim.get_dim(tensor, &rank);
    if (!failed && out) {
        failed = shim.get_sizes(tensor, &sizes) || shim.get_strides(tensor, &strides) || shim.get_dtype(tensor, &dtype) ||
                 shim.get_device_type(tensor, &type) || shim.get_device_index(tensor, &index) ||
                 (addresses && shim.get_data_ptr(tensor, &address));
    }
    if (failed) {
        shim_raise("describing a tensor");
        return -1;
    }
    if (out) {
        const int64_t fixed[FIXED_WORDS] = {dtype, type, index, rank, (int64_t)(intptr_t)address};
        memcpy(out, fixed, sizeof(fixed));
        memcpy(out + FIXED_WORDS, sizes, rank * sizeof(int64_t));
        memcpy(out + FIXED_WORDS + rank, strides, rank * sizeof(int64_t));
    }
    return FIXED_WORDS + 2 * (Py_ssize_t)rank;
}

/* All words of the tensors at `positions`, as `describe` has them. */
static Py_ssize_t describe_all(PyObject *values, PyObject *positions, int addresses, int64_t *out) {
    Py_ssize_t words = 0, count = PySequence_Fast_GET_SIZE(values);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positions); i++) {
        Py_ssize_t position = PyLong_AsSsize_t(PyTuple_GET_ITEM(positions, i));
        if (position == -1 && PyErr_Occurred()) return -1;
        if (position < 0 || position >= count) {
            PyErr_SetString(PyExc_IndexError, "a position that no value has");
            return -1;
        }
        void *cell;
        Handle tensor = tensor_unwrap(PySequence_Fast_GET_ITEM(values, position), &cell);
        Py_ssize_t more = tensor ? describe(tensor, addresses, out ? out + words : NULL) : -1;
        if (more < 0) return -1;
        words += more;
    }
    return words;
}

PyObject *described(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *given, *positions;
    int addresses;
    if (!PyArg_ParseTuple(args, "OO!p", &given, &PyTuple_Type, &positions, &addresses)) return NULL;
    PyObject *values = PySequence_Fast(given, "values are a tuple or a list");
    if (!values) return NULL;
    Py_ssize_t words = describe_all(values, positions, addresses, NULL);
    PyObject *made = words < 0 ? NULL : PyBytes_FromStringAndSize(NULL, words * (Py_ssize_t)sizeof(int64_t));
    if (made && describe_all(values, positions, addresses, (int64_t *)PyBytes_AS_STRING(made)) < 0) Py_CLEAR(made);
    Py_DECREF(values);
    return made;
}
