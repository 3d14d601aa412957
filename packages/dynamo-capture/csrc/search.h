/* Finding the entry of a list that fits a frame. */
#ifndef FXS_SEARCH_H
#define FXS_SEARCH_H

#include "code_cache.h"
#include "frame_view.h"

/* Whether what tells entries apart leaves this one. */
static inline int fxs_is_candidate(FXSEntry *entry, uint64_t candidates)
{
    return candidates == UINT64_MAX || entry->ordinal < 0 || (candidates >> entry->ordinal & 1);
}

/* Whether an entry of the list fits the frame, and is still in the list when its guard has been checked, which may run
 * user code. */
static inline int fxs_fits(FXSVersions *list, FXSEntry *entry, _PyInterpreterFrame *frame, Py_ssize_t count,
                           PyObject *function)
{
    Py_INCREF(entry);
    int fits = fxs_entry_holds(entry, frame->localsplus, count, function) && entry->list == list;
    Py_DECREF(entry);
    return fits;
}

/* The entry runs from the cache. */
static inline FXSEntry *fxs_chosen(FXSVersions *list, FXSEntry *entry)
{
    entry->hits++;
    if (list->count > 1) {
        fxs_versions_ran(list, entry);
    }
    return entry;
}

/* An entry of the list whose guard holds (borrowed); NULL if there is none. The one that should come next is tried ahead of
 * the others. Guards may run user code, which may change the list: then the search starts over, a few times. */
static inline FXSEntry *fxs_search(FXSVersions *list, _PyInterpreterFrame *frame, PyCodeObject *code)
{
    Py_ssize_t count = fxs_argument_slots(code);
    PyObject *function = FXS_FRAME_FUNCTION(frame);
    int restarts = 0;
    uint64_t candidates = list->count <= FXS_FEW_ENTRIES
                              ? UINT64_MAX
                              : fxs_versions_candidates(list, frame->localsplus, count, function);
    FXSEntry *expected = list->turns == NULL ? NULL : fxs_turns_next(list->turns);
    int is_ahead = expected != NULL && fxs_is_candidate(expected, candidates);
    for (FXSEntry *entry = is_ahead ? expected : list->first; entry != NULL;) {
        FXSEntry *next = is_ahead ? list->first : entry->next;
        if (is_ahead || (entry != expected && fxs_is_candidate(entry, candidates))) {
            unsigned long version = list->version;
            if (fxs_fits(list, entry, frame, count, function)) {
                return fxs_chosen(list, entry);
            }
            if (FXS_UNLIKELY(list->version != version)) {
                if (++restarts > 4) {
                    return NULL;
                }
                candidates = UINT64_MAX; /* there are other entries now */
                expected = NULL;
                next = list->first;
            }
        }
        is_ahead = 0;
        entry = next;
    }
    return NULL;
}

#endif
