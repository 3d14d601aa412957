/* The part of the guards package's C interface that the hook calls, reached through its capsule. */
#ifndef FXS_GUARDS_ABI_H
#define FXS_GUARDS_ABI_H

#include <Python.h>
#include <stdint.h>

#define FXS_GUARDS_MODULE "fx_guards._native"
#define FXS_GUARDS_CAPSULE "fx_guards._native._C_API"
#define FXS_GUARDS_ABI_VERSION 2

typedef struct {
    int version;
    PyTypeObject *evaluator_type;
    /* 1 if every guard holds for a call: evaluator, argument slots, how many, the function called. Sets no exception. */
    int (*check)(void *evaluator, PyObject **fastlocals, Py_ssize_t nlocals, PyObject *function);
    /* The fact that tells up to 64 evaluators apart, or NULL; good while they all live. Free it with index_free. */
    void *(*index_build)(PyObject *const *evaluators, int n);
    /* Bit i: whether evaluator i may hold. Runs no user code, sets no exception. */
    uint64_t (*index_candidates)(const void *index, PyObject **fastlocals, Py_ssize_t nlocals, PyObject *function);
    void (*index_free)(void *index);
} FXSGuardsABI;

/* The guards package's functions; NULL, without exception, while it is not imported or where it is another version's. */
const FXSGuardsABI *fxs_guards_abi(void);

#endif
