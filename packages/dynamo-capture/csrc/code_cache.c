/* Per-code state in the code object's extra slot, and the entries in it. */
#include "code_cache.h"
#include "guards_abi.h"

#include <stddef.h>
#include <structmember.h>

static Py_ssize_t extra_index = -1;

static const FXSGuardsABI *guards_abi(void);

/* Entries come and go: what told them apart does so no more. */
static void drop_index(FXSCodeState *state)
{
    if (state->index != NULL) {
        guards_abi()->index_free(state->index);
    }
    state->index = NULL;
    state->is_indexed = 0;
}

static void free_state(void *pointer)
{
    FXSCodeState *state = pointer;
    if (state != NULL) {
        fxs_code_state_clear(state);
        fxs_code_state_forgive(state);
        PyMem_Free(state);
    }
}

FXSCodeState *fxs_code_state(PyCodeObject *code)
{
    void *found = NULL;
    if (fxs_get_extra((PyObject *)code, extra_index, &found) < 0) {
        PyErr_Clear();
        return NULL;
    }
    return found;
}

FXSCodeState *fxs_code_state_make(PyCodeObject *code)
{
    FXSCodeState *state = fxs_code_state(code);
    if (state != NULL) {
        return state;
    }
    state = PyMem_Calloc(1, sizeof(FXSCodeState));
    if (state == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    if (fxs_set_extra((PyObject *)code, extra_index, state) < 0) {
        PyMem_Free(state);
        return NULL;
    }
    return state;
}

FXSSkip fxs_code_state_skip(FXSCodeState *state, void *callback)
{
    FXSSkip skip = state->skip;
    for (FXSRefusal *refusal = state->refusals; refusal != NULL; refusal = refusal->next) {
        if ((callback == NULL || refusal->callback == callback) && refusal->skip > skip) {
            skip = refusal->skip;
        }
    }
    return skip;
}

int fxs_code_state_refuse(FXSCodeState *state, void *callback, FXSSkip skip)
{
    for (FXSRefusal *refusal = state->refusals; refusal != NULL; refusal = refusal->next) {
        if (refusal->callback == callback) {
            refusal->skip = skip;
            return 0;
        }
    }
    FXSRefusal *made = PyMem_Malloc(sizeof(FXSRefusal));
    if (made == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *made = (FXSRefusal){callback, skip, state->refusals};
    state->refusals = made;
    return 0;
}

void fxs_code_state_forgive(FXSCodeState *state)
{
    while (state->refusals != NULL) {
        FXSRefusal *refusal = state->refusals;
        state->refusals = refusal->next;
        PyMem_Free(refusal);
    }
}

int fxs_code_state_add(FXSCodeState *state, FXSEntry *entry)
{
    if (entry->state != NULL) {
        PyErr_SetString(PyExc_ValueError, "the entry is cached already");
        return -1;
    }
    drop_index(state);
    entry->state = state;
    entry->next = state->first;
    state->first = (FXSEntry *)Py_NewRef(entry);
    state->count++;
    state->version++;
    return 0;
}

static FXSEntry **find_link(FXSCodeState *state, FXSEntry *entry)
{
    FXSEntry **link = &state->first;
    while (*link != NULL && *link != entry) {
        link = &(*link)->next;
    }
    return link;
}

void fxs_entry_unlink(FXSEntry *entry)
{
    FXSCodeState *state = entry->state;
    if (state == NULL) {
        return;
    }
    drop_index(state);
    FXSEntry **link = find_link(state, entry);
    *link = entry->next;
    entry->next = NULL;
    entry->state = NULL;
    state->count--;
    state->version++;
    Py_DECREF(entry);
}

void fxs_code_state_clear(FXSCodeState *state)
{
    while (state->first != NULL) {
        fxs_entry_unlink(state->first);
    }
}

void fxs_code_state_touch(FXSCodeState *state, FXSEntry *entry)
{
    if (state->first == entry || entry->state != state) {
        return;
    }
    FXSEntry **link = find_link(state, entry);
    *link = entry->next;
    entry->next = state->first;
    state->first = entry;
    state->version++;
}

Py_ssize_t fxs_argument_slots(PyCodeObject *code)
{
    return (Py_ssize_t)code->co_argcount + code->co_kwonlyargcount + ((code->co_flags & CO_VARARGS) != 0)
           + ((code->co_flags & CO_VARKEYWORDS) != 0);
}

/* Whether two code objects have the same free variables in the same order. */
static int same_free_variables(PyCodeObject *one, PyCodeObject *two)
{
    if (one->co_nfreevars != two->co_nfreevars) {
        return 0;
    }
    for (int i = 1; i <= one->co_nfreevars; i++) {
        PyObject *left = PyTuple_GET_ITEM(one->co_localsplusnames, one->co_nlocalsplus - i);
        PyObject *right = PyTuple_GET_ITEM(two->co_localsplusnames, two->co_nlocalsplus - i);
        if (PyUnicode_Compare(left, right) != 0) {
            return 0;
        }
    }
    return 1;
}

int fxs_check_replacement(PyCodeObject *original, PyCodeObject *replacement)
{
    const int generators = CO_GENERATOR | CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR;
    const int stars = CO_VARARGS | CO_VARKEYWORDS | CO_OPTIMIZED | CO_NEWLOCALS;
    const char *problem = NULL;
    if ((original->co_flags | replacement->co_flags) & generators) {
        problem = "generators and coroutines are not replaced";
    }
    else if ((original->co_flags & stars) != (replacement->co_flags & stars)
             || original->co_argcount != replacement->co_argcount
             || original->co_posonlyargcount != replacement->co_posonlyargcount
             || original->co_kwonlyargcount != replacement->co_kwonlyargcount) {
        problem = "the replacement takes other arguments";
    }
    else if (!same_free_variables(original, replacement)) {
        problem = "the replacement has other free variables";
    }
    if (problem != NULL) {
        PyErr_Format(PyExc_ValueError, "%U cannot be replaced: %s", original->co_qualname, problem);
        return -1;
    }
    return 0;
}

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

/* The guards package's functions; NULL, without exception, while it is not imported or where it is another version's. */
static const FXSGuardsABI *guards_abi(void)
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
    const FXSGuardsABI *abi = guard == Py_None ? NULL : guards_abi();
    return abi != NULL && PyObject_TypeCheck(guard, abi->evaluator_type) ? abi->check : NULL;
}

/* Two entries are as quickly tried as told apart. */
enum { FEW_ENTRIES = 2, MOST_INDEXED = 64 };

static void make_index(FXSCodeState *state)
{
    PyObject *evaluators[MOST_INDEXED];
    int n = 0;
    state->is_indexed = 1;
    for (FXSEntry *entry = state->first; entry != NULL; entry = entry->next) {
        entry->ordinal = entry->native != NULL && n < MOST_INDEXED ? n : -1;
        if (entry->ordinal >= 0) {
            evaluators[n++] = entry->guard;
        }
    }
    state->index = n > FEW_ENTRIES ? guards_abi()->index_build(evaluators, n) : NULL;
}

uint64_t fxs_code_state_candidates(FXSCodeState *state, PyObject **slots, Py_ssize_t count, PyObject *function)
{
    if (state->count <= FEW_ENTRIES) {
        return UINT64_MAX;
    }
    if (!state->is_indexed) {
        make_index(state);
    }
    return state->index == NULL ? UINT64_MAX : guards_abi()->index_candidates(state->index, slots, count, function);
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
    return PyBool_FromLong(((FXSEntry *)self)->state != NULL);
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

int fxs_code_cache_init(void)
{
    extra_index = fxs_request_extra_index(free_state);
    if (extra_index < 0) {
        PyErr_SetString(PyExc_RuntimeError, "no slot for data per code object is left in this interpreter");
        return -1;
    }
    return PyType_Ready(&FXSEntry_Type);
}
