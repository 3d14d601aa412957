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
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++) {
        Py_XDECREF(rest->call[i]);
    }
    PyObject_GC_Del(self);
}

PyTypeObject FXSRest_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynamo_capture._eval_frame.Rest",
    .tp_basicsize = sizeof(FXSRest) - sizeof(PyObject *),
    .tp_itemsize = sizeof(PyObject *),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "The result of a resume function that goes on with another call.",
    .tp_traverse = rest_traverse,
    .tp_dealloc = rest_dealloc,
};

PyObject *fxs_rest(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "rest(function, *args)");
        return NULL;
    }
    FXSRest *rest = PyObject_GC_NewVar(FXSRest, &FXSRest_Type, count);
    if (rest == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        rest->call[i] = Py_NewRef(args[i]);
    }
    PyObject_GC_Track((PyObject *)rest);
    return (PyObject *)rest;
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
        fxs_thread.handing_over = PyFunction_Check(rest->call[0]) ? rest : NULL;
        result = PyObject_Vectorcall(rest->call[0], rest->call + 1, (size_t)(Py_SIZE(rest) - 1), NULL);
        fxs_thread.handing_over = NULL;
        Py_DECREF(rest);
    }
    return result;
}

static PyObject *call(PyObject *const *args, Py_ssize_t count)
{
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "a function is called, with its arguments");
        return NULL;
    }
    return go_on(PyObject_Vectorcall(args[0], args + 1, (size_t)(count - 1), NULL));
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

PyObject *fxs_call_suspended(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    PyObject *result = call(args, count);
    if (result == NULL) {
        fxs_thread.rest_traceback = NULL;
    }
    return result;
}
