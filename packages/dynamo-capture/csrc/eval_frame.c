/* The frame hook: at the entry of a plain function frame, run a cached replacement in place or ask the callback. */
#include "eval_frame.h"

#include "code_cache.h"
#include "frame_view.h"
#include "region.h"
#include "rest.h"
#include "search.h"
#include "stock_stance.h"
#include "thread_state.h"
#include "traceback.h"

/* What a callback answers besides an entry or None. */
static PyObject *skip_code;
static PyObject *skip_recursively;
static PyObject *as_written;
static PyObject *again;

/* --- running frames --- */

/* Below half of the C stack calls go without the hook, so that Python-to-Python calls use none of the C stack. */
static PyObject *run_low(FXSThread *thread, PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag)
{
    fxs_suspend();
    PyObject *result = _PyEval_EvalFrameDefault(tstate, frame, throwflag);
    fxs_resume();
    return result;
}

/* Another hook was there first: it gets the frame, and may hand it back to us, which ends the chain. */
static PyObject *run_chained(FXSThread *thread, PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag)
{
    _PyInterpreterFrame *outer = thread->dispatching;
    thread->dispatching = frame;
    /* not on top: the hook above us is the one that brought us the frame */
    _PyFrameEvalFunction evaluator = fxs_installed() ? fxs_next_evaluator : fxs_last_evaluator;
    PyObject *result = evaluator(tstate, frame, throwflag);
    thread->dispatching = outer;
    return result;
}

static inline PyObject *run(FXSThread *thread, PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag)
{
    if (FXS_UNLIKELY(fxs_stack_is_low(thread))) {
        return run_low(thread, tstate, frame, throwflag);
    }
    FXS_RECURSION_GIVE_BACK(tstate);
    PyObject *result;
    if (FXS_LIKELY(fxs_next_evaluator == _PyEval_EvalFrameDefault)) {
        result = _PyEval_EvalFrameDefault(tstate, frame, throwflag);
    }
    else {
        result = run_chained(thread, tstate, frame, throwflag);
    }
    FXS_RECURSION_TAKE_BACK(tstate);
    return result;
}

/* Run the frame and all it calls with nothing active in this thread. */
static PyObject *run_inactive(FXSThread *thread, PyThreadState *tstate, _PyInterpreterFrame *frame)
{
    PyObject *callback = fxs_activate(thread, NULL);
    PyObject *result = run(thread, tstate, frame, 0);
    Py_XDECREF(fxs_activate(thread, callback));
    return result;
}

/* --- running a replacement --- */

/* Make room for a frame of `needed` slots where one of `taken` slots stands; 0 if there is none. */
static int make_room(PyThreadState *tstate, _PyInterpreterFrame *frame, Py_ssize_t taken, Py_ssize_t needed)
{
    if (needed <= taken) {
        return 1;
    }
    PyObject **base = (PyObject **)frame;
    if (base + taken != tstate->datastack_top || base + needed >= tstate->datastack_limit) {
        return 0;
    }
    tstate->datastack_top = base + needed;
    return 1;
}

/* Swap the code of a frame that has not started. Only its argument slots are set then; the others are cleared. */
static void swap_code(_PyInterpreterFrame *frame, PyCodeObject *code)
{
    Py_ssize_t arguments = fxs_argument_slots(code);
    for (Py_ssize_t i = arguments; i < code->co_nlocalsplus; i++) {
        frame->localsplus[i] = NULL;
    }
    fxs_frame_set_code(frame, (PyCodeObject *)Py_NewRef(code));
}

/* Run the entry's code in the frame, whose `taken` slots were sized for its own code. */
static PyObject *run_entry(FXSThread *thread, PyThreadState *tstate, _PyInterpreterFrame *frame, FXSEntry *entry,
                           Py_ssize_t taken)
{
    if (FXS_LIKELY(make_room(tstate, frame, taken, entry->frame_size))) {
        swap_code(frame, entry->code);
    } /* else: one call at the end of a chunk of the data stack; later frames are made large enough */
    PyObject *result = run(thread, tstate, frame, 0);
    if (FXS_UNLIKELY(result == NULL)) {
        fxs_leave_traceback();
    }
    return result;
}

/* What a callback has of a code; mostly it was the last one that asked. */
static inline FXSVersions *list_of(FXSCodeState *state, PyObject *callback)
{
    FXSVersions *first = state->lists;
    return FXS_LIKELY(first != NULL && first->callback == callback && !first->is_free)
               ? first
               : fxs_code_state_find(state, callback);
}

/* The entry that fits a frame under the thread's callback, whose list is `own` (or NULL); borrowed, or NULL. That list
 * stays the callback's while the callback lives, that is, for longer than the search. */
static FXSEntry *find_entry(FXSThread *thread, FXSCodeState *state, FXSVersions *own, _PyInterpreterFrame *frame,
                            PyCodeObject *code)
{
    PyObject *callback = thread->callback;
    thread->callback = NULL;
    FXSEntry *found = own == NULL ? NULL : fxs_search(own, frame, code);
    if (found == NULL && FXS_UNLIKELY(state->any.first != NULL)) {
        found = fxs_search(&state->any, frame, code);
    }
    thread->callback = callback;
    return found;
}

/* --- asking the callback --- */

/* The callback's answer (owned); NULL with its exception. Nothing is active in this thread while it runs. */
static PyObject *ask(FXSThread *thread, _PyInterpreterFrame *frame, Py_ssize_t entries)
{
    PyObject *view = fxs_frame_view(frame, thread->callback);
    PyObject *number = view == NULL ? NULL : PyLong_FromSsize_t(entries);
    PyObject *answer = NULL;
    if (number != NULL) {
        PyObject *callback = fxs_activate(thread, NULL);
        answer = PyObject_CallFunctionObjArgs(callback, view, number, NULL);
        Py_XDECREF(fxs_activate(thread, callback));
    }
    Py_XDECREF(number);
    Py_XDECREF(view);
    return answer;
}

/* How often a callback is asked what raises an exception, if an interrupt arrives each time. */
#define FXS_ASKED_FOR_RAISING 64

/* The callback has raised, perhaps as it began, by an interrupt. An answer that raises the exception under the handlers
 * that the frame begins under: `callback.raising(code, exception)` gives an entry with the exception as its `extra`, or
 * None where there are none. NULL with the exception otherwise. What interrupts that is raised instead. */
static PyObject *ask_for_raising(FXSThread *thread, PyCodeObject *code)
{
    for (int asked = 0; asked < FXS_ASKED_FOR_RAISING; asked++) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyErr_NormalizeException(&type, &value, &traceback);
        if (traceback != NULL) {
            PyException_SetTraceback(value, traceback);
        }
        PyObject *callback = fxs_activate(thread, NULL);
        PyObject *raising = PyObject_GetAttrString(callback, "raising");
        PyObject *answer = raising == NULL ? NULL : PyObject_CallFunctionObjArgs(raising, code, value, NULL);
        int is_without = raising == NULL && PyErr_ExceptionMatches(PyExc_AttributeError);
        Py_XDECREF(raising);
        Py_XDECREF(fxs_activate(thread, callback));
        if (answer != NULL && PyObject_TypeCheck(answer, &FXSEntry_Type)) {
            Py_DECREF(type);
            Py_DECREF(value);
            Py_XDECREF(traceback);
            return answer;
        }
        if (answer != NULL || is_without) {
            Py_XDECREF(answer);
            PyErr_Restore(type, value, traceback); /* instead of what is missing */
            return NULL;
        }
        Py_DECREF(type);
        Py_DECREF(value);
        Py_XDECREF(traceback);
    }
    return NULL;
}

int fxs_admit(void *callback, PyCodeObject *code, FXSEntry *entry)
{
    if (fxs_check_replacement(code, entry->code) < 0) {
        return -1;
    }
    FXSVersions *list = fxs_versions_of(callback, code);
    if (list == NULL || fxs_versions_add(list, entry) < 0) {
        return -1;
    }
    fxs_code_reserve(code, entry->frame_size);
    return 0;
}

/* Run an entry, which is given up, that raises its `extra`, for this once. */
static PyObject *run_raising(FXSThread *thread, PyThreadState *tstate, _PyInterpreterFrame *frame, FXSEntry *entry,
                             Py_ssize_t taken)
{
    PyObject *result;
    if (FXS_LIKELY(make_room(tstate, frame, taken, entry->frame_size))) {
        result = run_entry(thread, tstate, frame, entry, entry->frame_size);
    }
    else {
        PyErr_SetObject((PyObject *)Py_TYPE(entry->extra), entry->extra);
        result = run(thread, tstate, frame, 1);
    }
    Py_DECREF(entry);
    return result;
}

/* No entry fits: ask, and do as told. An exception leaves through the frame, as if its first instruction had raised. */
static PyObject *miss(FXSThread *thread, PyThreadState *tstate, _PyInterpreterFrame *frame, PyCodeObject *code)
{
    Py_ssize_t taken = fxs_code_frame_size(code);
    FXSCodeState *state = fxs_code_state(code);
    FXSVersions *own = state == NULL ? NULL : fxs_code_state_find(state, thread->callback);
    PyObject *answer = ask(thread, frame, own == NULL ? 0 : own->count);
    int status = 0;
    PyObject *result = NULL;
    if (answer == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_RecursionError)) {
            answer = ask_for_raising(thread, code);
            if (answer == NULL) {
                return run(thread, tstate, frame, 1);
            }
            return run_raising(thread, tstate, frame, (FXSEntry *)answer, taken);
        }
        PyErr_Clear(); /* too deep to ask, perhaps not too deep to run */
        return run(thread, tstate, frame, 0);
    }
    if (answer == skip_recursively) {
        status = fxs_set_skip(thread->callback, code, FXS_SKIP_RECURSIVELY);
        result = status < 0 ? NULL : run_inactive(thread, tstate, frame);
    }
    else if (PyObject_TypeCheck(answer, &FXSEntry_Type)) {
        status = fxs_admit(thread->callback, code, (FXSEntry *)answer);
        result = status < 0 ? NULL : run_entry(thread, tstate, frame, (FXSEntry *)answer, taken);
    }
    else if (answer == as_written) {
        result = run_inactive(thread, tstate, frame);
    }
    else if (answer == again) {
        state = fxs_code_state(code);
        own = state == NULL ? NULL : fxs_code_state_find(state, thread->callback);
        FXSEntry *entry = state == NULL ? NULL : find_entry(thread, state, own, frame, code);
        result = entry == NULL ? run(thread, tstate, frame, 0) : run_entry(thread, tstate, frame, entry, taken);
    }
    else {
        if (answer == skip_code) {
            status = fxs_set_skip(thread->callback, code, FXS_SKIP_CODE);
        }
        else if (answer != Py_None) {
            PyErr_Format(PyExc_TypeError,
                         "a frame callback answers Entry, SKIP, SKIP_RECURSIVELY, AS_WRITTEN, AGAIN or None, not %R",
                         Py_TYPE(answer));
            status = -1;
        }
        result = status < 0 ? NULL : run(thread, tstate, frame, 0);
    }
    Py_DECREF(answer);
    return status < 0 ? run(thread, tstate, frame, 1) : result;
}

/* --- the hook --- */

#define FXS_CODE_KIND \
    (CO_OPTIMIZED | CO_NEWLOCALS | CO_GENERATOR | CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR)

static PyObject *dispatch(FXSThread *thread, PyThreadState *tstate, _PyInterpreterFrame *frame)
{
    PyCodeObject *code = FXS_FRAME_CODE(frame);
    if ((code->co_flags & FXS_CODE_KIND) != (CO_OPTIMIZED | CO_NEWLOCALS) || !fxs_frame_at_start(frame)) {
        return run(thread, tstate, frame, 0);
    }
    FXSCodeState *state = fxs_code_state(code);
    if (state != NULL) {
        FXSVersions *own = list_of(state, thread->callback);
        if ((own != NULL && own->first != NULL) || state->any.first != NULL) {
            Py_ssize_t taken = fxs_code_frame_size(code);
            FXSEntry *entry = find_entry(thread, state, own, frame, code);
            if (entry != NULL) {
                return run_entry(thread, tstate, frame, entry, taken);
            }
        }
        FXSSkip skip = fxs_code_state_skip(state, own);
        if (skip == FXS_SKIP_CODE) {
            return run(thread, tstate, frame, 0);
        }
        if (skip == FXS_SKIP_RECURSIVELY) {
            return run_inactive(thread, tstate, frame);
        }
        if (own != NULL && own->pause > 0 && own->begun == fxs_stances && !fxs_stock_fails_on_recompile()) {
            own->pause--;
            return run(thread, tstate, frame, 0);
        }
    }
    return miss(thread, tstate, frame, code);
}

PyObject *fxs_eval_frame(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag)
{
    FXSThread *thread = &fxs_thread;
    if (FXS_UNLIKELY(thread->handing_over != NULL)) {
        fxs_hand_over(thread, FXS_FRAME_FUNCTION(frame));
    }
    if (FXS_UNLIKELY(thread->dispatching == frame)) {
        thread->dispatching = NULL;
        return fxs_last_evaluator(tstate, frame, throwflag);
    }
    if (thread->callback == NULL || FXS_UNLIKELY(fxs_paused) || throwflag || frame->owner != FRAME_OWNED_BY_THREAD ||
        FXS_UNLIKELY(tstate->tracing > 0)) { /* inside a trace, profile or audit function: no part of the program */
        return run(thread, tstate, frame, throwflag);
    }
    return dispatch(thread, tstate, frame);
}

/* --- the answers --- */

/* A named object that stands for an answer. */
static PyObject *add_answer(PyObject *module, const char *name)
{
    PyObject *answer = PyUnicode_FromFormat("<dynamo_capture.%s>", name);
    if (answer != NULL && PyModule_AddObjectRef(module, name, answer) < 0) {
        Py_CLEAR(answer);
    }
    return answer;
}

int fxs_add_answers(PyObject *module)
{
    skip_code = add_answer(module, "SKIP");
    skip_recursively = add_answer(module, "SKIP_RECURSIVELY");
    as_written = add_answer(module, "AS_WRITTEN");
    again = add_answer(module, "AGAIN");
    return skip_code == NULL || skip_recursively == NULL || as_written == NULL || again == NULL ? -1 : 0;
}
