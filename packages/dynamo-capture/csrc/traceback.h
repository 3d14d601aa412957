/* Frames for the tracebacks of exceptions that were raised and caught while the program was captured. */
#ifndef FXS_TRACEBACK_H
#define FXS_TRACEBACK_H

#include "python_internals.h"

/* traceback_frame(code, globals, offset, line): a frame of `code` that stands at an instruction and never runs. */
PyObject *fxs_traceback_frame(PyObject *module, PyObject *args);

#endif
