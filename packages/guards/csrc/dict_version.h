/* Dict and type versions: what differs between CPython 3.11, 3.12 and 3.13. */
#ifndef FXS_GUARDS_DICT_VERSION_H
#define FXS_GUARDS_DICT_VERSION_H

#include <Python.h>
#include <stdint.h>

/* Set by the self-test at import; 0 makes every check a full one. */
extern int dict_versions_work;

#if PY_VERSION_HEX < 0x030D0000
#define DICT_VERSIONS_IN_DICTS 1
#endif

/* A number that no other dict has had, and that this dict will never have again once it changes; 0: not available.
 * 3.11 and 3.12 keep one in the dict (3.12 with dict watchers in the low byte). From 3.13 on the dict is watched and has
 * a cell, whose number is 0 from the first change on: see dict_watch.c. */
#ifdef DICT_VERSIONS_IN_DICTS
static inline uint64_t dict_version(PyObject *dict) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    uint64_t tag = ((PyDictObject *)dict)->ma_version_tag;
#pragma GCC diagnostic pop
#if PY_VERSION_HEX >= 0x030C0000
    tag >>= 8;
#endif
    return dict_versions_work ? tag : 0;
}
#else
typedef struct DictCell {
    uint64_t version; /* 0: the dict has changed, or the cell is nobody's */
    PyObject *dict;
    struct DictCell *next;
} DictCell;

extern int dicts_need_tables;
int dict_watch_start(void); /* 0: no watcher is left */

/* The cell of a dict, with a version; NULL: this dict cannot be watched. Cells are never freed: one that is given to
 * another dict has a version that it never had before. */
const DictCell *dict_cell(PyObject *dict);

static inline uint64_t dict_version(PyObject *dict) {
    const DictCell *cell = dict_versions_work ? dict_cell(dict) : NULL;
    return cell == NULL ? 0 : cell->version;
}
#endif

/* The type's version; 0: none assigned, or the type has changed since. */
static inline unsigned int type_version(PyTypeObject *type) {
#if PY_VERSION_HEX >= 0x030D0000 /* the flag is no longer kept: the tag is 0 itself */
    return type->tp_version_tag;
#else
    return (type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
#endif
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

/* Where an object keeps its instance dict (made if its attributes are still inline), or NULL: nowhere. */
static inline PyObject **instance_dict_place(PyObject *obj) { return _PyObject_GetDictPtr(obj); }

#endif
