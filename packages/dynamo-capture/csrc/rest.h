/* Handing over to the rest of a function without growing the stack. */
#ifndef FXS_REST_H
#define FXS_REST_H

#include "python_internals.h"

extern PyTypeObject FXSRest_Type;

/* rest(function, *args): a result that says: go on with this call. */
PyObject *fxs_rest(PyObject *module, PyObject *const *args, Py_ssize_t count);
/* call_rest(function, *args): call, and go on as long as the result says so. */
PyObject *fxs_call_rest(PyObject *module, PyObject *const *args, Py_ssize_t count);
/* The same for the rest of a frame that the caller has called: the caller is not handing over, and stays in a traceback. */
PyObject *fxs_call_suspended(PyObject *module, PyObject *const *args, Py_ssize_t count);
/* A frame ends with the exception of its rest: take the frame, which the program does not know as another, out of the
 * traceback, where it has handed over by call_rest, or by a function that did. */
void fxs_leave_traceback(void);

#endif
