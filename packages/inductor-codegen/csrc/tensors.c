#include "tensors.h"

#include <string.h>

Py_ssize_t tensor_slot = -1;
PyTypeObject *tensor_type;
PyTypeObject *parameter_type;

static void *implementation_of(PyObject *object) {
    PyObject *address = PyObject_GetAttrString(object, "_cdata");
    if (!address) return NULL;
    void *pointer = PyLong_AsVoidPtr(address);
    Py_DECREF(address);
    return pointer;
}

Handle tensor_unwrap(PyObject *object, void **cell) {
    PyTypeObject *type = Py_TYPE(object);
    if (type != tensor_type && type != parameter_type && !PyType_IsSubtype(type, tensor_type)) {
        PyErr_Format(PyExc_TypeError, "expected a torch.Tensor, got %.200s", type->tp_name);
        return NULL;
    }
    if (tensor_slot >= 0) return (char *)object + tensor_slot;
    *cell = implementation_of(object);
    return *cell ? (Handle)cell : NULL;
}

PyObject *tensor_wrap(Handle handle) {
    PyObject *object = shim.wrap(handle);
    if (!object && !PyErr_Occurred()) shim_raise("wrapping a result");
    return object;
}

/* The first word of `object` behind its header that holds its implementation's address; -1 if none, -2 with an exception. */
static Py_ssize_t slot_of(PyObject *object) {
    void *implementation = implementation_of(object);
    if (!implementation) return -2;
    Py_ssize_t size = Py_TYPE(object)->tp_basicsize;
    for (Py_ssize_t offset = sizeof(PyObject); offset + (Py_ssize_t)sizeof(void *) <= size; offset += sizeof(void *)) {
        void *word;
        memcpy(&word, (char *)object + offset, sizeof(word));
        if (word == implementation) return offset;
    }
    return -1;
}

/* Whether torch reads the same rank through the slot as Python does through the object. */
static int slot_reads_back(PyObject *object, Py_ssize_t offset) {
    int64_t rank = -1;
    if (shim.get_dim((char *)object + offset, &rank)) return 0;
    PyObject *expected = PyObject_CallMethod(object, "dim", NULL);
    if (!expected) return -1;
    long long value = PyLong_AsLongLong(expected);
    Py_DECREF(expected);
    return value == rank;
}

PyObject *tensor_calibrate(PyObject *Py_UNUSED(module), PyObject *args) {
    PyTypeObject *tensor, *parameter;
    PyObject *examples;
    int use_slot = 1;
    if (!PyArg_ParseTuple(args, "O!O!O!|p", &PyType_Type, &tensor, &PyType_Type, &parameter, &PyTuple_Type, &examples,
                          &use_slot)) {
        return NULL;
    }
    Py_ssize_t agreed = -1;
    Py_ssize_t count = use_slot ? PyTuple_GET_SIZE(examples) : 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *example = PyTuple_GET_ITEM(examples, i);
        Py_ssize_t found = slot_of(example);
        if (found == -2) return NULL;
        int good = found >= 0 ? slot_reads_back(example, found) : 0;
        if (good < 0) return NULL;
        if (!good || (i > 0 && found != agreed)) {
            agreed = -1;
            break;
        }
        agreed = found;
    }
    Py_INCREF(tensor);
    Py_XSETREF(tensor_type, tensor);
    Py_INCREF(parameter);
    Py_XSETREF(parameter_type, parameter);
    tensor_slot = agreed;
    return PyLong_FromSsize_t(agreed);
}
