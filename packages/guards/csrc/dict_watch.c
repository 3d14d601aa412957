/* Versions for dicts that have none of their own: each dict that is asked for is watched (CPython 3.12 and later can).
 *
 *   dict 0x..a0 is asked for     its cell gets version 17; the dict is watched
 *   dict 0x..a0 changes          the cell's version is 0; the dict is no longer watched, so that further changes cost nothing
 *   dict 0x..a0 is asked for     the same cell gets version 23
 *   dict 0x..a0 is freed         version 0; the cell may become another dict's
 *
 * Versions are never used twice, so whoever remembers (cell, version) sees any change as a difference of one number,
 * without touching the dict. The interpreter tells of a change right before it makes it. Between the two only other
 * watchers of the dict may run code; a dict that has one is not given a version. */
#include "native.h"

#include "dict_version.h"

#ifndef DICT_VERSIONS_IN_DICTS

/* CPython 3.13.0 tells nobody when an attribute is stored in an object that keeps its values inline, its dict being a view
 * of them. Set by the self-test at import: such a dict gets a table of its own before it is watched. */
int dicts_need_tables = 0;

enum { OF_THE_INTERPRETER = 3, CELLS_AT_ONCE = 512 }; /* watchers 0 and 1 are CPython's own and run C only */

static int watcher = -1;
static PyInterpreterState *home;
static uint64_t last_version;
static DictCell **buckets, *unused;
static size_t n_buckets, n_cells; /* n_buckets is a power of two */

static DictCell **bucket_of(PyObject *dict) {
    return &buckets[(((uintptr_t)dict >> 4) * 0x9E3779B97F4A7C15u >> 24) & (n_buckets - 1)];
}

static DictCell *find(PyObject *dict) {
    DictCell *cell = n_buckets == 0 ? NULL : *bucket_of(dict);
    while (cell != NULL && cell->dict != dict) cell = cell->next;
    return cell;
}

static uint64_t *tag_of(PyObject *dict) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return &((PyDictObject *)dict)->ma_version_tag;
#pragma GCC diagnostic pop
}

static void give_up(DictCell **link) {
    DictCell *cell = *link;
    *link = cell->next;
    *cell = (DictCell){0, NULL, unused};
    unused = cell;
    n_cells--;
}

static int dict_changes(PyDict_WatchEvent event, PyObject *dict, PyObject *key, PyObject *value) {
    (void)key, (void)value;
    *tag_of(dict) &= ~((uint64_t)1 << watcher);
    for (DictCell **link = bucket_of(dict); *link != NULL; link = &(*link)->next) {
        if ((*link)->dict != dict) continue;
        (*link)->version = 0;
        if (event == PyDict_EVENT_DEALLOCATED) give_up(link);
        break;
    }
    return 0;
}

/* Cells of dicts that changed are given up first: those dicts may be gone without a word. */
static int make_room(void) {
    if (n_cells < n_buckets) return 1;
    for (size_t i = 0; i < n_buckets; i++)
        for (DictCell **link = &buckets[i]; *link != NULL;) {
            if ((*link)->version == 0) give_up(link);
            else link = &(*link)->next;
        }
    if (2 * n_cells < n_buckets) return 1;
    size_t old_size = n_buckets;
    DictCell **old = buckets, **larger = PyMem_Calloc(old_size ? old_size * 4 : 1024, sizeof(DictCell *));
    if (larger == NULL) return n_buckets > 0;
    buckets = larger;
    n_buckets = old_size ? old_size * 4 : 1024;
    for (size_t i = 0; i < old_size; i++)
        for (DictCell *cell = old[i], *next; cell != NULL; cell = next) {
            next = cell->next;
            DictCell **bucket = bucket_of(cell->dict);
            cell->next = *bucket;
            *bucket = cell;
        }
    PyMem_Free(old);
    return 1;
}

static DictCell *new_cell(PyObject *dict) {
    if (!make_room()) return NULL;
    if (unused == NULL) {
        DictCell *cells = PyMem_Calloc(CELLS_AT_ONCE, sizeof(DictCell));
        for (int i = 0; cells != NULL && i < CELLS_AT_ONCE; i++) cells[i].next = i > 0 ? &cells[i - 1] : NULL;
        if (cells == NULL) return NULL;
        unused = &cells[CELLS_AT_ONCE - 1];
    }
    DictCell *cell = unused, **bucket = bucket_of(dict);
    unused = cell->next;
    *cell = (DictCell){0, dict, *bucket};
    *bucket = cell;
    n_cells++;
    return cell;
}

/* A key that is no string gives the dict a table of its own. A dict with shared keys has none but strings. */
static int give_table(PyObject *dict) {
    if (((PyDictObject *)dict)->ma_values == NULL) return 1;
    if (PyDict_SetItem(dict, Py_Ellipsis, Py_None) == 0 && PyDict_DelItem(dict, Py_Ellipsis) == 0)
        return ((PyDictObject *)dict)->ma_values == NULL;
    PyErr_Clear();
    return 0;
}

const DictCell *dict_cell(PyObject *dict) {
    DictCell *cell = find(dict);
    if (cell != NULL && cell->version != 0) return cell;
    uint64_t others = *tag_of(dict) & 0xff & ~((uint64_t)1 << watcher) & ~(uint64_t)OF_THE_INTERPRETER;
    if (others != 0 || PyInterpreterState_Get() != home) return NULL;
    if (dicts_need_tables && !give_table(dict)) return NULL;
    if (cell == NULL && (cell = new_cell(dict)) == NULL) return NULL;
    if (PyDict_Watch(watcher, dict) < 0) {
        PyErr_Clear();
        return NULL;
    }
    cell->version = ++last_version;
    return cell;
}

int dict_watch_start(void) {
    if (watcher >= 0) return 1;
    home = PyInterpreterState_Get();
    if (home != PyInterpreterState_Main()) return 0;
    watcher = PyDict_AddWatcher(dict_changes);
    PyErr_Clear();
    return watcher >= 0;
}

#endif
