/* A name in a dict that seldom changes, a module's variables for instance: looked up where the dict has changed since. */
#ifndef FXS_WATCHED_NAME_H
#define FXS_WATCHED_NAME_H

#include "python_internals.h"

/* A number that a dict has only until its next change, and no other dict ever; 0: this Python keeps none. */
#if PY_VERSION_HEX < 0x030D0000
static inline uint64_t fxs_dict_version(PyObject *dict)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return ((PyDictObject *)dict)->ma_version_tag;
#pragma GCC diagnostic pop
}
#else
static inline uint64_t fxs_dict_version(PyObject *Py_UNUSED(dict))
{
    return 0;
}
#endif

typedef struct {
    PyObject *dict; /* owned by whoever fills this in, as is the name */
    PyObject *name;
    PyObject *value; /* borrowed: the dict holds it while it has the version */
    uint64_t version;
} FXSWatchedName;

/* What the name stands for now (borrowed); NULL without an exception: nothing. */
static inline PyObject *fxs_named(FXSWatchedName *watched)
{
    uint64_t version = fxs_dict_version(watched->dict);
    if (FXS_UNLIKELY(version == 0 || version != watched->version)) {
        watched->value = PyDict_GetItemWithError(watched->dict, watched->name);
        watched->version = version;
    }
    return watched->value;
}

#endif
