/* Per-code state in the code object's extra slot, and the lists of entries in it. */
#include "code_cache.h"
#include "guards_abi.h"

static Py_ssize_t extra_index = -1;
unsigned long fxs_stances;

/* Entries come and go: what told them apart does so no more. */
static void drop_index(FXSVersions *list)
{
    if (list->index != NULL) {
        fxs_guards_abi()->index_free(list->index);
    }
    list->index = NULL;
    list->is_indexed = 0;
}

static void free_state(void *pointer)
{
    FXSCodeState *state = pointer;
    if (state == NULL) {
        return;
    }
    fxs_code_state_forget(state, NULL);
    while (state->lists != NULL) {
        FXSVersions *list = state->lists;
        state->lists = list->next;
        PyMem_Free(list);
    }
    PyMem_Free(state);
}

FXSCodeState *fxs_code_state(PyCodeObject *code)
{
    void *found = NULL;
    if (fxs_get_extra((PyObject *)code, extra_index, &found) < 0) {
        PyErr_Clear();
        return NULL;
    }
    return found;
}

FXSCodeState *fxs_code_state_make(PyCodeObject *code)
{
    FXSCodeState *state = fxs_code_state(code);
    if (state != NULL) {
        return state;
    }
    state = PyMem_Calloc(1, sizeof(FXSCodeState));
    if (state == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    if (fxs_set_extra((PyObject *)code, extra_index, state) < 0) {
        PyMem_Free(state);
        return NULL;
    }
    return state;
}

FXSVersions *fxs_code_state_find(FXSCodeState *state, void *callback)
{
    if (callback == NULL) {
        return &state->any;
    }
    for (FXSVersions **link = &state->lists; *link != NULL; link = &(*link)->next) {
        FXSVersions *list = *link;
        if (list->callback == callback && !list->is_free) {
            *link = list->next;
            list->next = state->lists;
            state->lists = list;
            return list;
        }
    }
    return NULL;
}

FXSVersions *fxs_code_state_find_or_make(FXSCodeState *state, void *callback)
{
    FXSVersions *list = fxs_code_state_find(state, callback);
    if (list != NULL) {
        return list;
    }
    for (list = state->lists; list != NULL && !list->is_free; list = list->next) {
    }
    if (list == NULL) {
        list = PyMem_Calloc(1, sizeof(FXSVersions));
        if (list == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        list->next = state->lists;
        state->lists = list;
    }
    list->callback = callback;
    list->is_free = 0;
    list->skip = FXS_SKIP_NOTHING;
    list->pause = 0;
    return list;
}

FXSVersions *fxs_versions_of(void *callback, PyCodeObject *code)
{
    FXSCodeState *state = fxs_code_state_make(code);
    return state == NULL ? NULL : fxs_code_state_find_or_make(state, callback);
}

int fxs_set_skip(void *callback, PyCodeObject *code, FXSSkip skip)
{
    FXSVersions *list = fxs_versions_of(callback, code);
    if (list == NULL) {
        return -1;
    }
    list->skip = skip;
    return 0;
}

int fxs_set_pause(void *callback, PyCodeObject *code, unsigned calls)
{
    FXSVersions *list = fxs_versions_of(callback, code);
    if (list == NULL) {
        return -1;
    }
    list->pause = calls;
    list->begun = fxs_stances;
    return 0;
}

static void forget(FXSVersions *list)
{
    list->skip = FXS_SKIP_NOTHING;
    list->pause = 0;
    while (list->first != NULL) {
        fxs_entry_unlink(list->first);
    }
}

void fxs_code_state_forget(FXSCodeState *state, void *callback)
{
    FXSVersions *list = fxs_code_state_find(state, callback);
    if (list != NULL) {
        forget(list);
    }
    for (list = callback == NULL ? state->lists : NULL; list != NULL;) {
        int changes = list->first != NULL || list->skip != FXS_SKIP_NOTHING;
        forget(list);
        list = changes ? state->lists : list->next; /* what died with the entries may have asked for another list */
    }
}

void fxs_code_state_release(FXSCodeState *state, void *callback)
{
    FXSVersions *list = fxs_code_state_find(state, callback);
    if (list != NULL) {
        forget(list);
        list->is_free = 1;
    }
}

FXSSkip fxs_code_state_skip(FXSCodeState *state, FXSVersions *list)
{
    return list != NULL && list->skip > state->any.skip ? list->skip : state->any.skip;
}

FXSSkip fxs_code_state_most_skipped(FXSCodeState *state)
{
    FXSSkip skip = state->any.skip;
    for (FXSVersions *list = state->lists; list != NULL; list = list->next) {
        skip = !list->is_free && list->skip > skip ? list->skip : skip;
    }
    return skip;
}

int fxs_versions_add(FXSVersions *list, FXSEntry *entry)
{
    if (entry->list != NULL) {
        PyErr_SetString(PyExc_ValueError, "the entry is cached already");
        return -1;
    }
    drop_index(list);
    entry->list = list;
    entry->next = list->first;
    list->first = (FXSEntry *)Py_NewRef(entry);
    list->count++;
    list->version++;
    return 0;
}

static FXSEntry **find_link(FXSVersions *list, FXSEntry *entry)
{
    FXSEntry **link = &list->first;
    while (*link != NULL && *link != entry) {
        link = &(*link)->next;
    }
    return link;
}

void fxs_entry_unlink(FXSEntry *entry)
{
    FXSVersions *list = entry->list;
    if (list == NULL) {
        return;
    }
    drop_index(list);
    FXSEntry **link = find_link(list, entry);
    *link = entry->next;
    fxs_turns_free(list->turns);
    list->turns = NULL;
    entry->next = NULL;
    entry->list = NULL;
    list->count--;
    list->version++;
    Py_DECREF(entry);
}

void fxs_versions_ran(FXSVersions *list, FXSEntry *entry)
{
    if (list->turns == NULL) {
        list->turns = fxs_turns_new();
    }
    if (list->turns != NULL) {
        fxs_turns_note(list->turns, entry);
    }
    if (list->first != entry) {
        FXSEntry **link = find_link(list, entry);
        *link = entry->next;
        entry->next = list->first;
        list->first = entry;
        list->version++;
    }
}

Py_ssize_t fxs_argument_slots(PyCodeObject *code)
{
    return (Py_ssize_t)code->co_argcount + code->co_kwonlyargcount + ((code->co_flags & CO_VARARGS) != 0)
           + ((code->co_flags & CO_VARKEYWORDS) != 0);
}

/* Whether two code objects have the same free variables in the same order. */
static int same_free_variables(PyCodeObject *one, PyCodeObject *two)
{
    if (one->co_nfreevars != two->co_nfreevars) {
        return 0;
    }
    for (int i = 1; i <= one->co_nfreevars; i++) {
        PyObject *left = PyTuple_GET_ITEM(one->co_localsplusnames, one->co_nlocalsplus - i);
        PyObject *right = PyTuple_GET_ITEM(two->co_localsplusnames, two->co_nlocalsplus - i);
        if (PyUnicode_Compare(left, right) != 0) {
            return 0;
        }
    }
    return 1;
}

int fxs_check_replacement(PyCodeObject *original, PyCodeObject *replacement)
{
    const int generators = CO_GENERATOR | CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR;
    const int stars = CO_VARARGS | CO_VARKEYWORDS | CO_OPTIMIZED | CO_NEWLOCALS;
    const char *problem = NULL;
    if ((original->co_flags | replacement->co_flags) & generators) {
        problem = "generators and coroutines are not replaced";
    }
    else if ((original->co_flags & stars) != (replacement->co_flags & stars)
             || original->co_argcount != replacement->co_argcount
             || original->co_posonlyargcount != replacement->co_posonlyargcount
             || original->co_kwonlyargcount != replacement->co_kwonlyargcount) {
        problem = "the replacement takes other arguments";
    }
    else if (!same_free_variables(original, replacement)) {
        problem = "the replacement has other free variables";
    }
    if (problem != NULL) {
        PyErr_Format(PyExc_ValueError, "%U cannot be replaced: %s", original->co_qualname, problem);
        return -1;
    }
    return 0;
}

enum { MOST_INDEXED = 64 };

static void make_index(FXSVersions *list)
{
    PyObject *evaluators[MOST_INDEXED];
    int n = 0;
    list->is_indexed = 1;
    for (FXSEntry *entry = list->first; entry != NULL; entry = entry->next) {
        entry->ordinal = entry->native != NULL && n < MOST_INDEXED ? n : -1;
        if (entry->ordinal >= 0) {
            evaluators[n++] = entry->guard;
        }
    }
    list->index = n > FXS_FEW_ENTRIES ? fxs_guards_abi()->index_build(evaluators, n) : NULL;
}

uint64_t fxs_versions_candidates(FXSVersions *list, PyObject **slots, Py_ssize_t count, PyObject *function)
{
    if (!list->is_indexed) {
        make_index(list);
    }
    return list->index == NULL ? UINT64_MAX : fxs_guards_abi()->index_candidates(list->index, slots, count, function);
}

int fxs_code_cache_init(void)
{
    extra_index = fxs_request_extra_index(free_state);
    if (extra_index < 0) {
        PyErr_SetString(PyExc_RuntimeError, "no slot for data per code object is left in this interpreter");
        return -1;
    }
    return PyType_Ready(&FXSEntry_Type);
}
