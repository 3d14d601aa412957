/* Handing over to the rest of a function without growing the stack. */
#ifndef FXS_REST_H
#define FXS_REST_H

#include "python_internals.h"
#include "thread_state.h"

typedef struct FXSRest {
    PyObject_VAR_HEAD
    PyObject *call[1]; /* the function, then its arguments: NULL once its frame has them */
} FXSRest;

extern PyTypeObject FXSRest_Type;
/* The same for the rest of a frame that was left in the middle: what its caller gets in place of its result, and calls. */
extern PyTypeObject FXSSuspended_Type;

/* rest(function, *args): a result that says: go on with this call. Also called itself, once and with nothing,
 * and the sequence of its arguments. */
PyObject *fxs_rest(PyObject *module, PyObject *const *args, Py_ssize_t count);
/* REST[function, *args] and SUSPENDED[function, *args] make the same objects, IS_SUSPENDED[object] tells whether it is one
 * of the latter. They are subscripted since the interpreter looks for signals after calls: an interrupt that arrives
 * between two frames, while a rest is no frame's yet, would leave the blocks that the rest is in without their end. */
int fxs_add_subscripted(PyObject *module);
/* go_on(rest): make that call, and go on as long as the result says so. The frame that is called has the only references
 * to its arguments, if nothing else holds the rest: what it drops dies. */
PyObject *fxs_go_on(PyObject *module, PyObject *rest);
/* The frame that `thread->handing_over` calls has started, and holds its arguments: give up the rest's references. */
void fxs_hand_over(FXSThread *thread, PyObject *function);
/* A frame ends with the exception of its rest: take the frame, which the program does not know as another, out of the
 * traceback, where it has handed over by go_on, or by a function that did. */
void fxs_leave_traceback(void);

#endif
