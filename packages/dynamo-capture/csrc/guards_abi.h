/* The part of the guards package's C interface that the hook calls, reached through its capsule. */
#ifndef FXS_GUARDS_ABI_H
#define FXS_GUARDS_ABI_H

#include <Python.h>

#define FXS_GUARDS_MODULE "guards._native"
#define FXS_GUARDS_CAPSULE "guards._native._C_API"
#define FXS_GUARDS_ABI_VERSION 1

typedef struct {
    int version;
    PyTypeObject *evaluator_type;
    /* 1 if every guard holds for a call: evaluator, argument slots, how many, the function called. Sets no exception. */
    int (*check)(void *evaluator, PyObject **fastlocals, Py_ssize_t nlocals, PyObject *function);
} FXSGuardsABI;

#endif
