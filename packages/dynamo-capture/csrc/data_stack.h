/* Room for the frames of Python functions. */
#ifndef FXS_DATA_STACK_H
#define FXS_DATA_STACK_H

#include "python_internals.h"

/* call_with_room(function, *args): call it with room for its frames, and those of all it calls, in one piece. */
PyObject *fxs_call_with_room(PyObject *module, PyObject *const *args, Py_ssize_t count);

#endif
