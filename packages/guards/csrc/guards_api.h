/* The C ABI by which another extension checks a guard evaluator, reached through a capsule.
 *
 *   FXSGuardsAPI *api = PyCapsule_Import(FXS_GUARDS_API_CAPSULE, 0);   // after "import fx_guards._native"
 *   if (api == NULL || api->version != FXS_GUARDS_API_VERSION) ...
 *   if (Py_TYPE(evaluator) == api->evaluator_type && api->check(evaluator, slots, n, func)) ...
 */
#ifndef FXS_GUARDS_API_H
#define FXS_GUARDS_API_H

#include <Python.h>
#include <stdint.h>

#define FXS_GUARDS_API_VERSION 2
#define FXS_GUARDS_API_CAPSULE "fx_guards._native._C_API"

typedef struct {
    int version; /* FXS_GUARDS_API_VERSION of the providing library */
    /* Exact type of the objects that `check` takes. */
    PyTypeObject *evaluator_type;
    /* Whether every guard holds for a call, at frame entry: 1 or 0.
     *   evaluator  an object of evaluator_type (borrowed), built with the code's co_varnames and co_freevars
     *   fastlocals the frame's argument slots in co_varnames order; a slot may be NULL (its guards then fail)
     *   nlocals    how many of them are set (positional, keyword-only, *args and **kwargs slots)
     *   func       the function object called: its globals, builtins and closure are read
     * Holds the GIL throughout; may run user code (properties, __getattr__) where a source reads through it. Leaves no
     * exception set; an exception set on entry is kept. */
    int (*check)(void *evaluator, PyObject **fastlocals, Py_ssize_t nlocals, PyObject *func);
    /* For up to 64 evaluators of one code object: the fact that tells most of them apart, or NULL if none does (or memory
     * is short; no exception). Good while all the evaluators live; to be given to index_free. */
    void *(*index_build)(PyObject *const *evaluators, int n);
    /* Bit i: whether evaluator i may hold for the call. Runs no user code, leaves no exception. */
    uint64_t (*index_candidates)(const void *index, PyObject **fastlocals, Py_ssize_t nlocals, PyObject *func);
    void (*index_free)(void *index);
} FXSGuardsAPI;

#endif
