/* The module object: what Python sees of the native evaluator, and its start-up self-tests. */
#include "native.h"

#include "dict_version.h"
#include "guards_api.h"

PyObject *module_getattr = NULL, *read_size = NULL, *read_stride = NULL;
int dict_versions_work = 0;

static void *build_index(PyObject *const *evaluators, int n) { return index_build(evaluators, n); }

static uint64_t candidates_by(const void *index, PyObject **fastlocals, Py_ssize_t nlocals, PyObject *func) {
    return index_candidates(index, fastlocals, nlocals, func);
}

static void free_index(void *index) { index_free(index); }

static FXSGuardsAPI api = {FXS_GUARDS_API_VERSION, &Evaluator_Type, evaluator_check_frame,
                           build_index,            candidates_by,   free_index};

/* set_tensor_layout(offsets or None): see tensor_init. */
static PyObject *set_tensor_layout(PyObject *module, PyObject *offsets) {
    (void)module;
    if (tensor_init(offsets) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *set_module_getattr(PyObject *module, PyObject *function) {
    (void)module;
    Py_XSETREF(module_getattr, Py_NewRef(function));
    Py_RETURN_NONE;
}

static PyObject *set_extent_readers(PyObject *module, PyObject *readers) {
    (void)module;
    PyObject *size, *stride;
    if (!PyArg_ParseTuple(readers, "OO", &size, &stride)) return NULL;
    Py_XSETREF(read_size, Py_NewRef(size));
    Py_XSETREF(read_stride, Py_NewRef(stride));
    Py_RETURN_NONE;
}

static PyObject *bind_state(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    state_bind();
    return state_names();
}

static PyObject *read_state(PyObject *module, PyObject *index) {
    (void)module;
    long reader = PyLong_AsLong(index);
    if (reader == -1 && PyErr_Occurred()) return NULL;
    return PyLong_FromUnsignedLongLong(state_read((int)reader));
}

static PyObject *use_dict_versions(PyObject *module, PyObject *flag) {
    (void)module;
    int on = PyObject_IsTrue(flag);
    if (on < 0) return NULL;
#ifndef DICT_VERSIONS_IN_DICTS
    on = on && dict_watch_start();
#endif
    dict_versions_work = on;
    Py_RETURN_NONE;
}

/* give_dicts_tables(flag): see dict_watch.c; False where dicts have versions of their own. */
static PyObject *give_dicts_tables(PyObject *module, PyObject *flag) {
    (void)module;
    int on = PyObject_IsTrue(flag);
    if (on < 0) return NULL;
#ifdef DICT_VERSIONS_IN_DICTS
    on = 0;
#else
    dicts_need_tables = on;
#endif
    return PyBool_FromLong(on);
}

static PyObject *version_of(PyObject *module, PyObject *dict) {
    (void)module;
    if (!PyDict_Check(dict)) return PyErr_Format(PyExc_TypeError, "not a dict");
    return PyLong_FromUnsignedLongLong(dict_version(dict));
}

static PyObject *same_constant(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs != 2) return PyErr_Format(PyExc_TypeError, "constants_equal takes two values");
    return PyBool_FromLong(constants_equal(args[0], args[1]));
}

/* candidates(evaluators, function, *slots): as an index of those evaluators tells them; None where it tells nothing. */
static PyObject *candidates(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    if (nargs < 2 || !PyTuple_CheckExact(args[0]) || !PyFunction_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "candidates takes a tuple of evaluators, a function and its argument slots");
    Py_ssize_t n = PyTuple_GET_SIZE(args[0]);
    for (Py_ssize_t i = 0; i < n; i++)
        if (!Py_IS_TYPE(PyTuple_GET_ITEM(args[0], i), &Evaluator_Type)) return PyErr_Format(PyExc_TypeError, "no evaluator");
    GuardIndex *index = n > INT_MAX ? NULL : index_build(((PyTupleObject *)args[0])->ob_item, (int)n);
    if (index == NULL) Py_RETURN_NONE;
    uint64_t mask = index_candidates(index, (PyObject **)args + 2, nargs - 2, args[1]);
    index_free(index);
    PyObject *found = PyList_New(0);
    for (Py_ssize_t i = 0; found != NULL && i < n; i++) {
        PyObject *number = mask >> i & 1 ? PyLong_FromSsize_t(i) : NULL;
        if (number != NULL && PyList_Append(found, number) < 0) Py_CLEAR(found);
        Py_XDECREF(number);
    }
    return found;
}

static PyObject *instance_dict_below(PyObject *module, PyObject *obj) {
    (void)module;
    return own_dict(obj);
}

static PyMethodDef methods[] = {
    {"set_tensor_layout", set_tensor_layout, METH_O, "Offsets of tensor metadata, or None: off."},
    {"tensor_metadata", tensor_metadata, METH_O, "A tensor's metadata as read natively."},
    {"set_number_layout", set_number_layout, METH_O, "Dispatch keys and dtypes of numbers in memory, or None: off."},
    {"lone_numbers", (PyCFunction)(void (*)(void))lone_numbers, METH_FASTCALL, "fx_guards.contents, natively."},
    {"set_module_getattr", set_module_getattr, METH_O, "torch.nn.Module.__getattr__."},
    {"set_extent_readers", set_extent_readers, METH_VARARGS, "(tensor, dim) -> size; (tensor, dim) -> stride."},
    {"bind_state", bind_state, METH_NOARGS, "Find torch's state functions: name -> reader."},
    {"read_state", read_state, METH_O, "The number that a reader sees now, in this thread."},
    {"use_dict_versions", use_dict_versions, METH_O, "Turn skipping by dict versions on or off."},
    {"give_dicts_tables", give_dicts_tables, METH_O, "Give each dict that gets a version a table of its own."},
    {"dict_version", version_of, METH_O, "A dict's version, or 0 where there is none."},
    {"constants_equal", (PyCFunction)(void (*)(void))same_constant, METH_FASTCALL, "fx_guards.kinds.constants, natively."},
    {"candidates", (PyCFunction)(void (*)(void))candidates, METH_FASTCALL,
     "candidates(evaluators, function, *slots): which may hold, by the fact that tells most apart; None: none does."},
    {"instance_dict", instance_dict_below, METH_O, "An object's own dictionary, whatever its class makes of __dict__."},
    {"is_instance", (PyCFunction)(void (*)(void))is_instance, METH_FASTCALL, "is_instance($module, value, cls, /)\n--\n\nisinstance() that asks classes, not objects."},
    {"make_natively", make_natively, METH_VARARGS, "make_natively(cls, init, fields): calls of a dataclass make instances natively."},
    {NULL, NULL, 0, NULL},
};

static PyObject *numbered(const char *const *names, int count) {
    PyObject *table = PyDict_New();
    for (int i = 0; table != NULL && i < count; i++) {
        PyObject *number = PyLong_FromLong(i);
        if (number == NULL || PyDict_SetItemString(table, names[i], number) < 0) Py_CLEAR(table);
        Py_XDECREF(number);
    }
    return table;
}

static int add(PyObject *module, const char *name, PyObject *value) {
    int result = value == NULL ? -1 : PyModule_AddObjectRef(module, name, value);
    Py_XDECREF(value);
    return result;
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "fx_guards._native", "The native guard evaluator.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) {
    if (PyType_Ready(&Evaluator_Type) < 0 || PyType_Ready(&Fetcher_Type) < 0 || class_check_ready() < 0 ||
        record_ready() < 0)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL) return NULL;
    if (PyModule_AddType(module, &Evaluator_Type) < 0 || PyModule_AddType(module, &Fetcher_Type) < 0 ||
        add(module, "ACCESSES", numbered(access_names, ACCESS_COUNT)) < 0 ||
        add(module, "CHECKS", numbered(check_names, CHECK_COUNT)) < 0 ||
        add(module, "SHAPE_OPS", numbered(shape_op_names, OP_COUNT)) < 0 ||
        add(module, "_C_API", PyCapsule_New(&api, FXS_GUARDS_API_CAPSULE, NULL)) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
