/* The module: what Python may ask of the frame hook and of the cache. */
#include "code_cache.h"
#include "data_stack.h"
#include "eval_frame.h"
#include "forwarded_call.h"
#include "frame_view.h"
#include "region.h"
#include "method_load.h"
#include "profiling.h"
#include "rest.h"
#include "stock_stance.h"
#include "thread_state.h"
#include "traceback.h"

static PyObject *py_set_callback(PyObject *Py_UNUSED(module), PyObject *callback)
{
    PyObject *chosen = callback == Py_None ? NULL : Py_NewRef(callback);
    PyObject *previous = fxs_activate(&fxs_thread, chosen);
    return previous == NULL ? Py_NewRef(Py_None) : previous;
}

static PyObject *py_get_callback(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    PyObject *callback = fxs_thread.callback;
    return Py_NewRef(callback == NULL ? Py_None : callback);
}

static PyObject *py_set_paused(PyObject *Py_UNUSED(module), PyObject *flag)
{
    int paused = PyObject_IsTrue(flag);
    if (paused < 0) {
        return NULL;
    }
    fxs_paused = paused;
    Py_RETURN_NONE;
}

static PyObject *py_watch_profiler(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *variables, *name, *begin;
    if (!PyArg_ParseTuple(args, "OOO", &variables, &name, &begin) || fxs_watch_profiler(variables, name, begin) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *py_after_fork(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    fxs_after_fork();
    Py_RETURN_NONE;
}

static PyObject *py_is_installed(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(fxs_installed());
}

static PyCodeObject *as_code(PyObject *object)
{
    if (PyCode_Check(object)) {
        return (PyCodeObject *)object;
    }
    PyErr_Format(PyExc_TypeError, "a code object is needed, not %R", Py_TYPE(object));
    return NULL;
}

static PyObject *py_entries(PyObject *Py_UNUSED(module), PyObject *argument)
{
    PyCodeObject *code = as_code(argument);
    PyObject *list = code == NULL ? NULL : PyList_New(0);
    if (list == NULL) {
        return NULL;
    }
    FXSCodeState *state = fxs_code_state(code);
    for (FXSEntry *entry = state == NULL ? NULL : state->first; entry != NULL; entry = entry->next) {
        if (PyList_Append(list, (PyObject *)entry) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyObject *py_clear_entries(PyObject *Py_UNUSED(module), PyObject *argument)
{
    PyCodeObject *code = as_code(argument);
    if (code == NULL) {
        return NULL;
    }
    FXSCodeState *state = fxs_code_state(code);
    if (state != NULL) {
        Py_INCREF(code);
        fxs_code_state_clear(state);
        Py_DECREF(code);
    }
    Py_RETURN_NONE;
}

static PyObject *py_add_entry(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *code, *entry;
    if (!PyArg_ParseTuple(args, "O!O!", &PyCode_Type, &code, &FXSEntry_Type, &entry)) {
        return NULL;
    }
    if (fxs_admit((PyCodeObject *)code, (FXSEntry *)entry) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *py_set_skip(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *code, *callback = Py_None;
    int skip;
    if (!PyArg_ParseTuple(args, "O!i|O", &PyCode_Type, &code, &skip, &callback)) {
        return NULL;
    }
    if (skip < FXS_SKIP_NOTHING || skip > FXS_SKIP_RECURSIVELY) {
        PyErr_SetString(PyExc_ValueError, "0: nothing is skipped, 1: the code, 2: the code and all it calls");
        return NULL;
    }
    int status = callback == Py_None ? fxs_set_skip((PyCodeObject *)code, (FXSSkip)skip)
                                     : fxs_refuse(callback, (PyCodeObject *)code, (FXSSkip)skip);
    if (status < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *py_get_skip(PyObject *Py_UNUSED(module), PyObject *argument)
{
    PyCodeObject *code = as_code(argument);
    if (code == NULL) {
        return NULL;
    }
    FXSCodeState *state = fxs_code_state(code);
    return PyLong_FromLong(state == NULL ? FXS_SKIP_NOTHING : (long)fxs_code_state_skip(state, NULL));
}

static PyObject *py_check_replacement(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *original, *replacement;
    if (!PyArg_ParseTuple(args, "O!O!", &PyCode_Type, &original, &PyCode_Type, &replacement)) {
        return NULL;
    }
    if (fxs_check_replacement((PyCodeObject *)original, (PyCodeObject *)replacement) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *py_set_rival(PyObject *Py_UNUSED(module), PyObject *exchange)
{
    Py_XSETREF(fxs_rival, Py_NewRef(exchange));
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"set_callback", py_set_callback, METH_O,
     "set_callback(callback or None): make it the active one in this thread; returns the previous one."},
    {"get_callback", py_get_callback, METH_NOARGS, "The callback active in this thread, or None."},
    {"watch_profiler", py_watch_profiler, METH_VARARGS,
     "watch_profiler(variables, name, begin): while variables[name] is True, calls of region functions are ranges that "
     "begin(region) begins and gives, or None."},
    {"set_paused", py_set_paused, METH_O, "set_paused(flag): whether all frames, in all threads, run as they are."},
    {"after_fork", py_after_fork, METH_NOARGS, "To be called in a forked child, whose other threads are gone."},
    {"set_rival", py_set_rival, METH_O,
     "set_rival(exchange): how another compiler is switched off in this thread; exchange(callback) -> previous."},
    {"is_installed", py_is_installed, METH_NOARGS, "Whether the interpreter evaluates frames through the hook now."},
    {"entries", py_entries, METH_O, "entries(code): the cached entries, most recently used first."},
    {"clear_entries", py_clear_entries, METH_O, "clear_entries(code): drop them all."},
    {"add_entry", py_add_entry, METH_VARARGS, "add_entry(code, entry): cache an entry; ValueError if it cannot replace."},
    {"set_skip", py_set_skip, METH_VARARGS,
     "set_skip(code, n, callback=None): 0 ask about frames of the code, 1 run them as they are, 2 and all they call; "
     "under one callback, or under every one (0: forget what was said of any)."},
    {"get_skip", py_get_skip, METH_O, "get_skip(code): the most that was set, under any callback."},
    {"check_replacement", py_check_replacement, METH_VARARGS,
     "check_replacement(original, replacement): ValueError unless frames of one can run the other in place."},
    {"rest", (PyCFunction)(void (*)(void))fxs_rest, METH_FASTCALL,
     "rest(function, *args): what a resume function returns to go on with another call."},
    {"go_on", fxs_go_on, METH_O,
     "go_on(rest): make its call, and go on for as long as the result is a rest."},
    {"traceback_frame", fxs_traceback_frame, METH_VARARGS,
     "traceback_frame(code, globals, offset, line): a frame that stands at an instruction and never runs."},
    {"call_suspended", (PyCFunction)(void (*)(void))fxs_call_suspended, METH_FASTCALL,
     "call_suspended(function, *args): call the rest of a frame that the caller has called, and go on as go_on does."},
    {"call_with_room", (PyCFunction)(void (*)(void))fxs_call_with_room, METH_FASTCALL,
     "call_with_room(function, *args): call it with room for all its frames in one piece of the data stack."},
    {"load_method", (PyCFunction)(void (*)(void))fxs_load_method, METH_FASTCALL,
     "load_method(owner, name): its self and the method, or the attribute and operator.call."},
    {"leaves_methods", fxs_leaves_methods, METH_O,
     "leaves_methods(cls): whether load_method gives self and method for methods of its instances."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dynamo_capture._eval_frame",
    .m_doc = "The native frame hook (PEP 523); use it through dynamo_capture.hook.frame_hook.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__eval_frame(void)
{
    if (fxs_code_cache_init() < 0 || fxs_init_stock_stance() < 0 || PyType_Ready(&FXSFrameView_Type) < 0
        || PyType_Ready(&FXSRegion_Type) < 0 || PyType_Ready(&FXSForwardedCall_Type) < 0
        || PyType_Ready(&FXSRest_Type) < 0) {
        return NULL;
    }
    PyObject *module = PyModule_Create(&module_definition);
    if (module == NULL) {
        return NULL;
    }
    if (fxs_add_answers(module) < 0 || PyModule_AddType(module, &FXSEntry_Type) < 0
        || PyModule_AddType(module, &FXSFrameView_Type) < 0 || PyModule_AddType(module, &FXSRegion_Type) < 0
        || PyModule_AddType(module, &FXSForwardedCall_Type) < 0 || PyModule_AddType(module, &FXSRest_Type) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
