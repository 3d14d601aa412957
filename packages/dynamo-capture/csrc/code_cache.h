/* What is remembered per code object: entries, most recently used first, and whether to leave it alone. */
#ifndef FXS_CODE_CACHE_H
#define FXS_CODE_CACHE_H

#include "python_internals.h"

typedef enum {
    FXS_SKIP_NOTHING = 0,
    FXS_SKIP_CODE = 1,      /* run frames of this code as they are */
    FXS_SKIP_RECURSIVELY = 2 /* and everything they call */
} FXSSkip;

struct FXSCodeState;

/* A replacement for a code object and the guard that says when it may run. A Python object, linked into a list. */
typedef struct FXSEntry {
    PyObject_HEAD
    PyCodeObject *code;
    PyObject *guard;  /* None: always */
    int (*native)(void *, PyObject **, Py_ssize_t, PyObject *); /* the guard's C function, or NULL */
    PyObject *extra;  /* whatever its maker wants to keep with it */
    void *callback;   /* the callback that gave it, by identity: it runs under no other. NULL: under any */
    PyObject *weakrefs;
    Py_ssize_t frame_size;
    unsigned long long hits;
    int ordinal;                /* its place in the index of its state; negative: none */
    struct FXSCodeState *state; /* the list it is in, or NULL */
    struct FXSEntry *next;      /* owned */
} FXSEntry;

/* What one callback said about a code object. */
typedef struct FXSRefusal {
    void *callback; /* by identity, as in an entry */
    FXSSkip skip;
    struct FXSRefusal *next; /* owned */
} FXSRefusal;

typedef struct FXSCodeState {
    FXSEntry *first; /* owned */
    Py_ssize_t count;
    unsigned long version; /* changes whenever the list does */
    void *index;           /* what tells its entries apart (guards_abi.h), or NULL */
    int is_indexed;        /* whether an index of the entries there are was tried for */
    FXSSkip skip;          /* under every callback */
    FXSRefusal *refusals;  /* and under some. Owned */
} FXSCodeState;

extern PyTypeObject FXSEntry_Type;

/* Get ready; -1 with an exception on failure. */
int fxs_code_cache_init(void);
/* The state of a code object, NULL if it has none (no exception). */
FXSCodeState *fxs_code_state(PyCodeObject *code);
/* The same, made if need be; NULL with an exception on failure. */
FXSCodeState *fxs_code_state_make(PyCodeObject *code);
/* Put an entry in front; -1 with an exception if it is in a list already. */
int fxs_code_state_add(FXSCodeState *state, FXSEntry *entry);
/* Take an entry out of its list, if it is in one. */
void fxs_entry_unlink(FXSEntry *entry);
/* Drop all entries. */
void fxs_code_state_clear(FXSCodeState *state);
/* Whether frames of the code run as they are under a callback; NULL: under any. */
FXSSkip fxs_code_state_skip(FXSCodeState *state, void *callback);
/* Say so of one callback; -1 with an exception on failure. */
int fxs_code_state_refuse(FXSCodeState *state, void *callback, FXSSkip skip);
/* Forget what the callbacks said. */
void fxs_code_state_forgive(FXSCodeState *state);
/* Move an entry of the list to its front. */
void fxs_code_state_touch(FXSCodeState *state, FXSEntry *entry);
/* 0 if frames of `original` can run `replacement` in place; -1 with ValueError otherwise. */
int fxs_check_replacement(PyCodeObject *original, PyCodeObject *replacement);
/* How many slots of a frame the caller fills. */
Py_ssize_t fxs_argument_slots(PyCodeObject *code);
/* Which entries may fit a call: bit `ordinal`. All where nothing tells them apart. */
uint64_t fxs_code_state_candidates(FXSCodeState *state, PyObject **slots, Py_ssize_t count, PyObject *function);
/* Whether the entry's guard holds: 1 or 0, no exception. */
int fxs_entry_holds(FXSEntry *entry, PyObject **slots, Py_ssize_t count, PyObject *function);

#endif
