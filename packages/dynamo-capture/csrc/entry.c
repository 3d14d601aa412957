/* An entry: what it is for Python, and whether its guard holds. */
#include "code_cache.h"
#include "guards_abi.h"

#include <stddef.h>
#include <structmember.h>

static int holds_by_python(FXSEntry *entry, PyObject **slots, Py_ssize_t count, PyObject *function)
{
    PyObject *locals = PyTuple_New(count);
    if (locals == NULL) {
        PyErr_WriteUnraisable(entry->guard);
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *value = slots[i] == NULL ? Py_None : slots[i];
        PyTuple_SET_ITEM(locals, i, Py_NewRef(value));
    }
    PyObject *answer = PyObject_CallFunctionObjArgs(entry->guard, locals, function, NULL);
    Py_DECREF(locals);
    int holds = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    if (holds < 0) {
        if (PyErr_ExceptionMatches(PyExc_RecursionError)) {
            PyErr_Clear(); /* too deep to check; not the guard's fault */
        }
        else {
            PyErr_WriteUnraisable(entry->guard);
        }
        return 0;
    }
    return holds;
}

int fxs_entry_holds(FXSEntry *entry, PyObject **slots, Py_ssize_t count, PyObject *function)
{
    if (entry->native != NULL) {
        return entry->native(entry->guard, slots, count, function) > 0;
    }
    return entry->guard == Py_None ? 1 : holds_by_python(entry, slots, count, function);
}

const FXSGuardsABI *fxs_guards_abi(void)
{
    static const FXSGuardsABI *abi = NULL;
    if (abi == NULL) {
        if (PyDict_GetItemString(PyImport_GetModuleDict(), FXS_GUARDS_MODULE) == NULL) {
            return NULL; /* never imported: no guard can be its evaluator */
        }
        const FXSGuardsABI *found = PyCapsule_Import(FXS_GUARDS_CAPSULE, 0);
        if (found == NULL) {
            PyErr_Clear();
        }
        else if (found->version == FXS_GUARDS_ABI_VERSION) {
            abi = found;
        }
    }
    return abi;
}

/* The guards package's check function if the guard is its evaluator; NULL otherwise, no exception. */
static int (*native_check(PyObject *guard))(void *, PyObject **, Py_ssize_t, PyObject *)
{
    const FXSGuardsABI *abi = guard == Py_None ? NULL : fxs_guards_abi();
    return abi != NULL && PyObject_TypeCheck(guard, abi->evaluator_type) ? abi->check : NULL;
}

static PyObject *entry_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"code", "guard", "extra", NULL};
    PyObject *code, *guard = Py_None, *extra = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|OO", names, &PyCode_Type, &code, &guard, &extra)) {
        return NULL;
    }
    int (*native)(void *, PyObject **, Py_ssize_t, PyObject *) = native_check(guard);
    if (native == NULL && guard != Py_None && !PyCallable_Check(guard)) {
        PyErr_Format(PyExc_TypeError, "a guard is None, a native evaluator or callable, not %R", Py_TYPE(guard));
        return NULL;
    }
    FXSEntry *entry = (FXSEntry *)type->tp_alloc(type, 0);
    if (entry == NULL) {
        return NULL;
    }
    entry->code = (PyCodeObject *)Py_NewRef(code);
    entry->guard = Py_NewRef(guard);
    entry->extra = Py_NewRef(extra);
    entry->native = native;
    entry->frame_size = fxs_code_frame_size(entry->code);
    return (PyObject *)entry;
}

static int entry_traverse(PyObject *self, visitproc visit, void *arg)
{
    FXSEntry *entry = (FXSEntry *)self;
    Py_VISIT(entry->code);
    Py_VISIT(entry->guard);
    Py_VISIT(entry->extra);
    return 0;
}

static int entry_clear(PyObject *self)
{
    FXSEntry *entry = (FXSEntry *)self;
    Py_CLEAR(entry->extra);
    return 0;
}

static void entry_dealloc(PyObject *self)
{
    FXSEntry *entry = (FXSEntry *)self;
    PyObject_GC_UnTrack(self);
    if (entry->weakrefs != NULL) {
        PyObject_ClearWeakRefs(self);
    }
    Py_XDECREF(entry->code);
    Py_XDECREF(entry->guard);
    Py_XDECREF(entry->extra);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *entry_invalidate(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    Py_INCREF(self);
    fxs_entry_unlink((FXSEntry *)self);
    Py_DECREF(self);
    Py_RETURN_NONE;
}

static PyObject *entry_is_cached(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(((FXSEntry *)self)->list != NULL);
}

static PyMethodDef entry_methods[] = {
    {"invalidate", entry_invalidate, METH_NOARGS, "Take the entry out of its code's cache; it never runs again."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef entry_getset[] = {
    {"cached", entry_is_cached, NULL, "Whether the entry is in a code's cache.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef entry_members[] = {
    {"code", T_OBJECT, offsetof(FXSEntry, code), READONLY, "The replacement code object."},
    {"guard", T_OBJECT, offsetof(FXSEntry, guard), READONLY, "What must hold for it to run; None: always."},
    {"extra", T_OBJECT, offsetof(FXSEntry, extra), 0, "Whatever its maker keeps with it."},
    {"hits", T_ULONGLONG, offsetof(FXSEntry, hits), READONLY, "How often it ran from the cache."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject FXSEntry_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynamo_capture._eval_frame.Entry",
    .tp_basicsize = sizeof(FXSEntry),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_doc = "Entry(code, guard=None, extra=None): a replacement code object and the guard under which it runs.",
    .tp_new = entry_new,
    .tp_traverse = entry_traverse,
    .tp_clear = entry_clear,
    .tp_dealloc = entry_dealloc,
    .tp_methods = entry_methods,
    .tp_members = entry_members,
    .tp_getset = entry_getset,
    .tp_weaklistoffset = offsetof(FXSEntry, weakrefs),
};
