/* Activation per thread, installation per interpreter, and the bounds of the C stack. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* pthread_getattr_np */
#endif
#include "thread_state.h"

#include <pthread.h>

int fxs_paused;
PyObject *fxs_rival;
FXS_TLS FXSThread fxs_thread;
_PyFrameEvalFunction fxs_next_evaluator = NULL;
_PyFrameEvalFunction fxs_last_evaluator = NULL;

static Py_ssize_t active;    /* threads with a callback */
static Py_ssize_t suspended; /* nested fxs_suspend calls, of all threads */

static PyInterpreterState *interpreter(void)
{
    return PyInterpreterState_Get();
}

int fxs_installed(void)
{
    return _PyInterpreterState_GetEvalFrameFunc(interpreter()) == fxs_eval_frame;
}

Py_ssize_t fxs_active_threads(void)
{
    return active;
}

/* Put the hook on top of whatever is there. A hook below that hands frames on to ours again is found out per frame. */
static void install(void)
{
    PyInterpreterState *here = interpreter();
    _PyFrameEvalFunction current = _PyInterpreterState_GetEvalFrameFunc(here);
    if (current == fxs_eval_frame) {
        return;
    }
    if (fxs_last_evaluator == NULL || current == _PyEval_EvalFrameDefault) {
        fxs_last_evaluator = current;
    }
    fxs_next_evaluator = current;
    _PyInterpreterState_SetEvalFrameFunc(here, fxs_eval_frame);
}

/* Take the hook away if it is on top; below another hook it stays, and hands every frame on. */
static void uninstall(void)
{
    PyInterpreterState *here = interpreter();
    if (_PyInterpreterState_GetEvalFrameFunc(here) == fxs_eval_frame) {
        _PyInterpreterState_SetEvalFrameFunc(here, fxs_next_evaluator);
    }
}

PyObject *fxs_rival_off(void)
{
    _PyFrameEvalFunction current = _PyInterpreterState_GetEvalFrameFunc(interpreter());
    if (current == fxs_eval_frame) {
        current = fxs_next_evaluator;
    }
    if (FXS_LIKELY(current == _PyEval_EvalFrameDefault) || fxs_rival == NULL) {
        return NULL;
    }
    PyObject *previous = PyObject_CallOneArg(fxs_rival, Py_None);
    if (previous == NULL) {
        PyErr_Clear();
    }
    else if (previous == Py_None) {
        Py_CLEAR(previous);
    }
    return previous;
}

void fxs_rival_back(PyObject *previous)
{
    if (FXS_LIKELY(previous == NULL)) {
        return;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *ours = PyObject_CallOneArg(fxs_rival, previous);
    if (ours == NULL) {
        PyErr_Clear();
    }
    Py_XDECREF(ours);
    Py_DECREF(previous);
    PyErr_Restore(type, value, traceback);
}

PyObject *fxs_activate(FXSThread *thread, PyObject *callback)
{
    PyObject *previous = thread->callback;
    thread->callback = callback;
    if (callback != NULL) {
        active += previous == NULL;
        if (suspended == 0) {
            install();
        }
    }
    else if (previous != NULL && --active == 0) {
        uninstall();
    }
    return previous;
}

void fxs_suspend(void)
{
    suspended++;
    uninstall();
}

void fxs_resume(void)
{
    suspended -= suspended > 0; /* after a fork the count began anew */
    if (suspended == 0 && active > 0) {
        install();
    }
}

void fxs_after_fork(void)
{
    active = fxs_thread.callback != NULL;
    suspended = 0;
    if (active) {
        install();
    }
    else {
        uninstall();
    }
}

/* Bytes left for whatever C code a frame calls before the recursion error. */
#define FXS_STACK_RESERVE (192 * 1024)

void fxs_measure_stack(FXSThread *thread)
{
    char *low = NULL;
    size_t size = 0;
#if defined(__APPLE__)
    size = pthread_get_stacksize_np(pthread_self());
    low = (char *)pthread_get_stackaddr_np(pthread_self()) - size;
#else
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        void *address = NULL;
        if (pthread_attr_getstack(&attributes, &address, &size) == 0) {
            low = address;
        }
        pthread_attr_destroy(&attributes);
    }
#endif
    if (low == NULL || size == 0 || fxs_stack_pointer() < low || fxs_stack_pointer() > low + size) {
        size = 512 * 1024; /* unknown, or a stack of the program's own making: assume little */
        low = fxs_stack_pointer() - size;
    }
    thread->stack_low = low + size / 2;
    thread->stack_end = low + (size / 4 < FXS_STACK_RESERVE ? size / 4 : FXS_STACK_RESERVE);
}
