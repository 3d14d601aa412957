/* Which callback is active in each thread, and whether the hook is installed in the interpreter. */
#ifndef FXS_THREAD_STATE_H
#define FXS_THREAD_STATE_H

#include "python_internals.h"

typedef struct {
    PyObject *callback;               /* owned; NULL: nothing is active in this thread */
    _PyInterpreterFrame *dispatching; /* the frame that was handed on to another hook last */
    char *stack_low;                  /* below this address the C stack is half used up: NULL until asked for */
    char *stack_end;                  /* below this address it is nearly used up */
    struct FXSRest *handing_over;     /* borrowed: the call of a rest that is about to start a frame */
    PyObject *rest_traceback;         /* borrowed: where the exception comes from that the last rest raised */
} FXSThread;

#if defined(__GLIBC__) && defined(__GNUC__)
#define FXS_TLS __thread __attribute__((tls_model("initial-exec")))
#else
#define FXS_TLS _Thread_local
#endif

extern FXS_TLS FXSThread fxs_thread;

/* Make `callback` (NULL: none) the active one. Takes over the reference; returns the previous one with its reference. */
PyObject *fxs_activate(FXSThread *thread, PyObject *callback);

/* The evaluator that the hook hands frames to, and the one for a frame that came back to the hook from there. */
extern _PyFrameEvalFunction fxs_next_evaluator;
extern _PyFrameEvalFunction fxs_last_evaluator;

/* Take the hook out of the interpreter for a while, and put it back; calls nest. */
void fxs_suspend(void);
void fxs_resume(void);
/* In a forked child: the other threads are gone, whatever they had active. */
void fxs_after_fork(void);
/* Whether everything runs as it is, whatever is active. */
extern int fxs_paused;
/* How many threads have a callback active. */
Py_ssize_t fxs_active_threads(void);
/* Whether the interpreter's evaluator is the hook now. */
int fxs_installed(void);

/* Another compiler's switch, exchange(callback or None) -> previous, of this thread: NULL until one is told of. */
extern PyObject *fxs_rival;
/* Switch it off where its hook is installed; returns what fxs_rival_back takes (NULL: nothing was on). */
PyObject *fxs_rival_off(void);
void fxs_rival_back(PyObject *previous);

/* The hook itself (eval_frame.c). */
PyObject *fxs_eval_frame(PyThreadState *tstate, _PyInterpreterFrame *frame, int throwflag);

/* Find the bounds of this thread's C stack. */
void fxs_measure_stack(FXSThread *thread);

static inline char *fxs_stack_pointer(void)
{
    return (char *)__builtin_frame_address(0);
}

/* Whether less than half of the C stack is left. */
static inline int fxs_stack_is_low(FXSThread *thread)
{
    if (FXS_UNLIKELY(thread->stack_low == NULL)) {
        fxs_measure_stack(thread);
    }
    return fxs_stack_pointer() < thread->stack_low;
}

#endif
