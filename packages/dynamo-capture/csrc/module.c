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
#include "set_hashes.h"
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
    fxs_stances++;
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

/* Arguments (code, owner=0): a code object and the id of a callback; 0 with an exception on failure. */
static int code_and_owner(PyObject *args, PyCodeObject **code, void **owner)
{
    PyObject *found, *id = NULL;
    if (!PyArg_ParseTuple(args, "O|O!", &found, &PyLong_Type, &id) || (*code = as_code(found)) == NULL) {
        return 0;
    }
    *owner = id == NULL ? NULL : PyLong_AsVoidPtr(id);
    return !PyErr_Occurred();
}

static int append_entries(PyObject *list, FXSVersions *versions)
{
    for (FXSEntry *entry = versions == NULL ? NULL : versions->first; entry != NULL; entry = entry->next) {
        if (PyList_Append(list, (PyObject *)entry) < 0) {
            return -1;
        }
    }
    return 0;
}

static PyObject *py_entries(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyCodeObject *code;
    void *owner;
    PyObject *list = code_and_owner(args, &code, &owner) ? PyList_New(0) : NULL;
    FXSCodeState *state = list == NULL ? NULL : fxs_code_state(code);
    if (state == NULL) {
        return list;
    }
    int status = append_entries(list, fxs_code_state_find(state, owner));
    if (owner == NULL) {
        for (FXSVersions *one = state->lists; one != NULL && status == 0; one = one->next) {
            status = append_entries(list, one);
        }
    }
    if (status < 0) {
        Py_CLEAR(list);
    }
    return list;
}

static PyObject *py_forget(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyCodeObject *code;
    void *owner;
    if (!code_and_owner(args, &code, &owner)) {
        return NULL;
    }
    FXSCodeState *state = fxs_code_state(code);
    if (state != NULL) {
        Py_INCREF(code);
        fxs_code_state_forget(state, owner);
        Py_DECREF(code);
    }
    Py_RETURN_NONE;
}

static PyObject *py_release(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyCodeObject *code;
    void *owner;
    if (!code_and_owner(args, &code, &owner)) {
        return NULL;
    }
    FXSCodeState *state = fxs_code_state(code);
    if (state != NULL && owner != NULL) {
        Py_INCREF(code);
        fxs_code_state_release(state, owner);
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
    if (fxs_admit(NULL, (PyCodeObject *)code, (FXSEntry *)entry) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *py_set_skip(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *code, *id = NULL;
    int skip;
    if (!PyArg_ParseTuple(args, "O!i|O!", &PyCode_Type, &code, &skip, &PyLong_Type, &id)) {
        return NULL;
    }
    if (skip < FXS_SKIP_NOTHING || skip > FXS_SKIP_RECURSIVELY) {
        PyErr_SetString(PyExc_ValueError, "0: nothing is skipped, 1: the code, 2: the code and all it calls");
        return NULL;
    }
    void *owner = id == NULL ? NULL : PyLong_AsVoidPtr(id);
    if (PyErr_Occurred() || fxs_set_skip(owner, (PyCodeObject *)code, (FXSSkip)skip) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *py_pause(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *code, *id;
    unsigned calls;
    if (!PyArg_ParseTuple(args, "O!IO!", &PyCode_Type, &code, &calls, &PyLong_Type, &id)) {
        return NULL;
    }
    void *owner = PyLong_AsVoidPtr(id);
    if (PyErr_Occurred() || fxs_set_pause(owner, (PyCodeObject *)code, calls) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *py_get_skip(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyCodeObject *code;
    void *owner;
    if (!code_and_owner(args, &code, &owner)) {
        return NULL;
    }
    FXSCodeState *state = fxs_code_state(code);
    FXSSkip skip = FXS_SKIP_NOTHING;
    if (state != NULL) {
        skip = owner == NULL ? fxs_code_state_most_skipped(state)
                             : fxs_code_state_skip(state, fxs_code_state_find(state, owner));
    }
    return PyLong_FromLong((long)skip);
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

/* A call, after which the interpreter looks for signals. */
static PyObject *py_let_signals_in(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
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
    {"entries", py_entries, METH_VARARGS,
     "entries(code, owner=0): those that the callback with this id has cached, most recently used first; 0: all."},
    {"forget", py_forget, METH_VARARGS,
     "forget(code, owner=0): the entries that the callback with this id has, and that it skips the code; 0: of all."},
    {"release", py_release, METH_VARARGS, "release(code, owner): the callback with this id is gone, and all it had."},
    {"add_entry", py_add_entry, METH_VARARGS,
     "add_entry(code, entry): cache an entry for every callback; ValueError if it cannot replace."},
    {"set_skip", py_set_skip, METH_VARARGS,
     "set_skip(code, n, owner=0): 0 ask about frames of the code, 1 run them as they are, 2 and all they call; under the "
     "callback with this id, or, beside what it said itself, under every one."},
    {"pause", py_pause, METH_VARARGS,
     "pause(code, n, owner): so many calls that no entry fits run as they are before the callback with this id is asked."},
    {"get_skip", py_get_skip, METH_VARARGS,
     "get_skip(code, owner=0): what holds under the callback with this id; 0: the most that was set, under any."},
    {"check_replacement", py_check_replacement, METH_VARARGS,
     "check_replacement(original, replacement): ValueError unless frames of one can run the other in place."},
    {"rest", (PyCFunction)(void (*)(void))fxs_rest, METH_FASTCALL,
     "rest(function, *args): what a resume function returns to go on with another call."},
    {"go_on", fxs_go_on, METH_O,
     "go_on(rest): make its call, and go on for as long as the result is a rest."},
    {"let_signals_in", py_let_signals_in, METH_NOARGS, "Nothing but a call: the interpreter looks for signals after it."},
    {"traceback_frame", fxs_traceback_frame, METH_VARARGS,
     "traceback_frame(code, globals, offset, line): a frame that stands at an instruction and never runs."},
    {"call_with_room", (PyCFunction)(void (*)(void))fxs_call_with_room, METH_FASTCALL,
     "call_with_room(function, *args): call it with room for all its frames in one piece of the data stack."},
    {"load_method", (PyCFunction)(void (*)(void))fxs_load_method, METH_FASTCALL,
     "load_method(owner, name): its self and the method, or the attribute and operator.call."},
    {"leaves_methods", fxs_leaves_methods, METH_O,
     "leaves_methods(cls): whether load_method gives self and method for methods of its instances."},
    {"set_hashes", fxs_set_hashes, METH_O,
     "set_hashes(set): the hashes that its members had when they came in, in the order of iteration."},
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
        || PyType_Ready(&FXSRest_Type) < 0 || PyType_Ready(&FXSSuspended_Type) < 0) {
        return NULL;
    }
    PyObject *module = PyModule_Create(&module_definition);
    if (module == NULL) {
        return NULL;
    }
    if (fxs_add_answers(module) < 0 || fxs_add_subscripted(module) < 0 || PyModule_AddType(module, &FXSEntry_Type) < 0
        || PyModule_AddType(module, &FXSFrameView_Type) < 0 || PyModule_AddType(module, &FXSRegion_Type) < 0
        || PyModule_AddType(module, &FXSForwardedCall_Type) < 0 || PyModule_AddType(module, &FXSRest_Type) < 0
        || PyModule_AddType(module, &FXSSuspended_Type) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
