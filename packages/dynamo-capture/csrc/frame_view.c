/* FrameView: what a callback sees of a frame that is about to start. It stays valid after the frame is gone. */
#include "frame_view.h"
#include "code_cache.h"

#include <stddef.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    PyObject *code;
    PyObject *function;
    PyObject *globals;
    PyObject *builtins;
    PyObject *closure;
    PyObject *locals;
    PyObject *owner;
} FrameView;

/* The argument slots that are set, by name. */
static PyObject *arguments_by_name(PyCodeObject *code, PyObject **slots)
{
    PyObject *locals = PyDict_New();
    if (locals == NULL) {
        return NULL;
    }
    Py_ssize_t count = fxs_argument_slots(code);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
        if (slots[i] != NULL && PyDict_SetItem(locals, name, slots[i]) < 0) {
            Py_DECREF(locals);
            return NULL;
        }
    }
    return locals;
}

PyObject *fxs_frame_view(_PyInterpreterFrame *frame, PyObject *callback)
{
    PyCodeObject *code = FXS_FRAME_CODE(frame);
    PyObject *locals = arguments_by_name(code, frame->localsplus);
    if (locals == NULL) {
        return NULL;
    }
    PyObject *owner = PyLong_FromVoidPtr(callback);
    FrameView *view = owner == NULL ? NULL : PyObject_GC_New(FrameView, &FXSFrameView_Type);
    if (view == NULL) {
        Py_XDECREF(owner);
        Py_DECREF(locals);
        return NULL;
    }
    view->owner = owner;
    PyObject *function = FXS_FRAME_FUNCTION(frame);
    PyObject *closure = PyFunction_GET_CLOSURE(function);
    view->code = Py_NewRef(code);
    view->function = Py_NewRef(function);
    view->globals = Py_NewRef(frame->f_globals);
    view->builtins = Py_NewRef(frame->f_builtins);
    view->closure = closure == NULL ? PyTuple_New(0) : Py_NewRef(closure);
    view->locals = locals;
    PyObject_GC_Track((PyObject *)view);
    return (PyObject *)view;
}

static int view_traverse(PyObject *self, visitproc visit, void *arg)
{
    FrameView *view = (FrameView *)self;
    Py_VISIT(view->code);
    Py_VISIT(view->function);
    Py_VISIT(view->globals);
    Py_VISIT(view->builtins);
    Py_VISIT(view->closure);
    Py_VISIT(view->locals);
    return 0;
}

static int view_clear(PyObject *self)
{
    FrameView *view = (FrameView *)self;
    Py_CLEAR(view->code);
    Py_CLEAR(view->function);
    Py_CLEAR(view->globals);
    Py_CLEAR(view->builtins);
    Py_CLEAR(view->closure);
    Py_CLEAR(view->locals);
    Py_CLEAR(view->owner);
    return 0;
}

static void view_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    view_clear(self);
    PyObject_GC_Del(self);
}

static PyMemberDef view_members[] = {
    {"code", T_OBJECT, offsetof(FrameView, code), READONLY, "The code object about to run."},
    {"function", T_OBJECT, offsetof(FrameView, function), READONLY, "The function called."},
    {"globals", T_OBJECT, offsetof(FrameView, globals), READONLY, "Its globals."},
    {"builtins", T_OBJECT, offsetof(FrameView, builtins), READONLY, "Its builtins, as a dictionary."},
    {"closure", T_OBJECT, offsetof(FrameView, closure), READONLY, "Its cells, in the order of co_freevars."},
    {"locals", T_OBJECT, offsetof(FrameView, locals), READONLY, "The arguments by name."},
    {"owner", T_OBJECT, offsetof(FrameView, owner), READONLY, "The id of the callback that is asked."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject FXSFrameView_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dynamo_capture._eval_frame.FrameView",
    .tp_basicsize = sizeof(FrameView),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "A frame about to start: code, function, globals, builtins, closure and locals.",
    .tp_traverse = view_traverse,
    .tp_clear = view_clear,
    .tp_dealloc = view_dealloc,
    .tp_members = view_members,
};
