/* Tail calls between resume functions: one returns `rest(next, ...)`, and the caller of the first one goes on with it. */
#include "rest.h"
#include "thread_state.h"

static int rest_traverse(PyObject *self, visitproc visit, void *arg)
{
    FXSRest *rest = (FXSRest *)self;
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++) {
        Py_VISIT(rest->call[i]);
    }
    return 0;
}

static void rest_dealloc(PyObject *self)
{
    FXSRest *rest = (FXSRest *)self;
    PyObject_GC_UnTrack(self);
    for (Py_ssize_t i = 1; i < Py_SIZE(self); i++) { /* in the order in which a frame does, the cells at last */
        Py_XDECREF(rest->call[i]);
    }
    Py_XDECREF(rest->call[0]);
    PyObject_GC_Del(self);
}

static Py_ssize_t rest_length(PyObject *self)
{
    return Py_SIZE(self) - 1;
}

static PyObject *rest_item(PyObject *self, Py_ssize_t index)
{
    if (index < 0 || index >= rest_length(self) || ((FXSRest *)self)->call[1 + index] == NULL) {
        PyErr_SetString(PyExc_IndexError, "no such argument, or no longer");
        return NULL;
    }
    return Py_NewRef(((FXSRest *)self)->call[1 + index]);
}

static PySequenceMethods rest_as_sequence = {.sq_length = rest_length, .sq_item = rest_item};

/* A function has run for the last time: its cells are let go in their order, as a frame does with its own. A tuple lets
 * go of what it holds from the last on. `holders`: how many references to the function there may be. */
static void empty_closure(PyObject *function, Py_ssize_t holders)
{
    static PyObject *nothing = NULL;
    PyObject *closure = PyFunction_Check(function) ? PyFunction_GET_CLOSURE(function) : NULL;
    if (closure == NULL || Py_REFCNT(function) > holders || Py_REFCNT(closure) > 1) {
        return;
    }
    if (nothing == NULL && (nothing = PyCell_New(NULL)) == NULL) {
        PyErr_Clear();
        return;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(closure); i++) {
        PyObject *cell = PyTuple_GET_ITEM(closure, i);
        PyTuple_SET_ITEM(closure, i, Py_NewRef(nothing));
        Py_DECREF(cell);
    }
}

/* Make the call of a rest, whose arguments move into the frame that starts; that is done once. */
static PyObject *call_moving(FXSRest *rest)
{
    PyObject *function = rest->call[0];
    fxs_thread.handing_over = PyFunction_Check(function) ? rest : NULL;
    PyObject *result = PyObject_Vectorcall(function, rest->call + 1, (size_t)(Py_SIZE(rest) - 1), NULL);
    fxs_thread.handing_over = NULL;
    if (FXS_LIKELY(result != NULL)) {
        empty_closure(function, 1);
    }
    else {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        empty_closure(function, 2); /* its frame is in the traceback */
        PyErr_Restore(type, value, traceback);
    }
    return result;
}

/* Whether the arguments are those of a call of a rest that has not been made; an exception otherwise. */
static int may_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    FXSRest *rest = (FXSRest *)self;
    if (PyTuple_GET_SIZE(args) != 0 || kwargs != NULL || (Py_SIZE(rest) > 1 && rest->call[1] == NULL)) {
        PyErr_SetString(PyExc_TypeError, "a rest takes no arguments, and is called once");
        return 0;
    }
    return 1;
}

static PyObject *rest_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return may_call(self, args, kwargs) ? call_moving((FXSRest *)self) : NULL;
}

PyTypeObject FXSRest_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynamo_capture._eval_frame.Rest",
    .tp_basicsize = sizeof(FXSRest) - sizeof(PyObject *),
    .tp_itemsize = sizeof(PyObject *),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "A call that has its arguments' references, and moves them into the frame of the function.",
    .tp_traverse = rest_traverse,
    .tp_dealloc = rest_dealloc,
    .tp_call = rest_call,
    .tp_as_sequence = &rest_as_sequence,
};

static PyObject *new_rest(PyTypeObject *type, PyObject *const *args, Py_ssize_t count)
{
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "a function is needed, and its arguments");
        return NULL;
    }
    FXSRest *rest = PyObject_GC_NewVar(FXSRest, type, count);
    if (rest == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        rest->call[i] = Py_NewRef(args[i]);
    }
    PyObject_GC_Track((PyObject *)rest);
    return (PyObject *)rest;
}

PyObject *fxs_rest(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    return new_rest(&FXSRest_Type, args, count);
}

static void note_traceback(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    fxs_thread.rest_traceback = traceback;
    PyErr_Restore(type, value, traceback);
}

void fxs_leave_traceback(void)
{
    PyObject *rest = fxs_thread.rest_traceback;
    if (rest == NULL) {
        return;
    }
    fxs_thread.rest_traceback = NULL;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyTracebackObject *link = (PyTracebackObject *)traceback;
    for (int passed = 0; link != NULL && passed < 2; passed++) {
        link = link->tb_next;
        if ((PyObject *)link == rest) {
            Py_INCREF(rest);
            Py_DECREF(traceback);
            traceback = rest;
            break;
        }
    }
    PyErr_Restore(type, value, traceback);
}

void fxs_hand_over(FXSThread *thread, PyObject *function)
{
    FXSRest *rest = thread->handing_over;
    thread->handing_over = NULL;
    if (rest->call[0] != function) {
        return;
    }
    for (Py_ssize_t i = 1; i < Py_SIZE(rest); i++) {
        Py_CLEAR(rest->call[i]); /* kept alive by the frame */
    }
}

/* Make the call of a rest, whose reference is taken over, and those that its results ask for. */
static PyObject *go_on(PyObject *result)
{
    while (result != NULL && Py_IS_TYPE(result, &FXSRest_Type)) {
        FXSRest *rest = (FXSRest *)result;
        result = call_moving(rest);
        Py_DECREF(rest);
    }
    return result;
}

PyObject *fxs_go_on(PyObject *Py_UNUSED(module), PyObject *rest)
{
    if (!Py_IS_TYPE(rest, &FXSRest_Type)) {
        PyErr_Format(PyExc_TypeError, "a rest is needed, not %R", Py_TYPE(rest));
        return NULL;
    }
    PyObject *result = go_on(Py_NewRef(rest));
    if (result == NULL) {
        note_traceback();
    }
    return result;
}

/* --- suspended frames --- */

static PyObject *suspended_new(PyObject *type, PyObject *const *args, size_t flags, PyObject *names)
{
    if (names != NULL) {
        PyErr_SetString(PyExc_TypeError, "a suspended frame takes no arguments by name");
        return NULL;
    }
    return new_rest((PyTypeObject *)type, args, PyVectorcall_NARGS(flags));
}

static void let_go(FXSRest *rest)
{
    for (Py_ssize_t i = 1; i < Py_SIZE(rest); i++) {
        Py_CLEAR(rest->call[i]);
    }
}

/* The caller is not handing over, and stays in a traceback. */
static PyObject *suspended_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    if (!may_call(self, args, kwargs)) {
        return NULL;
    }
    PyObject *result = call_moving((FXSRest *)self);
    if (result != NULL && (result = go_on(result)) != NULL) {
        return result;
    }
    fxs_thread.rest_traceback = NULL;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    let_go((FXSRest *)self); /* this frame is behind those that the exception keeps */
    PyErr_Restore(type, value, traceback);
    return NULL;
}

static PyObject *suspended_take(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *taken = PySequence_Tuple(self);
    if (taken != NULL) {
        let_go((FXSRest *)self);
    }
    return taken;
}

static PyObject *suspended_function(PyObject *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(((FXSRest *)self)->call[0]);
}

static PyObject *suspended_args(PyObject *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(self);
}

static PyMethodDef suspended_methods[] = {
    {"take", suspended_take, METH_NOARGS, "The arguments, which it lets go."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef suspended_getset[] = {
    {"function", suspended_function, NULL, "The resume function.", NULL},
    {"args", suspended_args, NULL, "The sequence of its arguments: it is that itself.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject FXSSuspended_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynamo_capture._eval_frame.Suspended",
    .tp_basicsize = sizeof(FXSRest) - sizeof(PyObject *),
    .tp_itemsize = sizeof(PyObject *),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "Suspended(function, *args): the rest of a frame that was left in the middle, which its caller calls.",
    .tp_vectorcall = suspended_new,
    .tp_traverse = rest_traverse,
    .tp_dealloc = rest_dealloc,
    .tp_call = suspended_call,
    .tp_as_sequence = &rest_as_sequence,
    .tp_methods = suspended_methods,
    .tp_getset = suspended_getset,
};

/* --- what is subscripted and not called --- */

typedef struct {
    PyObject_HEAD
    PyObject *(*give)(PyObject *given);
} Subscripted;

static PyObject *made_of(PyTypeObject *type, PyObject *given)
{
    if (!PyTuple_CheckExact(given)) {
        PyErr_SetString(PyExc_TypeError, "a function is needed, and its arguments");
        return NULL;
    }
    return new_rest(type, ((PyTupleObject *)given)->ob_item, PyTuple_GET_SIZE(given));
}

static PyObject *give_rest(PyObject *given)
{
    return made_of(&FXSRest_Type, given);
}

static PyObject *give_suspended(PyObject *given)
{
    return made_of(&FXSSuspended_Type, given);
}

static PyObject *give_whether_suspended(PyObject *given)
{
    return PyBool_FromLong(Py_IS_TYPE(given, &FXSSuspended_Type));
}

static PyObject *subscripted_give(PyObject *self, PyObject *given)
{
    return ((Subscripted *)self)->give(given);
}

static PyMappingMethods subscripted_as_mapping = {.mp_subscript = subscripted_give};

static PyTypeObject subscripted_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynamo_capture._eval_frame.Subscripted",
    .tp_basicsize = sizeof(Subscripted),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "What is subscripted where a call would let an interrupt in.",
    .tp_as_mapping = &subscripted_as_mapping,
};

static int add_one(PyObject *module, const char *name, PyObject *(*give)(PyObject *))
{
    Subscripted *made = PyObject_New(Subscripted, &subscripted_type);
    if (made == NULL) {
        return -1;
    }
    made->give = give;
    int status = PyModule_AddObjectRef(module, name, (PyObject *)made);
    Py_DECREF(made);
    return status;
}

int fxs_add_subscripted(PyObject *module)
{
    if (PyType_Ready(&subscripted_type) < 0 || add_one(module, "REST", give_rest) < 0 ||
        add_one(module, "SUSPENDED", give_suspended) < 0) {
        return -1;
    }
    return add_one(module, "IS_SUSPENDED", give_whether_suspended);
}
