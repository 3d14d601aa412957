/* What is remembered per code object: entries, most recently used first, and whether to leave it alone. */
#ifndef FXS_CODE_CACHE_H
#define FXS_CODE_CACHE_H

#include "python_internals.h"
#include "turns.h"

typedef enum {
    FXS_SKIP_NOTHING = 0,
    FXS_SKIP_CODE = 1,      /* run frames of this code as they are */
    FXS_SKIP_RECURSIVELY = 2 /* and everything they call */
} FXSSkip;

struct FXSVersions;

/* A replacement for a code object and the guard that says when it may run. A Python object, linked into a list. */
typedef struct FXSEntry {
    PyObject_HEAD
    PyCodeObject *code;
    PyObject *guard;  /* None: always */
    int (*native)(void *, PyObject **, Py_ssize_t, PyObject *); /* the guard's C function, or NULL */
    PyObject *extra;  /* whatever its maker wants to keep with it */
    PyObject *weakrefs;
    Py_ssize_t frame_size;
    unsigned long long hits;
    int ordinal;              /* its place in the index of its list; negative: none */
    struct FXSVersions *list; /* the list it is in, or NULL */
    struct FXSEntry *next;    /* owned */
} FXSEntry;

/* What one callback has of a code object, and said about it. Callbacks neither see nor count each other's entries. */
typedef struct FXSVersions {
    void *callback;  /* by identity; NULL: any */
    FXSEntry *first; /* owned */
    Py_ssize_t count;
    unsigned long version; /* changes whenever the list does */
    FXSTurns *turns;       /* in what order its entries ran; NULL while there were not two, and when one is gone */
    void *index;           /* what tells its entries apart (guards_abi.h), or NULL */
    int is_indexed;        /* whether an index of the entries there are was tried for */
    int is_free;           /* the callback is gone: the next one may have the place */
    FXSSkip skip;          /* under this callback */
    unsigned pause;        /* so many calls that no entry fits run as they are, then the callback is asked again, */
    unsigned long begun;   /* or when the stance is another than that was */
    struct FXSVersions *next; /* owned */
} FXSVersions;

typedef struct FXSCodeState {
    FXSVersions any;    /* what holds under every callback */
    FXSVersions *lists; /* the last one asked for first; they stay where they are in memory as long as the code lives */
} FXSCodeState;

extern PyTypeObject FXSEntry_Type;

/* Get ready; -1 with an exception on failure. */
int fxs_code_cache_init(void);
/* The state of a code object, NULL if it has none (no exception). */
FXSCodeState *fxs_code_state(PyCodeObject *code);
/* The same, made if need be; NULL with an exception on failure. */
FXSCodeState *fxs_code_state_make(PyCodeObject *code);
/* What a callback has of the code, NULL if nothing; of NULL: what holds under any. */
FXSVersions *fxs_code_state_find(FXSCodeState *state, void *callback);
/* The same, made if need be; NULL with an exception on failure. */
FXSVersions *fxs_code_state_find_or_make(FXSCodeState *state, void *callback);
/* What a callback (NULL: any) has of a code; NULL with an exception on failure. */
FXSVersions *fxs_versions_of(void *callback, PyCodeObject *code);
/* Whether frames of the code are asked about under a callback (NULL: under any); -1 with an exception on failure. */
int fxs_set_skip(void *callback, PyCodeObject *code, FXSSkip skip);
/* How often the stance has been set: what pauses was decided under another one then. */
extern unsigned long fxs_stances;
/* So many calls of the code that no entry fits run as they are before a callback is asked again; -1 likewise. */
int fxs_set_pause(void *callback, PyCodeObject *code, unsigned calls);
/* Drop the entries of a callback (NULL: of all) and what it said. */
void fxs_code_state_forget(FXSCodeState *state, void *callback);
/* The same where the callback is gone: another one may have its place. */
void fxs_code_state_release(FXSCodeState *state, void *callback);
/* Whether frames of the code run as they are under a callback, whose list this is (or NULL). */
FXSSkip fxs_code_state_skip(FXSCodeState *state, FXSVersions *list);
/* The same under any callback. */
FXSSkip fxs_code_state_most_skipped(FXSCodeState *state);
/* Put an entry in front; -1 with an exception if it is in a list already. */
int fxs_versions_add(FXSVersions *list, FXSEntry *entry);
/* Take an entry out of its list, if it is in one. */
void fxs_entry_unlink(FXSEntry *entry);
/* An entry of the list is about to run: it goes to the front. */
void fxs_versions_ran(FXSVersions *list, FXSEntry *entry);
/* 0 if frames of `original` can run `replacement` in place; -1 with ValueError otherwise. */
int fxs_check_replacement(PyCodeObject *original, PyCodeObject *replacement);
/* How many slots of a frame the caller fills. */
Py_ssize_t fxs_argument_slots(PyCodeObject *code);
/* So many entries are as quickly tried as told apart. */
enum { FXS_FEW_ENTRIES = 2 };
/* Which of more entries may fit a call: bit `ordinal`. All where nothing tells them apart. */
uint64_t fxs_versions_candidates(FXSVersions *list, PyObject **slots, Py_ssize_t count, PyObject *function);
/* Whether the entry's guard holds: 1 or 0, no exception. */
int fxs_entry_holds(FXSEntry *entry, PyObject **slots, Py_ssize_t count, PyObject *function);

#endif
