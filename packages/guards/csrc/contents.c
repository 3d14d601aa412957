/* The numbers in tensors of one element, read from memory: an optimizer has a counter a parameter, and a step that depends on
 * them asks for all of them. fx_guards/contents.py has the same in Python, which answers for tensors that are not read
 * here. */
#define _GNU_SOURCE
#include "native.h"

#include <dlfcn.h>
#include <stdlib.h>

typedef struct {
    int code; /* torch's number of the dtype */
    char format; /* as in struct */
    int64_t size;
} Number;

enum { NUMBERS = 4 };

static int contents_ready = 0;
static uint64_t usual_keys; /* dispatch keys of tensors on a CPU whose memory holds their numbers as they are */
static Number numbers[NUMBERS];

static int32_t (*data_of)(void *handle, void **result);
static int32_t (*numel_of)(void *handle, int64_t *result);
static int32_t (*bytes_of)(void *handle, int64_t *result);

/* set_number_layout((keys, codes of float32, float64, int32, int64)) or None: nothing is read here. */
PyObject *set_number_layout(PyObject *module, PyObject *layout) {
    (void)module;
    static const char formats[] = "fdiq";
    static const int64_t sizes[] = {4, 8, 4, 8};
    contents_ready = 0;
    if (layout == Py_None) Py_RETURN_NONE;
    unsigned long long keys;
    int codes[NUMBERS];
    if (!PyArg_ParseTuple(layout, "Kiiii", &keys, &codes[0], &codes[1], &codes[2], &codes[3])) return NULL;
    for (int i = 0; i < NUMBERS; i++) numbers[i] = (Number){codes[i], formats[i], sizes[i]};
    usual_keys = keys;
    void *library = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
    if (library == NULL) Py_RETURN_NONE;
    data_of = (int32_t (*)(void *, void **))dlsym(library, "aoti_torch_get_data_ptr");
    numel_of = (int32_t (*)(void *, int64_t *))dlsym(library, "aoti_torch_get_numel");
    bytes_of = (int32_t (*)(void *, int64_t *))dlsym(library, "aoti_torch_get_storage_size");
    dlclose(library);
    contents_ready = data_of != NULL && numel_of != NULL && bytes_of != NULL;
    Py_RETURN_NONE;
}

static const Number *number_of(int code) {
    for (int i = 0; i < NUMBERS; i++)
        if (numbers[i].code == code) return &numbers[i];
    return NULL;
}

static PyObject *value_at(const void *place, char format) {
    switch (format) {
    case 'f': return PyFloat_FromDouble((double)*(const float *)place);
    case 'd': return PyFloat_FromDouble(*(const double *)place);
    case 'i': return PyLong_FromLong(*(const int32_t *)place);
    default: return PyLong_FromLongLong(*(const int64_t *)place);
    }
}

enum { OTHERWISE = -1, NO = 0, YES = 1 };

/* Whether a tensor is one number in memory of its own, which is at *place. */
static int is_alone(PyObject *tensor, void **place, char *format) {
    if (!tensor_is_plain(tensor) || tensor_keys(tensor) & ~usual_keys) return OTHERWISE;
    const Number *number = number_of(tensor_dtype(tensor));
    int64_t count, bytes;
    if (number == NULL || numel_of(tensor_handle(tensor), &count) != 0) return OTHERWISE;
    if (count != 1) return NO;
    if (bytes_of(tensor_handle(tensor), &bytes) != 0) return OTHERWISE;
    if (bytes != number->size) return NO;
    *format = number->format;
    return data_of(tensor_handle(tensor), place) == 0 && *place != NULL ? YES : OTHERWISE;
}

static int by_address(const void *a, const void *b) {
    uintptr_t one = *(const uintptr_t *)a, other = *(const uintptr_t *)b;
    return (one > other) - (one < other);
}

static PyObject *read_all(PyObject *tensors, PyObject *others, void **places) {
    Py_ssize_t n = PyTuple_GET_SIZE(tensors), more = PyTuple_GET_SIZE(others);
    PyObject *found = PyList_New(n);
    if (found == NULL) return NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        char format = 0;
        int answer = is_alone(PyTuple_GET_ITEM(tensors, i), &places[i], &format);
        PyObject *value = answer == YES ? value_at(places[i], format) : NULL;
        if (value == NULL) {
            Py_DECREF(found);
            if (answer == YES) return NULL;
            return Py_NewRef(answer == NO ? Py_None : Py_NotImplemented);
        }
        PyList_SET_ITEM(found, i, value);
    }
    for (Py_ssize_t i = 0; i < more; i++) {
        PyObject *other = PyTuple_GET_ITEM(others, i);
        if (!tensor_is_plain(other) || data_of(tensor_handle(other), &places[n + i]) != 0) {
            Py_DECREF(found);
            return Py_NewRef(Py_NotImplemented);
        }
    }
    qsort(places, (size_t)(n + more), sizeof *places, by_address);
    for (Py_ssize_t i = 1; i < n + more; i++)
        if (places[i] == places[i - 1]) {
            Py_DECREF(found);
            Py_RETURN_NONE;
        }
    return found;
}

/* lone_numbers(tensors, others): see fx_guards/contents.py; NotImplemented: Python is to answer. */
PyObject *lone_numbers(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs != 2 || !PyTuple_CheckExact(args[0]) || !PyTuple_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "lone_numbers takes two tuples");
        return NULL;
    }
    if (!contents_ready || !tensor_ready) return Py_NewRef(Py_NotImplemented);
    size_t count = (size_t)(PyTuple_GET_SIZE(args[0]) + PyTuple_GET_SIZE(args[1]));
    void **places = PyMem_Malloc((count + 1) * sizeof *places);
    if (places == NULL) return PyErr_NoMemory();
    PyObject *found = read_all(args[0], args[1], places);
    PyMem_Free(places);
    return found;
}
