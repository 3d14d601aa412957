/* The plan: what a check that found nothing changed has to look at, as flat lists. Shared by its maker and its runner.
 *
 * Recorded after a walk over the tree that passed without finding any change; run instead of the walk from then on. Its
 * pointers are borrowed. That is sound because the entries are in order: an entry's objects are alive if every earlier
 * entry holds. They start from the call's own arguments and globals; a dict with its old version still holds the values
 * it held; versions are never used twice, so not even a new dict at an old address can pass for the old one.
 *
 *   ROOT self is 0x..a0                     (alive: passed by the caller)
 *   CLASS Net has version 77
 *   OWNER 0x..a0 has type Net, __dict__ 0x..b0, with version 1234   (so its _modules is still 0x..c0)
 *   DICT 0x..c0 has version 1300
 *   OWNER ...                               (a layer)
 *   NAMES of dict 0x..e0, version 1400, 2 entries      (a namespace: changes often, rarely in the names that matter;
 *     ITEM_IS 0x..f0 under "relu"                       so a new version means to look at each, and to go on)
 *     CHECK no "len"
 *   LOOKUPS in class 0x..f8, version 77, 3 entries     (the same for what was looked up in a class)
 *     CHECK ...
 *
 * When all entries hold, everything that they lead to is alive, and the facts about single values are looked at: sizes of
 * containers, types, tensors, each kind in one tight loop. What may run user code comes last, with references to the
 * objects it is about. */
#ifndef FXS_GUARDS_PLAN_H
#define FXS_GUARDS_PLAN_H

#include "native.h"

#include "dict_version.h"

typedef enum {
    ROOT_IS, ROOT_NODE, NAMESPACE_IS, MODULE_HAS, CLASS, OWNER, DICT, NAMES, LOOKUPS, ITEM_IS, ITEM_AT, HAS_TYPE, NUMBER, CHECK,
    ENTRY_KINDS
} EntryKind;

typedef struct {
    uint32_t kind;
    int32_t guard; /* CHECK: whose it is; NAMES, LOOKUPS: how many entries it stands for; ITEM_AT: the index */
    int32_t again; /* OWNER, DICT: 1 + the first of what to look at when only the version differs; 0: not to be used */
    PyObject *object;
    const void *what; /* OWNER, HAS_TYPE: type; CHECK: the check; ROOT_*, NUMBER, ITEM_IS: the node; ITEM_AT: the list */
    PyObject **place; /* OWNER: where the object keeps its dict */
    PyObject *dict;   /* OWNER, MODULE_HAS, ITEM_IS: the dict */
    uint64_t version; /* OWNER, DICT, NAMES: the dict's, OWNER's 0: does not matter; CLASS, LOOKUPS: the class's */
#ifndef DICT_VERSIONS_IN_DICTS
    const DictCell *cell; /* where the dict's version stands; NULL: the version is 0, or has not been compared yet */
#endif
} Entry;

/* One name that matters in a dict, or (value NULL) all that was settled about the dict that is `node`'s value. */
typedef struct {
    Node *node;
    PyObject *value;
    int32_t next; /* as Entry.again */
} Again;

typedef struct {
    PyObject *object;
    int32_t expected, guard;
} SizeFact;

typedef struct {
    PyObject *object;
    PyTypeObject *type;
    int32_t guard;
} TypeFact;

typedef struct {
    PyObject *object;
    const Check *check;
} OtherFact;

/* What may run user code: a check, or a whole sub-tree below a known value. */
typedef struct {
    Node *node; /* NULL: only the check */
    const Check *check;
    PyObject *object; /* NULL: node is a root */
} Late;

typedef struct {
    int32_t slot;
    PyObject *object;
} Kept;

/* A growing array. */
#define ARRAY_OF(type) \
    struct { \
        type *items; \
        int n, room; \
    }

typedef struct {
    const void *pointer;
    int kind, entry;
} Place;

struct Plan {
    ARRAY_OF(Entry) entries;
    ARRAY_OF(Again) again;
    ARRAY_OF(SizeFact) sizes;
    ARRAY_OF(TypeFact) types;
    ARRAY_OF(TensorFact) tensors;
    ARRAY_OF(OtherFact) others;
    ARRAY_OF(Late) late;
    ARRAY_OF(Kept) kept;
    uint8_t *skip; /* per relation: settled by the pointers alone */
    Place *known;  /* while recording: the entry of each class, object and dict; a hash table */
    size_t n_known, known_size;
    int failed; /* recording ran out of memory */
};

#endif
