/* What a set remembers of its members. */
#ifndef FXS_SET_HASHES_H
#define FXS_SET_HASHES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* set_hashes(set): the hashes that its members had when they came in, in the order of iteration. No member is asked. */
PyObject *fxs_set_hashes(PyObject *module, PyObject *set);

#endif
