/* Dict and type versions: what differs between CPython 3.11, 3.12 and 3.13. */
#ifndef FXS_GUARDS_DICT_VERSION_H
#define FXS_GUARDS_DICT_VERSION_H

#include <Python.h>
#include <stdint.h>

/* Set by the self-test at import; 0 makes every check a full one. */
extern int dict_versions_work;

/* A number that no other dict has had, and that this dict will never have again once it changes; 0: not available.
 * 3.12 keeps dict watchers in the low byte. 3.13 has no version that outlives a change of layout: always 0. */
static inline uint64_t dict_version(PyObject *dict) {
#if PY_VERSION_HEX < 0x030D0000
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    uint64_t tag = ((PyDictObject *)dict)->ma_version_tag;
#pragma GCC diagnostic pop
#if PY_VERSION_HEX >= 0x030C0000
    tag >>= 8;
#endif
    return dict_versions_work ? tag : 0;
#else
    (void)dict;
    return 0;
#endif
}

/* The type's version; 0: none assigned, or the type has changed since. */
static inline unsigned int type_version(PyTypeObject *type) {
    return (type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
}

/* The instance dict (new reference) of an object whose type is known to have the standard one; NULL without exception
 * when there is none. Makes the dict if the object still keeps its attributes inline. */
static inline PyObject *instance_dict(PyObject *obj) {
#if PY_VERSION_HEX < 0x030D0000
    PyObject **slot = _PyObject_GetDictPtr(obj);
    if (slot == NULL || *slot == NULL) return NULL;
    return Py_NewRef(*slot);
#else
    PyObject *dict = PyObject_GenericGetDict(obj, NULL);
    if (dict == NULL) PyErr_Clear();
    return dict;
#endif
}

/* Where an object keeps its instance dict, or NULL where that is not a fixed place. */
static inline PyObject **instance_dict_place(PyObject *obj) {
#if PY_VERSION_HEX < 0x030D0000
    return _PyObject_GetDictPtr(obj);
#else
    (void)obj;
    return NULL;
#endif
}

#endif
