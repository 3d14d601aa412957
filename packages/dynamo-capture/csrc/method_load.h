/* Loading a method for a call without a NULL: see bytecode/resume/method_loads.py. */
#ifndef FXS_METHOD_LOAD_H
#define FXS_METHOD_LOAD_H

#include "python_internals.h"

/* load_method(owner, name) -> (self, method), or (attribute, operator.call) where the attribute is called by itself. */
PyObject *fxs_load_method(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* leaves_methods(cls): whether loads of its instances' methods give self and method, not what they are bound to. */
PyObject *fxs_leaves_methods(PyObject *module, PyObject *cls);

#endif
